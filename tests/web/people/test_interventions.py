"""Hand-over in the moment: from the console or the API to the desk, and its receipt back."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from aiokafka.errors import KafkaTimeoutError
from jsonschema import Draft202012Validator

from stream_app.contracts import schema
from stream_app.errors import BrokerUnavailable
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import IngestScope, People, Person
from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from stream_app.web.live.intervention_outbox import InterventionOutbox
from stream_app.web.live.live_hub import Subscription
from stream_app.web.live.publisher import Publisher
from stream_app.web.services import Services
from tests.store import batches, judging
from tests.store.reading import stored_rows
from tests.web.people.client import Client
from tests.web.people.conftest import As

API = "/api/v1"
LIVE = "north/live"
PATH = f"{API}/sessions/north%2Flive/interventions"
NOW = datetime(2026, 3, 2, tzinfo=UTC)
NOTE = {"kind": "note", "text": "Ask what the weekend looks like"}


class Broker:
    """Records what is published; ``away``: refuses everything."""

    def __init__(self) -> None:
        self.away = False
        self.sent: list[tuple[str, bytes, dict[str, Any], dict[str, bytes]]] = []

    async def send(
        self,
        topic: str,
        key: bytes,
        value: bytes,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> "asyncio.Future[Any]":
        if self.away:
            raise BrokerUnavailable("no Kafka broker can be reached; try again later")
        self.sent.append((topic, key, msgspec.json.decode(value), dict(headers)))
        confirmed = asyncio.get_running_loop().create_future()
        confirmed.set_result(None)
        return confirmed


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(Publisher, "send", made.send)
    return made


@pytest.fixture
def live(filled: Store) -> Store:
    """With an open session of team north, and an account of its desk."""
    events = [
        batches.turn(
            seq,
            session_id=LIVE,
            team="north",
            speaker_id=judging.NOOR if seq % 2 else "client",
        )
        for seq in range(4)
    ]
    filled.commit(batches.process(events))
    People(filled).add(Person("desk", PersonRole.INGEST), None)
    return filled


def services_of(client: Client) -> Services:
    services: Services = client.app.state.services
    return services


def publish(client: Client) -> int:
    return asyncio.run(services_of(client).interventions.publish_due())


def limited(store: Store, as_: As, **limits: str) -> Client:
    token = People(store).create_token("desk", "limited", sends=IngestScope(**limits))
    return Client(as_("").app, token)


def page(as_: As, name: str) -> str:
    answer = as_(name).get("/sessions/north%2Flive")
    assert answer.status_code == 200
    return answer.text


def test_a_note_reaches_the_topic_and_its_receipt_the_page(
    as_: As, live: Store, broker: Broker
) -> None:
    sue = as_("sue")
    answer = sue.post(PATH, json=NOTE)
    assert answer.status_code == 201
    stored = answer.json()
    assert (stored["person"], stored["published_at"], stored["received_at"]) == ("sue", None, None)
    assert "not sent yet" in page(as_, "sue")

    assert publish(sue) == 1
    [(topic, key, message, headers)] = broker.sent
    assert (topic, key) == ("dialogue.interventions", LIVE.encode())
    assert message["type"] == "intervention"
    assert message["intervention_id"] == stored["intervention_id"]
    assert message["text"] == NOTE["text"]
    Draft202012Validator(schema.build("intervention")).validate(message)
    assert headers["ce_type"] == b"rapport.intervention"
    assert headers["ce_dataschema"] == b"urn:rapport:intervention:v1"
    assert ">sent<" in page(as_, "sue")
    assert publish(sue) == 0

    receipt = f"{API}/interventions/{stored['intervention_id']}/receipt"
    first = as_("desk").post(receipt)
    assert first.status_code == 200
    assert first.json()["received_at"] is not None
    assert as_("desk").post(receipt).json() == first.json(), "the first receipt counts"
    [found] = sue.get(PATH).json()
    assert found["received_by"] == "desk"
    for name in ("sue", "noor"):
        shown = page(as_, name)
        assert ">received <time" in shown
        assert NOTE["text"] in shown
    assert "Send note" in page(as_, "sue")
    assert "Send note" not in page(as_, "noor")


def test_nothing_is_lost_while_the_broker_is_away(as_: As, live: Store, broker: Broker) -> None:
    sue = as_("sue")
    broker.away = True
    for words in ("one", "two"):
        assert sue.post(PATH, json={**NOTE, "text": words}).status_code == 201
    with pytest.raises(BrokerUnavailable):
        publish(sue)
    broker.away = False
    assert publish(sue) == 2
    assert [message["text"] for _, _, message, _ in broker.sent] == ["one", "two"]


def test_an_unconfirmed_message_is_repeated_with_the_same_id(
    as_: As, live: Store, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    sue = as_("sue")
    sue.post(PATH, json=NOTE)

    async def unconfirmed(_: Publisher, *arguments: Any, **options: Any) -> "asyncio.Future[Any]":
        future = await broker.send(*arguments, **options)
        failed = asyncio.get_running_loop().create_future()
        failed.set_exception(KafkaTimeoutError())
        assert future.done()
        return failed

    with monkeypatch.context() as patch:
        patch.setattr(Publisher, "send", unconfirmed)
        with pytest.raises(KafkaTimeoutError):
            publish(sue)
    assert publish(sue) == 1
    first, second = (headers["ce_id"] for _, _, _, headers in broker.sent)
    assert first == second


def test_another_process_publishes_only_what_was_left_for_some_time(
    as_: As, live: Store, broker: Broker
) -> None:
    sue = as_("sue")
    sue.post(PATH, json=NOTE)
    services = services_of(sue)
    other = InterventionOutbox(live, services.publisher, services.hub, "other")
    assert asyncio.run(other.publish_due()) == 0
    with live.transaction() as connection:
        table = tables.interventions
        [at] = connection.scalars(sa.select(table.c.at))
        connection.execute(sa.update(table).values(at=at.replace(year=at.year - 1)))
    assert asyncio.run(other.publish_due()) == 1


def test_the_outbox_publishes_at_once_and_survives_failures(
    as_: As, live: Store, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream_app.web.live.intervention_outbox.MIN_PAUSE", 0.01)
    sue = as_("sue")
    outbox = services_of(sue).interventions

    async def work() -> None:
        running = asyncio.create_task(outbox.run())
        broker.away = True
        stored = await asyncio.to_thread(sue.post, PATH, json=NOTE)
        assert stored.status_code == 201
        await asyncio.sleep(0.05)
        assert not broker.sent
        broker.away = False
        async with asyncio.timeout(5):
            while not broker.sent:
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(work())


def test_a_take_over_is_exclusive_and_shown_on_the_wall_until_it_is_handed_back(
    as_: As, live: Store, broker: Broker
) -> None:
    take, back = {"kind": "take-over"}, {"kind": "hand-back"}
    sue, ben = as_("sue"), as_("ben")
    assert sue.post(PATH, json=back).status_code == 409
    assert sue.post(PATH, json=take).status_code == 201
    refused = ben.post(PATH, json=take)
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "sue has already taken over this session",
    )
    assert "taken over</span> by sue" in as_("ben").get("/").text
    assert "taken over</span> by sue" in as_("noor").get("/").text
    analysts = as_("ana").get("/").text
    assert "taken over</span>," in analysts
    assert "by sue" not in analysts
    assert "<b>sue</b> took over at" in page(as_, "ben")
    assert 'value="hand-back"' in page(as_, "ben")
    assert ben.post(PATH, json=back).status_code == 201, "somebody else may hand it back"
    assert "taken over" not in as_("sue").get("/").text
    assert ben.post(PATH, json=take).status_code == 201


def test_the_console_works_with_forms_alone(as_: As, live: Store, broker: Broker) -> None:
    form = "/sessions/north%2Flive/interventions"
    sue = as_("sue")
    answer = sue.post(form, data={"kind": "note", "text": " Slow down "})
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        "/sessions/north%2Flive#hand-over",
    )
    assert sue.post(form, data={"kind": "note", "text": " "}).status_code == 422
    assert sue.post(form, data={"kind": "take-over", "text": ""}).status_code == 303
    assert sue.post(form, data={"kind": "take-over"}).status_code == 409
    assert [(i["kind"], i["text"]) for i in sue.get(PATH).json()] == [
        ("note", "Slow down"),
        ("take-over", None),
    ]
    fragment = sue.get(form).text
    assert fragment.startswith('<div id="hand-over-list">')
    assert "Slow down" in fragment


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "note"},
        {"kind": "note", "text": ""},
        {"kind": "note", "text": "\x00"},
        {"kind": "note", "text": "x" * 4001},
        {"kind": "take-over", "text": "words"},
        {"kind": "shout", "text": "words"},
        {**NOTE, "person": "ben"},
    ],
)
def test_an_invalid_intervention_is_refused(as_: As, live: Store, body: dict[str, str]) -> None:
    assert as_("sue").post(PATH, json=body).status_code == 422


def test_an_intervention_may_name_an_alert_of_its_session_only(as_: As, live: Store) -> None:
    row = {
        "alert_id": "a",
        "episode_id": "e",
        "rule": "r",
        "severity": "critical",
        "labels": {},
        "session_id": LIVE,
        "bundle": batches.BUNDLE,
        "state": "firing",
        "previous": "pending",
        "episode": 1,
        "occurred_at": NOW,
        "reason": "",
        "values": {},
        "turns": [],
        "rules_digest": "",
    }
    with live.transaction() as connection:
        connection.execute(sa.insert(tables.alerts).values(row))
        other = {**row, "alert_id": "b", "episode_id": "f", "session_id": "north-0"}
        connection.execute(sa.insert(tables.alerts).values(other))
    sue = as_("sue")
    assert sue.post(PATH, json={**NOTE, "episode_id": "e"}).json()["episode_id"] == "e"
    assert sue.post(PATH, json={**NOTE, "episode_id": "f"}).status_code == 404


def test_ended_foreign_and_unknown_sessions_are_refused(as_: As, live: Store) -> None:
    ended = as_("sue").post(f"{API}/sessions/north-0/interventions", json=NOTE)
    assert (ended.status_code, ended.json()["detail"]) == (409, "the session has ended")
    assert as_("sam").post(PATH, json=NOTE).status_code == 404, "of another team"
    assert as_("sam").get(PATH).status_code == 404
    assert as_("sue").post(f"{API}/sessions/none/interventions", json=NOTE).status_code == 404


def test_a_session_whose_consent_was_withdrawn_gets_and_publishes_nothing(
    as_: As, live: Store, broker: Broker
) -> None:
    sue = as_("sue")
    stored = sue.post(PATH, json=NOTE).json()
    states = live.load_states([LIVE], batches.BUNDLE)
    record = batches.consent("withdrawn", session_id=LIVE, version="2")
    live.commit(batches.process([record], states))
    assert sue.post(PATH, json=NOTE).status_code == 404
    assert publish(sue) == 0
    receipt = f"{API}/interventions/{stored['intervention_id']}/receipt"
    assert as_("desk").post(receipt).status_code == 404


def test_a_limited_token_confirms_only_sessions_within_its_limits(as_: As, live: Store) -> None:
    stored = as_("sue").post(PATH, json=NOTE).json()
    receipt = f"{API}/interventions/{stored['intervention_id']}/receipt"
    assert limited(live, as_, team="south").post(receipt).status_code == 404
    assert limited(live, as_, team="north").post(receipt).status_code == 200
    assert as_("desk").post(f"{API}/interventions/none/receipt").status_code == 404
    assert "text" not in as_("desk").post(receipt).json(), "a program cannot read"


def test_a_token_that_may_not_read_text_gets_no_notes(as_: As, live: Store) -> None:
    as_("sue").post(PATH, json=NOTE)
    scores = People(live).create_token("sue", "s", rights=frozenset({Right.READ_SCORES}))
    client = Client(as_("").app, scores)
    assert client.get(PATH).status_code == 403
    assert client.post(PATH, json=NOTE).status_code == 403


def test_the_text_is_encrypted_redacted_audited_and_erased(
    as_: As, live: Store, broker: Broker
) -> None:
    sue = as_("sue")
    words = {"kind": "note", "text": "write to client@example.org about the weekend"}
    shown = sue.post(PATH, json=words).json()["text"]
    assert "client@example.org" not in shown
    [row] = stored_rows(live, tables.interventions)
    assert "weekend" not in row["text"]
    publish(sue)
    assert broker.sent[0][2]["text"] == shown
    entries = [e for e in audit.latest(live, LIVE) if e.action == AuditAction.INTERVENE.value]
    assert [(e.person, e.detail) for e in entries] == [("sue", "note")]
    sue.get(PATH)
    assert audit.latest(live, LIVE)[0].detail == "interventions"
    erasure.erase(live, [LIVE], NOW)
    assert stored_rows(live, tables.interventions) == []
    assert publish(sue) == 0


def test_live_pages_learn_of_an_intervention_and_its_receipt_without_the_text(
    as_: As, live: Store, broker: Broker
) -> None:
    sue = as_("sue")
    hub = services_of(sue).hub
    start = hub.position

    async def work() -> None:
        hub.bind_loop()
        stored = await asyncio.to_thread(sue.post, PATH, json=NOTE)
        await services_of(sue).interventions.publish_due()
        path = f"{API}/interventions/{stored.json()['intervention_id']}/receipt"
        for _ in range(2):
            await asyncio.to_thread(as_("desk").post, path)

    asyncio.run(work())
    with hub.subscribe(Subscription(ALL_SESSIONS), start) as (_, missed):
        data = [each.encoded("e", deidentified=False).split(b"data: ")[1] for each in missed]
        found = [(e.kind.value, msgspec.json.decode(d)) for e, d in zip(missed, data, strict=True)]
    assert [(kind, data["type"]) for kind, data in found] == [
        ("intervention", "intervention"),
        ("intervention", "intervention"),
        ("intervention", "intervention_receipt"),
    ]
    assert "weekend" not in str(found)
