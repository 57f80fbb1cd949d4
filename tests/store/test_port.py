"""Conformance suite of stores: the port ``core.ports.SessionStore``."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from servers.postgres import Server
from stream_app.core.rules.alerts import AlertStatus
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.ports import Message, SessionStore
from stream_app.core.session.session_state import Versioned
from stream_app.errors import StaleState
from stream_app.store.lifecycle import erasure
from tests.fake_store import FakeStore
from tests.store import databases
from tests.store.batches import BUNDLE, end, prepare, process, turn
from tests.store.databases import open_store

LOG = [turn(seq) for seq in range(9)]
MESSAGES = [Message("scores", b"s", b"\x00\xff"), Message("alerts", b"s", b"{}")]
NINE = datetime(2026, 1, 5, 9, tzinfo=UTC)


@dataclass
class Kind:
    """A store, a second worker's store over the same data, and a way to erase a session."""

    store: SessionStore
    other: SessionStore
    erase: Callable[[str], object]


@pytest.fixture(params=["fake", "sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kind]:
    if request.param == "fake":
        fake = FakeStore()
        yield Kind(fake, fake.second_connection(), fake.erase)
        return
    server: Server | None = None
    if request.param == "sqlite":
        url = databases.sqlite(tmp_path / "test.db")
    else:
        server = request.getfixturevalue("server")
        url = databases.postgresql(server)
    store, other = prepare(open_store(url)), prepare(open_store(url))
    yield Kind(store, other, lambda session_id: erasure.erase(store, [session_id], NINE))
    store.close()
    other.close()
    if server is not None:
        server.drop(url)


@pytest.fixture
def store(kind: Kind) -> SessionStore:
    return kind.store


def loaded(store: SessionStore, *session_ids: str) -> dict[str, Versioned]:
    return store.load_states(session_ids or ["s"], BUNDLE)


def at(hour: int) -> str:
    return f"2026-01-05T{hour:02}:00:00Z"


def waking(session_id: str, hour: int, wake: int, partition: int = 0) -> BatchResult:
    """A session with a turn at one hour and a timed rule due at another."""
    values = [turn(session_id=session_id, occurred_at=at(hour))]
    result = process(values, partition=partition)
    state = result.sessions[session_id].state
    state.alerts = {"silence": AlertStatus(due_at=NINE.replace(hour=wake))}
    return heard(hour, result)


def heard(hour: int, result: BatchResult) -> BatchResult:
    """The same batch, with sessions last heard of at that hour."""
    for versioned in result.sessions.values():
        versioned.seen_at = NINE.replace(hour=hour)
    return result


@pytest.mark.parametrize("cut", [1, 4, 8])
def test_a_session_continues_from_its_stored_state(store: SessionStore, cut: int) -> None:
    store.commit(process(LOG[:cut], partition=3))
    store.commit(process(LOG[cut:], loaded(store), partition=3))
    known = loaded(store)["s"]
    assert known.state == process(LOG, partition=3).sessions["s"].state
    assert (known.version, known.partition) == (2, 3)


def test_states_are_returned_in_the_requested_order_without_unknown_ones(
    store: SessionStore,
) -> None:
    store.commit(process([turn(session_id="t"), turn(session_id="s")]))
    assert list(loaded(store, "s", "nobody", "t")) == ["s", "t"]
    assert store.load_states(["s"], "another bundle") == {}
    assert store.load_states([], BUNDLE) == {}


def test_loaded_states_are_independent_copies(store: SessionStore) -> None:
    store.commit(process(LOG[:3]))
    process(LOG[3:], loaded(store))
    assert loaded(store)["s"].state == process(LOG[:3]).sessions["s"].state


def test_a_commit_increments_the_versions_of_its_sessions(store: SessionStore) -> None:
    states: dict[str, Versioned] = {}
    for seq in range(3):
        store.commit(process([turn(seq)], states))
        assert states["s"].version == seq + 1
    assert loaded(store)["s"].version == 3


def test_a_stale_session_rejects_the_whole_batch(kind: Kind) -> None:
    kind.store.commit(process([turn(session_id=name) for name in "ab"]))
    mine, theirs = loaded(kind.store, "a", "b"), loaded(kind.other, "b")
    kind.other.commit(process([turn(1, session_id="b")], theirs))
    with pytest.raises(StaleState, match="1 of 3"):
        kind.store.commit(process([turn(1, session_id=name) for name in "abc"], mine), MESSAGES)
    assert {key: v.version for key, v in loaded(kind.store, *"abc").items()} == {"a": 1, "b": 2}
    assert {key: v.version for key, v in mine.items()} == {"a": 1, "b": 1, "c": 0}
    assert kind.store.outbox_ids() == []


def test_of_two_workers_with_a_new_session_the_first_commit_wins(kind: Kind) -> None:
    mine, theirs = process(LOG[:3]), process(LOG[:5])
    kind.other.commit(theirs)
    with pytest.raises(StaleState):
        kind.store.commit(mine)
    assert loaded(kind.store)["s"].state == theirs.sessions["s"].state


def test_idle_sessions_are_open_old_and_in_the_given_partitions(store: SessionStore) -> None:
    """Idleness is measured by ``seen_at``, regardless of the times in events."""
    store.commit(heard(3, process([turn(session_id="old", occurred_at=at(23))], partition=1)))
    store.commit(heard(2, process([turn(session_id="older")], partition=2)))
    store.commit(heard(9, process([turn(session_id="fresh", occurred_at=at(1))], partition=1)))
    ended = [turn(session_id="ended"), end(session_id="ended")]
    store.commit(heard(1, process(ended, partition=1)))
    assert list(store.idle_sessions(BUNDLE, NINE, None)) == ["older", "old"]
    assert list(store.idle_sessions(BUNDLE, NINE, None, limit=1)) == ["older"]
    assert list(store.idle_sessions(BUNDLE, NINE, [0, 1])) == ["old"]
    assert list(store.idle_sessions(BUNDLE, NINE, [])) == []
    assert list(store.idle_sessions("another", NINE, None)) == []
    later = NINE + timedelta(seconds=1)
    assert list(store.idle_sessions(BUNDLE, later, None)) == ["older", "old", "fresh"]


def test_due_sessions_are_live_and_have_a_due_rule(store: SessionStore) -> None:
    store.commit(waking("second", 7, 9, partition=1))
    store.commit(waking("first", 7, 8, partition=2))
    store.commit(waking("later", 7, 10, partition=1))
    store.commit(waking("recording", 2, 3, partition=1))
    store.commit(process([turn(session_id="no rule", occurred_at=at(7))], partition=1))
    since = NINE.replace(hour=6)
    assert list(store.due_sessions(BUNDLE, NINE, since, [1, 2])) == ["first", "second"]
    assert list(store.due_sessions(BUNDLE, NINE, since, [1, 2], limit=1)) == ["first"]
    assert list(store.due_sessions(BUNDLE, NINE, since, [1])) == ["second"]
    assert list(store.due_sessions(BUNDLE, NINE, since, [])) == []
    assert list(store.due_sessions("another", NINE, since, [1, 2])) == []


def test_timed_rules_are_due_by_the_services_clock(store: SessionStore) -> None:
    """The session's clock is two hours ahead, which must not matter."""
    store.commit(heard(7, waking("ahead", 9, 10)))
    since = NINE.replace(hour=6)
    assert list(store.due_sessions(BUNDLE, NINE.replace(hour=8), since, [0])) == ["ahead"]
    assert list(store.due_sessions(BUNDLE, NINE.replace(hour=7), since, [0])) == []
    assert loaded(store, "ahead")["ahead"].seen_at == NINE.replace(hour=7)


def test_a_dry_run_changes_nothing(store: SessionStore) -> None:
    result = process([turn()])
    store.dry_run(result, MESSAGES)
    assert loaded(store) == {}
    assert store.outbox_ids() == []
    assert store.commit(result) is None
    assert loaded(store)["s"].version == 1


def test_messages_stay_in_the_outbox_until_they_are_deleted(store: SessionStore) -> None:
    first = store.commit(process([turn()]), MESSAGES)
    second = store.commit(process([turn(session_id="t")]), MESSAGES[:1])
    assert first is not None
    assert second is not None
    assert store.commit(process([turn(session_id="u")])) is None
    assert store.outbox_ids() == [first, second]
    assert store.outbox_ids(limit=1) == [first]
    entries = store.outbox_entries([second, first, 99])
    assert [(entry.id, entry.messages) for entry in entries] == [
        (first, MESSAGES),
        (second, MESSAGES[:1]),
    ]
    store.delete_outbox_entries([first])
    store.delete_outbox_entries([first])
    assert store.outbox_ids() == [second]
    assert store.outbox_entries([first]) == []


def test_erased_sessions_are_deleted_and_recognised(kind: Kind) -> None:
    kind.store.commit(process([turn(session_id=name) for name in "st"]))
    kind.erase("s")
    assert kind.store.find_erased(["s", "t", "nobody"]) == {"s"}
    assert kind.store.find_erased([]) == set()
    assert list(loaded(kind.other, "s", "t")) == ["t"]


def test_sessions_with_a_turn_are_known_as_begun(kind: Kind) -> None:
    kind.store.commit(process([turn(session_id="s", team="north"), end(session_id="t")]))
    [(name, origin)] = kind.other.find_begun(["s", "t", "nobody"]).items()
    assert (name, origin.team, origin.domain) == ("s", "north", None)
    assert origin.started_at == datetime(2026, 1, 5, 10, tzinfo=UTC)
    assert kind.store.find_begun([]) == {}


def test_an_available_store_answers_a_ping(store: SessionStore) -> None:
    store.ping()
