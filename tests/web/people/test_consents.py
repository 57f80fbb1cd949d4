"""Consent in the API and on the session page; hidden sessions are hidden everywhere."""

from typing import Any

import pytest

from stream_app.contracts.events import Consent, ConsentStatus, decode
from stream_app.store.alerts.deliveries import Deliveries
from stream_app.store.stream.repository import Store
from stream_app.web.live.publisher import Publisher
from tests.store import batches
from tests.web.people.conftest import As

API = "/api/v1"
ONE = f"{API}/sessions/north-0"


@pytest.fixture
def withdrawn(filled: Store) -> None:
    """Consent to north-0 was withdrawn after its end."""
    states = filled.load_states(["north-0"], batches.BUNDLE)
    record = batches.consent("withdrawn", session_id="north-0", version="2", source="phone")
    filled.commit(batches.process([record], states))


def test_supervisors_of_the_team_see_the_records(as_: As) -> None:
    found = as_("sue").get(f"{ONE}/consents").json()
    assert (found["consent"], found["withdrawn"], found["hidden"]) == (True, False, False)
    [record] = found["records"]
    assert (record["status"], record["seq"], record["effective"]) == ("given", 0, True)
    page = as_("sue").get("/sessions/north-0").text
    assert "<td>given</td>" in page
    assert as_("sam").get(f"{ONE}/consents").status_code == 404, "of another team"
    assert as_("noor").get(f"{ONE}/consents").status_code == 403
    assert 'id="consent-title"' not in as_("noor").get("/sessions/north-0").text


@pytest.mark.usefixtures("withdrawn")
@pytest.mark.parametrize("name", ["sue", "pat", "noor", "ana", "ada"])
def test_nothing_of_a_hidden_session_can_be_read(as_: As, name: str) -> None:
    client = as_(name)
    for path in ("", "/turns", "/history", "/feedback"):
        assert client.get(ONE + path).status_code in (403, 404), path
    for path in ("/sessions", "/alerts", "/history", "/ratings?session_id=north-0", "/speakers"):
        assert "north-0" not in client.get(API + path).text, path
    for path in ("sessions?format=csv", "turns?format=jsonl&text=true", "convokit"):
        answer = client.get(f"{API}/exports/{path}")
        assert b"north-0" not in answer.content, path
    if name == "noor":
        assert b"north-1" in client.get(f"{API}/exports/turns?format=jsonl").content
    for path in ("/", "/alerts", "/sessions/north-0/now", "/sessions/north-0/turns/1"):
        assert "hard" not in client.get(path).text, path
        if path == "/":
            assert "north-0" not in client.get(path).text


@pytest.mark.usefixtures("withdrawn")
def test_supervisors_see_that_consent_was_withdrawn_and_nothing_else(as_: As) -> None:
    found = as_("sue").get(f"{ONE}/consents").json()
    assert (found["withdrawn"], found["hidden"]) == (True, True)
    assert [record["status"] for record in found["records"]] == ["given", "withdrawn"]
    page = as_("sue").get("/sessions/north-0")
    assert page.status_code == 200
    assert "Consent was withdrawn" in page.text
    assert "hard" not in page.text
    assert "risk" not in page.text.lower().replace("not a diagnosis, risk assessment", "")
    assert as_("noor").get("/sessions/north-0").status_code == 404


def test_a_supervisor_records_a_withdrawal(as_: As, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, bytes, bytes]] = []

    async def send(self: Publisher, topic: str, key: bytes, value: bytes) -> Any:
        async def stored() -> None:
            sent.append((topic, key, value))

        return stored()

    monkeypatch.setattr(Publisher, "send", send)
    body = {"status": "withdrawn", "version": "2026-03", "source": "letter"}
    assert as_("sam").post(f"{ONE}/consents", json=body).status_code == 404
    assert as_("noor").post(f"{ONE}/consents", json=body).status_code == 403
    assert sent == []
    assert as_("sue").post(f"{ONE}/consents", json=body).status_code == 202
    [(topic, key, value)] = sent
    event = decode(value)
    assert (topic, key) == ("dialogue.turns", b"north-0")
    assert isinstance(event, Consent)
    assert (event.status, event.version) == (ConsentStatus.WITHDRAWN, "2026-03")
    trail = as_("ada").get(f"{API}/audit").json()["items"]
    acts = [(e["person"], e["session_id"], e["detail"]) for e in trail]
    assert ("sue", "north-0", "withdrawn") in acts
    for wrong in ({"status": "maybe"}, {"status": "given", "version": "v" * 51}, {}):
        assert as_("sue").post(f"{ONE}/consents", json=wrong).status_code == 422


def test_without_a_broker_a_record_is_refused(as_: As, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAPPORT_KAFKA_BROKERS", "127.0.0.1:1")
    answer = as_("sue").post(f"{ONE}/consents", json={"status": "given"})
    assert answer.status_code == 503
    assert "retry-after" in answer.headers


def test_notifications_of_a_hidden_session_are_not_sent(filled: Store) -> None:
    deliveries = Deliveries(filled, "pager")
    before = {alert.session_id for alert in deliveries.due()}
    assert "north-0" in before
    states = filled.load_states(["north-0"], batches.BUNDLE)
    record = batches.consent("withdrawn", session_id="north-0")
    filled.commit(batches.process([record], states))
    assert {alert.session_id for alert in deliveries.due()} == before - {"north-0"}
