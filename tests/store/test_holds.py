"""A legal hold stops retention and erasure of its session only."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from stream_app.store.accounts import audit
from stream_app.store.lifecycle import erasure, holds, retention
from stream_app.store.lifecycle.holds import HoldError, SessionHeld
from stream_app.store.stream.repository import Store
from tests.store import batches
from tests.store.reading import contents

NOW = datetime(2026, 1, 6, tzinfo=UTC)
LATER = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def held(store: Store) -> Store:
    """Two sessions, ``a`` on hold."""
    log = [batches.turn(seq, session_id=name) for seq in range(6) for name in "ab"]
    store.commit(batches.process([*log, batches.end(session_id="a")]))
    holds.add(store, "a", "case 12/2026", "ada", NOW)
    return store


def sessions_in(store: Store, *without: str) -> set[str]:
    found = {name: some for name, some in contents(store).items() if name not in without}
    return {row["session_id"] for some in found.values() for row in some if row.get("session_id")}


def test_retention_leaves_a_held_session_as_it_is(held: Store) -> None:
    before = contents(held)
    removed = sum(retention.purge(held, LATER, LATER, LATER), Counter[str]())
    assert removed["turns"] == 6, "of the other session"
    after = contents(held)
    for name in ("sessions", "session_states", "turns", "turn_scores", "session_keys", "alerts"):
        of_a = [row for row in before[name] if row["session_id"] == "a"]
        assert of_a
        assert after[name] == of_a, name


def test_after_the_hold_the_session_expires(held: Store) -> None:
    holds.remove(held, "a", "ada")
    list(retention.purge(held, LATER, LATER, LATER))
    assert sessions_in(held, "rollup_marks") == set()


def test_erasing_a_held_session_is_refused_and_nothing_is_erased(held: Store) -> None:
    before = contents(held)
    with pytest.raises(SessionHeld, match="1 of 2 sessions are on legal hold, so none was erased"):
        erasure.erase(held, ["b", "a"], NOW)
    assert contents(held) == before
    erasure.erase(held, ["b"], NOW)
    holds.remove(held, "a", "ada")
    erasure.erase(held, ["a"], NOW)
    assert sessions_in(held) == set()


def test_a_hold_that_is_added_during_an_erasure_keeps_its_session(
    held: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are looked at first; each is looked at again in its own transaction."""
    holds.remove(held, "a", "ada")
    one = erasure._erase_one

    def hold_first(store: Store, key: str, *rest: Any) -> Any:
        if key == "a":
            holds.add(store, "a", "case 13/2026", "bea", NOW)
        return one(store, key, *rest)

    monkeypatch.setattr(erasure, "_erase_one", hold_first)
    with pytest.raises(SessionHeld, match="1 of 1"):
        erasure.erase(held, ["b", "a"], NOW)
    assert sessions_in(held, "erasure_receipts") == {"a"}


def test_a_reason_may_have_200_characters(held: Store) -> None:
    holds.add(held, "b", "x" * 200, "ada", NOW)
    assert {hold.session_id for hold in holds.find(held)} == {"a", "b"}


def test_holds_are_audited_and_listed(held: Store) -> None:
    [hold] = holds.find(held)
    assert (hold.session_id, hold.reason, hold.person) == ("a", "case 12/2026", "ada")
    holds.remove(held, "a", "bea")
    assert holds.find(held) == []
    entries = [
        (entry.person, entry.action, entry.session_id, entry.detail)
        for entry in reversed(audit.latest(held))
    ]
    assert entries == [
        ("ada", "legal hold", "a", "added"),
        ("bea", "legal hold", "a", "removed"),
    ]


@pytest.mark.parametrize(
    ("session", "reason", "message"),
    [
        ("a", "again", "already on legal hold"),
        ("unknown", "case 1", "no such session"),
        ("b", " ", "needs a reason"),
        ("b", "x" * 201, "at most 200 characters"),
    ],
)
def test_a_hold_that_cannot_be_added_is_one_sentence(
    held: Store, session: str, reason: str, message: str
) -> None:
    with pytest.raises(HoldError, match=message):
        holds.add(held, session, reason, "ada", NOW)
    with pytest.raises(HoldError, match="not on legal hold"):
        holds.remove(held, "b", "ada")
    assert len(holds.find(held)) == 1
