"""Consent in the console: looked up by session, pseudonym or id, and withdrawn after counting."""

from typing import Any

import pytest
import sqlalchemy as sa

from stream_app.contracts.events import Consent, ConsentStatus, decode
from stream_app.core.session.consent import OnWithdrawal
from stream_app.store.accounts import audit
from stream_app.store.accounts.people import People
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from stream_app.web.live.publisher import Publisher
from stream_app.work.passwords import hash_password
from tests.store import batches
from tests.web.people.client import Client
from tests.web.people.conftest import As
from tests.web.people.test_pages import proper

PASSWORD = "long enough to pass"
CLIENT = "client@example.org"
Sent = list[tuple[str, bytes]]


@pytest.fixture
def ada(as_: As, filled: Store) -> Client:
    """An administrator with a password; one client took part in two sessions."""
    People(filled).set_password("ada", hash_password(PASSWORD))
    speaker = filled.privacy.pseudonym(CLIENT)
    rows = [
        {"session_id": session, "speaker": speaker, "role": "client"}
        for session in ("north-0", "south-0")
    ]
    with filled.transaction() as connection:
        connection.execute(sa.insert(tables.session_speakers), rows)
    return as_("ada")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """What was sent to the log: key and value."""
    found: Sent = []

    async def done() -> None:
        return None

    async def send(_: Publisher, _topic: str, key: bytes, value: bytes) -> Any:
        found.append((key.decode(), value))
        return done()

    monkeypatch.setattr(Publisher, "send", send)
    return found


def find(ada: Client, name: str) -> str:
    return proper(ada.post("/admin/consent/find", data={"speaker": name}))


def test_a_session_shows_its_consent_with_date_and_source(ada: Client, filled: Store) -> None:
    page = find(ada, "north-0")
    assert "<td>given</td>" in page
    assert "<td>turn 0</td>" in page
    assert "south-0" not in page
    [entry, *_] = audit.latest(filled, "north-0")
    assert (entry.person, entry.action, entry.detail) == ("ada", "read records", "consents")


def test_a_client_is_found_by_pseudonym_and_by_id(ada: Client, filled: Store) -> None:
    for name in (CLIENT, filled.privacy.pseudonym(CLIENT), f" {CLIENT} "):
        page = find(ada, name)
        assert "north-0" in page
        assert "south-0" in page
        assert "Withdraw consent to 2 sessions" in page
    answer = ada.post("/admin/consent/find", data={"speaker": "olu@example.org"})
    assert answer.status_code == 422, "sessions of a counsellor are others' to withdraw"
    assert "no client this pseudonym or id" in answer.text


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (OnWithdrawal.KEEP, "Nothing is deleted: they stay readable"),
        (OnWithdrawal.HIDE, "Nothing is deleted now: they are hidden"),
        (OnWithdrawal.ERASE, "All of it is deleted, with its scores and alerts"),
    ],
)
def test_it_is_said_in_numbers_what_a_withdrawal_does(
    ada: Client, filled: Store, setting: OnWithdrawal, said: str
) -> None:
    object.__setattr__(ada.app.state.services.settings, "on_withdrawal", setting)
    with filled.reading() as connection:
        here = tables.turns.c.session_id.in_(["north-0", "south-0"])
        turns = connection.scalar(sa.select(sa.func.count()).where(here))
    page = find(ada, CLIENT)
    assert f"This concerns 2 sessions with {turns} stored turns." in page
    assert said in page


def test_a_withdrawal_is_sent_after_the_password(ada: Client, filled: Store, sent: Sent) -> None:
    form = {"speaker": CLIENT}
    answer = ada.post("/admin/consent", data={**form, "password": "wrong"})
    assert answer.status_code == 422
    assert "your password is wrong" in answer.text
    assert "Withdraw consent to 2 sessions" in answer.text, "it can be tried again"
    assert not sent

    page = proper(ada.post("/admin/consent", data={**form, "password": PASSWORD}))
    assert "The withdrawal was sent for 2 sessions" in page
    assert [key for key, _ in sent] == ["north-0", "south-0"]
    for key, value in sent:
        event = decode(value)
        assert isinstance(event, Consent)
        assert (event.session_id, event.status) == (key, ConsentStatus.WITHDRAWN)
        assert event.source == "administrator"
    entries = [each for each in audit.latest(filled) if each.action == "record consent"]
    assert {each.session_id for each in entries} == {"north-0", "south-0"}
    assert {(each.person, each.detail) for each in entries} == {("ada", "withdrawn")}


def test_what_is_withdrawn_is_not_counted_again(ada: Client, filled: Store, sent: Sent) -> None:
    states = filled.load_states(["north-0"], batches.BUNDLE)
    record = batches.consent("withdrawn", session_id="north-0", version="2", source="phone")
    filled.commit(batches.process([record], states))
    page = find(ada, "north-0")
    assert "<td>withdrawn, hidden</td>" in page
    assert "<td>phone</td>" in page
    assert "All 2 records of north-0" in page
    assert "Consent to all of these sessions is withdrawn or refused." in page
    form = {"speaker": "north-0", "password": PASSWORD}
    assert "is withdrawn or refused already" in ada.post("/admin/consent", data=form).text
    assert not sent
    assert "Withdraw consent to 1 session</button>" in find(ada, CLIENT)
