"""Erasure and legal holds in the console: counted first, confirmed by the password, audited."""

from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from stream_app.store.accounts import audit
from stream_app.store.accounts.people import People
from stream_app.store.database import tables
from stream_app.store.lifecycle import holds
from stream_app.store.stream.repository import Store
from stream_app.work.passwords import hash_password
from tests.web.people.client import Client
from tests.web.people.conftest import As
from tests.web.people.test_pages import proper

PASSWORD = "long enough to pass"


@pytest.fixture
def ada(as_: As, filled: Store) -> Client:
    """An administrator with a password."""
    People(filled).set_password("ada", hash_password(PASSWORD))
    return as_("ada")


def stored(store: Store) -> set[str]:
    with store.reading() as connection:
        return set(connection.scalars(sa.select(tables.sessions.c.session_id)))


def turns_of(store: Store, session_id: str) -> int:
    table = tables.turns
    query = sa.select(sa.func.count()).where(table.c.session_id == session_id)
    with store.reading() as connection:
        return connection.scalar(query) or 0


def test_sessions_are_counted_and_then_erased(ada: Client, filled: Store) -> None:
    one, *others = sorted(stored(filled))
    turns = turns_of(filled, one)
    form = {"sessions": f"{one}\n\n unknown \n{one}", "speaker": ""}
    page = proper(ada.post("/admin/erasure/plan", data=form))
    assert "<dt>Sessions named</dt><dd>2</dd>" in page
    assert f"<dt>Stored</dt><dd>1</dd></div><div><dt>Turns</dt><dd>{turns}</dd>" in page
    assert stored(filled) == {one, *others}, "counting changes nothing"

    answer = ada.post("/admin/erasure", data={**form, "password": "wrong"})
    assert answer.status_code == 422
    assert "your password is wrong" in answer.text
    assert one in answer.text, "the form keeps what was typed"
    assert stored(filled) == {one, *others}

    page = proper(ada.post("/admin/erasure", data={**form, "password": PASSWORD}))
    assert f"1 session with {turns} turn" in page
    assert stored(filled) == set(others)
    [entry] = [each for each in audit.latest(filled) if each.action == "erase"]
    assert (entry.person, entry.detail) == ("ada", f"1 sessions, {turns} turns")


def test_a_person_is_erased_by_the_speaker_id_in_events(ada: Client, filled: Store) -> None:
    with filled.transaction() as connection:
        [session] = list(connection.scalars(sa.select(tables.sessions.c.session_id).limit(1)))
        speaker = filled.privacy.pseudonym("client@example.org")
        connection.execute(
            sa.insert(tables.session_speakers),
            [{"session_id": session, "speaker": speaker, "role": "client"}],
        )
    before = stored(filled)
    page = proper(ada.post("/admin/erasure/plan", data={"speaker": "client@example.org"}))
    assert "Erase 1 session</button>" in page
    form = {"speaker": "client@example.org", "password": PASSWORD}
    proper(ada.post("/admin/erasure", data=form))
    assert stored(filled) == before - {session}


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({}, "name sessions or a speaker"),
        ({"speaker": "nobody"}, "one of these speakers has no stored session"),
        ({"sessions": "x" * 201}, "an id has at most 200 characters"),
        ({"sessions": "\n".join(map(str, range(501)))}, "these are 501 sessions"),
    ],
)
def test_what_can_not_be_planned_is_said(ada: Client, form: dict[str, str], problem: str) -> None:
    for path in ("/admin/erasure/plan", "/admin/erasure"):
        answer = ada.post(path, data={**form, "password": PASSWORD})
        assert answer.status_code == 422
        assert problem in answer.text


def test_a_session_on_hold_is_not_erased(ada: Client, filled: Store) -> None:
    one, other, *_ = sorted(stored(filled))
    page = proper(
        ada.post(
            "/admin/holds", data={"session_id": one, "reason": "case 12", "password": PASSWORD}
        )
    )
    assert "The session is on hold." in page
    assert "case 12" in page
    form = {"sessions": f"{one}\n{other}"}
    page = proper(ada.post("/admin/erasure/plan", data=form))
    assert "<dt>On legal hold</dt><dd>1</dd>" in page
    assert '<button class="primary">' not in page
    answer = ada.post("/admin/erasure", data={**form, "password": PASSWORD})
    assert answer.status_code == 422
    assert "on legal hold" in answer.text
    assert {one, other} <= stored(filled)
    page = proper(ada.post("/admin/holds/end", data={"session_id": one, "password": PASSWORD}))
    assert "The hold has ended" in page
    assert holds.find(filled) == []
    proper(ada.post("/admin/erasure", data={**form, "password": PASSWORD}))
    assert not {one, other} & stored(filled)


def test_a_refused_hold_keeps_what_was_typed(ada: Client, filled: Store) -> None:
    form = {"session_id": "unknown", "reason": "case 12", "password": PASSWORD}
    answer = ada.post("/admin/holds", data=form)
    assert answer.status_code == 422
    assert "no such session is stored" in answer.text
    assert 'value="unknown"' in answer.text
    assert 'value="case 12"' in answer.text
    assert holds.find(filled) == []


def test_nobody_else_erases_or_holds(as_: As, filled: Store) -> None:
    before = stored(filled)
    now = datetime.now(UTC)
    holds.add(filled, min(before), "case 1", "ada", now)
    for name in ("sue", "noor", "ana"):
        for path in ("/erasure/plan", "/erasure", "/holds", "/holds/end"):
            form = {"sessions": min(before), "session_id": min(before), "password": PASSWORD}
            assert as_(name).post(f"/admin{path}", data=form).status_code == 403
    assert stored(filled) == before
    assert len(holds.find(filled)) == 1
