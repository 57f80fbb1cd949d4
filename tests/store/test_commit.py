"""A batch is written in one transaction, completely or not at all, and idempotently."""

import re
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from msgspec import structs

from stream_app.contracts.scores import SessionStatus
from stream_app.core.session.ports import Message
from stream_app.errors import StaleState, StoreError
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from tests.store.batches import BUNDLE, consent, end, outcome, pipeline, process, turn
from tests.store.reading import contents, dump, rows

LOG = [turn(seq) for seq in range(9)]
MESSAGES = [Message("scores", b"s", b"\x00\xff"), Message("alerts", b"s", b"{}")]


def loaded(store: Store, *session_ids: str) -> dict:
    return store.load_states(session_ids or ["s"], BUNDLE)


def test_a_batch_is_written_to_all_tables(store: Store) -> None:
    result = process([*LOG, end(), outcome()])
    store.commit(result, MESSAGES)
    counts = {name: len(found) for name, found in contents(store).items() if found}
    assert counts == {
        "alerts": len(result.alerts),
        "bundles": 1,
        "consents": 1,
        "installation": 2,
        "outbox": 1,
        "outcomes": 1,
        "session_keys": 1,
        "rollup_marks": 1,
        "session_scores": 1,
        "session_speakers": 2,
        "session_states": 1,
        "sessions": 1,
        "turn_scores": 18,
        "turns": 9,
        "window_turns": 7,
    }
    assert result.alerts
    [session] = rows(store, tables.session_scores)
    assert (session["turns"], session["counsellor_turns"], session["status"]) == (9, 4, "closed")
    scores = rows(store, tables.turn_scores)
    assert [(s["seq"], s["stage"]) for s in scores][:2] == [(0, "final"), (0, "provisional")]
    assert {s["empathy_total"] for s in scores if s["role"] == "client"} == {None}
    counsellors = [s for s in scores if s["role"] == "counsellor"]
    for score in counsellors:
        assert score["emotional_reactions"] == score["expressed"]["emotional_reactions"]["level"]


def test_an_outcome_repeated_within_a_batch_is_one_row_with_the_last_value(
    store: Store,
) -> None:
    store.commit(process([turn(), outcome(outcome_id="o"), outcome(outcome_id="o", value=2.0)]))
    assert [row["value"] for row in rows(store, tables.outcomes)] == [2.0]


def test_the_same_batch_twice_changes_nothing(store: Store) -> None:
    store.commit(process([*LOG, outcome()]))
    before = contents(store)
    again = process([*LOG, outcome()], loaded(store))
    assert again.counts["duplicate"] == len(LOG)
    store.commit(again)
    assert contents(store) == before


def test_rewritten_rows_differ_only_in_their_version(store: Store) -> None:
    """Rewriting a batch with newer states."""
    store._now = lambda: datetime(2026, 1, 5, 12, tzinfo=UTC)
    result = process([*LOG, outcome()])
    store.commit(result)
    before = contents(store)
    store.commit(result)
    after = contents(store)
    assert [row.pop("version") for row in after["session_states"]] == [2]
    assert [row.pop("version") for row in before["session_states"]] == [1]
    assert after == before


@pytest.mark.parametrize("cut", range(1, 9))
def test_splitting_a_log_into_two_batches_gives_the_same_rows(store: Store, cut: int) -> None:
    store.commit(process(LOG[:cut], partition=3))
    store.commit(process(LOG[cut:], loaded(store), partition=3))
    whole = process(LOG, partition=3)
    [state] = rows(store, tables.session_states)
    assert state["version"] == 2
    known = loaded(store)["s"]
    assert known.state == whole.sessions["s"].state
    assert (known.version, known.partition) == (2, 3)
    assert len(rows(store, tables.turn_scores)) == len(whole.turn_scores)


def test_states_of_unknown_sessions_and_other_bundles_are_left_out(store: Store) -> None:
    store.commit(process([turn(), turn(session_id="t")]))
    assert loaded(store, "s", "t", "nobody").keys() == {"s", "t"}
    assert store.load_states(["s"], "another bundle") == {}
    assert store.load_states([], BUNDLE) == {}


def test_a_commit_increments_versions(store: Store) -> None:
    states: dict = {}
    for seq in range(3):
        store.commit(process([turn(seq)], states))
    assert states["s"].version == 3
    assert rows(store, tables.session_states)[0]["version"] == 3


def test_stale_state_writes_nothing_at_all(store: Store, other: Store) -> None:
    store.commit(process(LOG[:3]))
    mine, theirs = loaded(store), loaded(other)
    other.commit(process(LOG[3:5], theirs))
    before = contents(store)
    result = process([*LOG[3:], turn(session_id="new"), end(), outcome()], mine)
    with pytest.raises(StaleState):
        store.commit(result, MESSAGES)
    assert contents(store) == before
    assert mine["s"].version == 1


def test_of_two_workers_with_a_new_session_the_first_commit_wins(
    store: Store, other: Store
) -> None:
    mine, theirs = process(LOG[:3]), process(LOG[:5])
    other.commit(theirs)
    before = contents(store)
    with pytest.raises(StaleState, match="1 of 1"):
        store.commit(mine, MESSAGES)
    assert contents(store) == before
    store.commit(process(LOG, loaded(store)))
    assert len(rows(store, tables.turns)) == 9


def test_one_stale_session_among_many_rejects_the_whole_batch(store: Store, other: Store) -> None:
    store.commit(process([turn(session_id=name) for name in "abc"]))
    states = loaded(store, *"abc")
    other.commit(process([turn(1, session_id="b")], loaded(other, "b")))
    with pytest.raises(StaleState, match="1 of 4"):
        store.commit(process([turn(1, session_id=name) for name in "abcd"], states))
    assert {row["session_id"] for row in rows(store, tables.turns) if row["seq"] == 1} == {"b"}


def test_idle_sessions_are_open_old_and_in_the_given_partitions(store: Store) -> None:
    def at(hour: int) -> str:
        return f"2026-01-05T{hour:02}:00:00Z"

    def said(hour: int, partition: int, *values: bytes) -> None:
        """A session stored at that hour, regardless of the times in its events."""
        store._now = lambda: datetime(2026, 1, 5, hour, tzinfo=UTC)
        store.commit(process(list(values), partition=partition))

    said(3, 1, turn(session_id="old", occurred_at=at(23)))
    said(2, 2, turn(session_id="older"))
    said(9, 1, turn(session_id="fresh", occurred_at=at(1)))
    said(1, 1, turn(session_id="ended"), end(session_id="ended"))
    before = datetime(2026, 1, 5, 9, tzinfo=UTC)

    def quiet(**changes: object) -> list[str]:
        wanted = {"bundle": BUNDLE, "before": before, "partitions": None, **changes}
        return list(store.idle_sessions(**wanted))

    assert quiet() == ["older", "old"]
    assert quiet(limit=1) == ["older"]
    assert quiet(partitions=[0, 1]) == ["old"]
    assert quiet(partitions=[]) == []
    assert quiet(bundle="another") == []
    assert quiet(before=before + timedelta(seconds=1)) == ["older", "old", "fresh"]
    zone = before.astimezone(datetime.fromisoformat("2026-01-05T00:00:00+09:00").tzinfo)
    assert quiet(before=zone) == ["older", "old"]
    store.commit(pipeline().flush_idle(store.idle_sessions(BUNDLE, before, [2])))
    assert quiet() == ["old"]
    statuses = {row["session_id"]: row["status"] for row in rows(store, tables.session_scores)}
    assert statuses["older"] == SessionStatus.IDLE.value


def test_messages_stay_in_the_outbox_until_they_are_deleted(store: Store) -> None:
    first = store.commit(process([turn()]), MESSAGES)
    second = store.commit(process([turn(session_id="t")]), MESSAGES[:1])
    assert store.commit(process([turn(session_id="u")])) is None
    assert store.outbox_ids() == [first, second]
    assert [(e.id, e.messages) for e in store.outbox_entries([second, first, 99])] == [
        (first, MESSAGES),
        (second, MESSAGES[:1]),
    ]
    assert store.outbox_ids(limit=1) == [first]
    store.delete_outbox_entries([first])
    store.delete_outbox_entries([first])
    assert store.outbox_ids() == [second]
    assert store.outbox_entries([first]) == []


def test_times_are_returned_in_utc(store: Store) -> None:
    store.commit(process([turn(occurred_at="2026-06-05T23:30:00.123456+05:30")]))
    expected = datetime(2026, 6, 5, 18, 0, 0, 123456, tzinfo=UTC)
    [row] = rows(store, tables.turns)
    assert row["occurred_at"] == expected
    assert row["occurred_at"].tzinfo is UTC
    assert row["stored_at"].tzinfo is UTC
    assert rows(store, tables.sessions)[0]["started_at"] == expected
    assert loaded(store)["s"].state.started_at == expected


def test_a_naive_time_is_rejected_without_quoting_the_turn(store: Store) -> None:
    result = process([turn(text="zanzibar")])
    [stored] = result.turns
    naive = structs.replace(stored.turn, occurred_at=stored.turn.occurred_at.replace(tzinfo=None))
    result.turns = [structs.replace(stored, turn=naive)]
    with pytest.raises(StoreError, match="without a time zone") as refused:
        store.commit(result)
    assert "zanzibar" not in str(refused.value)
    assert rows(store, tables.turns) == []


def test_withheld_turns_are_counted_and_not_stored(store: Store) -> None:
    store.commit(process([turn(consent=False, text="zanzibar"), turn(1, consent=None)]))
    assert rows(store, tables.turns) == []
    assert rows(store, tables.turn_scores) == []
    [session] = rows(store, tables.session_scores)
    assert session["withheld_turns"] == 2
    assert "zanzibar" not in dump(store)


@pytest.mark.parametrize(
    "event", [consent("withdrawn"), turn(20, occurred_at="2026-02-05T10:00:00Z")]
)
def test_a_session_that_continues_without_its_state_keeps_what_is_known(
    store: Store, event: bytes
) -> None:
    """The state expires with the text, and another bundle begins with an empty one."""
    said = {"team": "north", "domain": "counselling", "channel": "chat", "lang": "en"}
    store.commit(process([turn(0, **said), turn(1), end(reason="done")]))
    [before] = rows(store, tables.sessions)
    with store.transaction() as connection:
        connection.execute(sa.delete(tables.session_states))
    store.commit(process([event]))
    [after] = rows(store, tables.sessions)
    kept = [*said, "started_at", "ended_at", "end_reason"]
    assert [after[name] for name in kept] == [before[name] for name in kept]
    assert after["team"] == "north"


def test_new_turns_are_inserted_without_asking_for_conflicts(store: Store) -> None:
    """PostgreSQL copies them, and logs less."""
    written = inserted(store, [turn(0), turn(1)])
    assert {table for table, on_conflict in written if not on_conflict} >= {"turns", "turn_scores"}


def test_turns_that_are_stored_without_a_state_are_kept(store: Store) -> None:
    store.commit(process(LOG[:3]), MESSAGES)
    before = rows(store, tables.turns)
    with store.transaction() as connection:
        for table in (tables.session_states, tables.window_turns):
            connection.execute(sa.delete(table))
    written = inserted(store, LOG[:5])
    assert ("turns", False) in written, "tried first"
    assert {("turns", True), ("turn_scores", True)} <= written
    after = rows(store, tables.turns)
    assert after[:3] == before
    assert [row["seq"] for row in after] == [0, 1, 2, 3, 4]
    keys = [(s["seq"], s["stage"]) for s in rows(store, tables.turn_scores)]
    assert len(keys) == len(set(keys)) == 5 + 2
    assert len(store.outbox_ids()) == 1 + 1, "one of each commit"


def inserted(store: Store, events: list[bytes]) -> set[tuple[str, bool]]:
    """The tables into which a commit of these events inserts, and whether ON CONFLICT is given."""
    found = set()

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if match := re.match(r"(?:INSERT INTO|COPY) (\w+)", statement):
            found.add((match[1], "ON CONFLICT" in statement))

    sa.event.listen(store.engine, "before_cursor_execute", note)
    try:
        store.commit(process(events), MESSAGES)
    finally:
        sa.event.remove(store.engine, "before_cursor_execute", note)
    return found


def test_a_turn_that_was_spoken_earlier_moves_the_start(store: Store) -> None:
    store.commit(process([turn(1)]))
    [before] = rows(store, tables.sessions)
    with store.transaction() as connection:
        connection.execute(sa.delete(tables.session_states))
    store.commit(process([turn(0)]))
    [after] = rows(store, tables.sessions)
    assert before["started_at"] - after["started_at"] == timedelta(minutes=1)
