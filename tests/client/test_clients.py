"""Both clients against the application in the test process, over a network that fails."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, get_type_hints

import httpx
import msgspec
import pytest
from msgspec import structs

from stream_app.client import (
    Batching,
    ClientError,
    EventsNotSent,
    NewTurn,
    RapportClient,
    RequestRefused,
    Retries,
    ServiceUnavailable,
    answers,
    consent,
    delete,
    edit,
    end,
    outcome,
    requests,
    turn,
)
from stream_app.contracts.events import Turn
from stream_app.errors import BrokerUnavailable
from tests.client.driving import (
    QUICK,
    Fault,
    Network,
    answer_lost,
    answered,
    driving,
    request_lost,
)
from tests.web.api.conftest import filled
from tests.web.api.topic import Topic
from tests.web.in_process import InProcessWeb

BOTH = pytest.mark.parametrize("kind", ["sync", "async"])


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    return Topic().replacing_the_broker(monkeypatch)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessWeb]:
    running = filled(InProcessWeb(tmp_path_factory.mktemp("client")))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def network(web: InProcessWeb) -> Network:
    return Network(web.app)


def said(session: str, text: str, **more: Any) -> NewTurn:
    return turn(session, "client", text, speaker_id="c-9", consent=True, **more)


def texts(topic: Topic, session: str) -> list[tuple[int, str]]:
    sent = map(json.loads, topic.of(session))
    return [(each["seq"], each["text"]) for each in sent if each["type"] == "turn"]


@BOTH
async def test_turns_ends_outcomes_and_consent_are_sent(
    web: InProcessWeb, network: Network, topic: Topic, kind: str
) -> None:
    session = f"all-{kind}"
    async with driving(kind, network, web.tokens["pump"]) as rapport:
        results = await rapport.send(
            said(session, "Grüße", domain="counselling"),
            consent(session, "given", version="2026-03"),
            said(session, "two"),
            outcome(session, "rating", 4, seq=1),
            edit(session, "three", seq=1),
            delete(session, turn_id="m-1"),
            end(session, "hung up"),
        )
        assert [result.seq for result in results] == [0, None, 1, None, None, None, None]
        assert all(result.accepted for result in results)
        [refused] = await rapport.send(said(session, " "))
        assert (refused.accepted, refused.code) == (False, "empty-text")
        assert await rapport.send() == []
    assert texts(topic, session) == [(0, "Grüße"), (1, "two")]
    assert len(topic.of(session)) == 7


@pytest.mark.parametrize(
    "faults",
    [
        [request_lost, request_lost],
        [answer_lost, answer_lost, answer_lost],
        [answered(502), answered(503, **{"Retry-After": "0"}), answer_lost, answered(429)],
    ],
)
@BOTH
async def test_a_retry_never_adds_a_turn(
    web: InProcessWeb, network: Network, topic: Topic, faults: list[Fault], kind: str
) -> None:
    session = f"retried-{kind}-{len(faults)}-{faults[0].__name__}"
    network.faults = list(faults)
    async with driving(kind, network, web.tokens["pump"]) as rapport:
        results = await rapport.send(said(session, "one"), said(session, "two"))
        assert [result.seq for result in results] == [0, 1]
    assert texts(topic, session) == [(0, "one"), (1, "two")]
    assert len(network.seen) == len(faults) + 1
    assert len({request.headers["idempotency-key"] for request in network.seen}) == 1


@BOTH
async def test_a_key_of_the_caller_holds_across_clients(
    web: InProcessWeb, network: Network, topic: Topic, kind: str
) -> None:
    session = f"key-{kind}"
    event = said(session, "one")
    for _ in range(2):
        async with driving(kind, network, web.tokens["pump"]) as rapport:
            [result] = await rapport.send(event, key=f"delivery {kind}")
            assert result.seq == 0
    assert texts(topic, session) == [(0, "one")]
    async with driving(kind, network, web.tokens["pump"]) as rapport:
        with pytest.raises(RequestRefused) as refused:
            await rapport.send(said(session, "other"), key=f"delivery {kind}")
        assert refused.value.kind == "urn:rapport:problem:key-reused"
        for bad in ("", "a\nb", 'a"b', "é", "x" * 191):
            with pytest.raises(ClientError, match="1 to 190"):
                await rapport.send(event, key=bad)


@BOTH
async def test_it_gives_up_in_words_and_without_the_token(
    web: InProcessWeb, network: Network, topic: Topic, kind: str
) -> None:
    async with driving(kind, network, web.tokens["pump"]) as rapport:
        network.faults = [answered(503)] * QUICK.attempts
        with pytest.raises(ServiceUnavailable, match="503"):
            await rapport.send(said("up", "one"))
        topic.problem = BrokerUnavailable("away")
        with pytest.raises(ServiceUnavailable, match="broker"):
            await rapport.send(said("up", "one"))
        topic.problem = None
        network.faults = [request_lost] * QUICK.attempts
        with pytest.raises(ServiceUnavailable, match="ConnectTimeout") as lost:
            await rapport.send(said("up", "secret words"))
        assert "secret" not in str(lost.value)
        network.faults = [answered(200)]
        with pytest.raises(ClientError, match="check the URL"):
            await rapport.send(said("up", "one"))
    async with driving(kind, network, "rapport_wrong") as rapport:
        before = len(network.seen)
        with pytest.raises(RequestRefused, match="401") as refused:
            await rapport.send(said("up", "one"))
        assert refused.value.status == 401
        assert "rapport_wrong" not in str(refused.value) + repr(vars(refused.value))
        assert len(network.seen) == before + 1, "repeating it would not help"


@BOTH
async def test_queued_events_are_sent_in_batches_in_order(
    web: InProcessWeb, network: Network, topic: Topic, kind: str
) -> None:
    session = f"queued-{kind}"
    network.faults = [answer_lost, None, answered(502)]
    async with driving(kind, network, web.tokens["pump"], events=4, linger=5, waiting=3) as rapport:
        began = time.monotonic()
        futures = [await rapport.queue(said(session, str(number))) for number in range(10)]
        await rapport.flush()
        assert [(await future).seq for future in futures] == list(range(10))
        await rapport.queue(said(session, "10"))
    assert time.monotonic() - began < 4, "neither flush nor close waits for more events"
    assert texts(topic, session) == [(number, str(number)) for number in range(11)]
    assert len(network.seen) == 4 + len([answer_lost, answered])
    with pytest.raises(ClientError, match="closed"):
        await rapport.queue(said(session, "too late"))


@BOTH
async def test_a_batch_waits_for_linger_and_is_bounded_in_bytes(
    web: InProcessWeb, network: Network, topic: Topic, kind: str
) -> None:
    session = f"linger-{kind}"
    async with driving(kind, network, web.tokens["pump"], linger=0.05, bytes=1000) as rapport:
        first = await rapport.queue(said(session, "a"))
        second = await rapport.queue(said(session, "b"))
        assert [(await asyncio.wait_for(each, 10)).seq for each in (first, second)] == [0, 1]
        assert len(network.seen) == 1
        for _ in range(2):
            await rapport.queue(said(session, "x" * 1000))
        await rapport.flush()
        assert len(network.seen) == 3


@BOTH
async def test_queued_events_that_are_refused_or_lost_are_reported_once(
    web: InProcessWeb, network: Network, topic: Topic, kind: str
) -> None:
    async with driving(kind, network, web.tokens["pump"], linger=0) as rapport:
        refused = await rapport.queue(said("losses", " "))
        with pytest.raises(EventsNotSent, match="1 refused, the first as empty-text") as told:
            await rapport.flush()
        assert [result.code for result in told.value.refused] == ["empty-text"]
        assert not (await refused).accepted
        await rapport.flush()
        network.faults = [answered(503)] * QUICK.attempts
        lost = await rapport.queue(said("losses", "one"))
        with pytest.raises(EventsNotSent, match=r"1 without an answer.*503"):
            await rapport.flush()
        with pytest.raises(ServiceUnavailable):
            await lost
        network.faults = [answered(403)]
        await rapport.queue(said("losses", "two"))
        with pytest.raises(EventsNotSent, match="403"):
            await rapport.close()


@BOTH
async def test_a_batch_of_which_nothing_is_accepted_has_results(
    web: InProcessWeb, network: Network, topic: Topic, kind: str
) -> None:
    async with driving(kind, network, web.tokens["pump"]) as rapport:
        results = await rapport.send(said("none", " "), said("none", "\t"))
        assert [(each.accepted, each.code) for each in results] == [(False, "empty-text")] * 2
        assert len(network.seen) == 1, "not repeated"
        assert texts(topic, "none") == []
        network.faults = [answered(422)]
        with pytest.raises(RequestRefused, match="422"):
            await rapport.send(said("none", "one"))


@BOTH
async def test_scores_are_read_page_by_page(web: InProcessWeb, network: Network, kind: str) -> None:
    async with driving(kind, network, web.tokens["sue"]) as rapport:
        network.faults = [request_lost]
        session = await rapport.session("north-1")
        assert (session.turns, session.status.value) == (6, "closed")
        assert session.mechanisms["explorations"].mean >= 0
        turns = await rapport.turns("north-1")
        assert [each.seq for each in turns] == list(range(6))
        assert turns[1].scores[0].expressed
        everything = await rapport.sessions(limit="1")
        assert [each.session_id for each in everything] == ["north-1", "north-2", "south-1"]
        assert [each.session_id for each in await rapport.sessions(team="south")] == ["south-1"]
        for missing in ("nowhere", "a/b?c#d", "é"):
            with pytest.raises(RequestRefused, match="404"):
                await rapport.session(missing)


def test_long_lists_are_split_by_number_and_size() -> None:
    batches = list(requests.batches([b"{}"] * 1001, "k"))
    assert [(batch.count, batch.key) for batch in batches] == [(500, "k"), (500, "k/1"), (1, "k/2")]
    large = [b"x" * 1024 * 1024] * 5
    split = list(requests.batches(large, None))
    assert [batch.count for batch in split] == [3, 2]
    assert all(len(batch.body) <= requests.MAX_BYTES for batch in split)
    assert len({batch.key for batch in split}) == 2


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7000", 7000.0),
        (format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True), 86_000.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("9" * 5000, 999_999_999.0),
        ("", None),
    ],
    ids=["seconds", "tomorrow", "past", "word", "negative", "endless", "empty"],
)
def test_retry_after_is_a_number_or_a_date(value: str, seconds: float | None) -> None:
    response = httpx.Response(503, headers={"Retry-After": value})
    with pytest.raises(ServiceUnavailable) as asked:
        requests.decoded(response, answers.BatchAnswer)
    assert asked.value.retry_after == (None if seconds is None else pytest.approx(seconds, abs=900))


def test_a_long_retry_after_is_honoured_or_ends_the_attempts(
    web: InProcessWeb, network: Network, topic: Topic
) -> None:
    network.faults = [answered(503, **{"Retry-After": "1"})]
    url, token = "http://rapport.test", web.tokens["pump"]
    with RapportClient(url, token, retries=QUICK, transport=network) as rapport:
        began = time.monotonic()
        rapport.send(said("patient", "one"))
        assert time.monotonic() - began >= 1
        network.faults = [answered(503, **{"Retry-After": "3600"})]
        with pytest.raises(ServiceUnavailable):
            rapport.send(said("patient", "two"))


def test_new_turns_have_the_fields_of_turns_and_check_them() -> None:
    of_turns = {field.name: field.type for field in structs.fields(Turn)}
    of_new = {field.name: field.type for field in structs.fields(NewTurn)}
    assert of_new.keys() == of_turns.keys()
    event = said("s", "hello", lang="en", team="north", approach="motivational-interviewing")
    sent = json.loads(requests.encode(event))
    assert "seq" not in sent
    assert json.loads(requests.encode(said("s", "hello", seq=3)))["seq"] == 3
    for wrong in ({"domain": "sales"}, {"seq": -1}, {"consnet": True}, {"team": ""}):
        with pytest.raises(ValueError, match=r"`\$|unknown field"):
            said("s", "hello", **wrong)
    with pytest.raises(ValueError, match="role"):
        turn("s", "robot", "hello", speaker_id="r")


def test_answers_have_fields_of_the_api(web: InProcessWeb) -> None:
    schemas = web.anonymous_client().get("/api/v1/openapi.json").json()["components"]["schemas"]
    for struct, name in {
        answers.EventResult: "EventResult",
        answers.Session: "SessionCard",
        answers.TurnScores: "TurnRead",
        answers.Score: "ScoreOfTurn",
        answers.Mechanism: "Mechanism",
        answers.Problem: "Problem",
    }.items():
        assert get_type_hints(struct).keys() <= schemas[name]["properties"].keys(), name


@pytest.mark.parametrize(
    "wrong", [{"events": 0}, {"events": 501}, {"bytes": 0}, {"linger": -1}, {"waiting": 0}]
)
def test_limits_of_batches_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"batch|linger"):
        Batching(**wrong)


def test_an_address_without_a_scheme_is_a_mistake_of_the_caller() -> None:
    with RapportClient("rapport.example", "t", retries=Retries(attempts=1)) as rapport:
        with pytest.raises(ClientError, match="check the URL") as wrong:
            rapport.send(said("s", "one"))
        assert not isinstance(wrong.value, ServiceUnavailable)


def test_it_imports_no_part_of_the_service() -> None:
    code = "import stream_app.client, sys; print(*sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    top = {name.partition(".")[0] for name in shown}
    heavy = {"faust", "onnxruntime", "aiokafka", "sqlalchemy", "numpy", "fastapi", "pydantic"}
    assert not top & heavy
    assert msgspec.__name__ in top
