"""A counsellor's levels: own turns with final scores, one bundle per session, without text."""

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.database import tables
from stream_app.store.sessions import turn_levels
from stream_app.store.sessions.scope import ALL_SESSIONS, Scope
from stream_app.store.sessions.turn_levels import TurnLevels
from stream_app.store.stream.repository import Store
from tests.store import batches
from tests.store.batches import BUNDLE
from tests.store.judging import NOOR, TURNS, fill

LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC)


def of_noor(
    store: Store, scope: Scope = ALL_SESSIONS, since: datetime = LONG_AGO
) -> list[TurnLevels]:
    return turn_levels.of_counsellor(store, scope, store.privacy.pseudonym(NOOR), since)


def test_final_counsellor_turns_have_the_opportunity_that_they_answer(store: Store) -> None:
    """Without a known turn right before it, a turn answers nothing."""
    fill(store, 2)
    score = tables.turn_scores
    with store.transaction() as connection:
        for seq in (0, 4):
            called = {"opportunity": {"no": 0.2, "yes": 0.8}}
            connection.execute(sa.update(score).where(score.c.seq == seq).values(client=called))
        connection.execute(
            sa.delete(score).where(score.c.seq == 4, score.c.session_id == "north-1")
        )
    found = of_noor(store)
    assert [(turn.session_id, turn.seq) for turn in found] == [
        (f"north-{number}", seq) for number in range(2) for seq in range(1, TURNS, 2)
    ]
    in_full = turn_levels.in_full(store, found)
    assert [each.turn for each in in_full] == found
    asked = [each.asked for each in in_full]
    assert asked == [0.8, None, 0.8, None, None, None, 0.8, None, None, None, None, None]
    for each in in_full:
        levels = {name: each.expressed[name]["level"] for name in MECHANISMS}
        assert each.turn.levels == levels


def test_in_full_has_the_chosen_turns_alone(store: Store) -> None:
    fill(store, 2)
    chosen = of_noor(store)[2:4]
    assert [each.turn for each in turn_levels.in_full(store, chosen)] == chosen
    assert turn_levels.in_full(store, []) == []


def test_open_earlier_and_late_turns_are_left_out(store: Store) -> None:
    fill(store, 1)
    events = [
        batches.turn(seq, session_id="open", speaker_id=NOOR if seq % 2 else "c")
        for seq in range(8)
    ]
    store.commit(batches.process(events))
    late = tables.turn_scores.c.seq == 3
    with store.transaction() as connection:
        connection.execute(sa.update(tables.turn_scores).where(late).values(late=True))
    assert [turn.seq for turn in of_noor(store)] == [1, 5, 7, 9, 11]
    assert of_noor(store, since=datetime(2026, 2, 1, tzinfo=UTC)) == []


def test_sessions_outside_the_scope_are_left_out(store: Store) -> None:
    fill(store, 1)
    assert of_noor(store, Scope(team="south")) == []
    assert len(of_noor(store, Scope(team="north"))) == 6


def test_of_several_bundles_the_most_recently_introduced_one_is_returned(store: Store) -> None:
    fill(store, 2)
    with store.transaction() as connection:
        first_used = connection.scalar(sa.select(tables.bundles.c.first_used_at))
        row = {"bundle": "a-newer-one", "digest": "1" * 64, "manifest": {}}
        later = {"first_used_at": first_used + timedelta(days=1)}
        connection.execute(sa.insert(tables.bundles).values(row | later))
        for table in (tables.turn_scores, tables.session_scores):
            of_one = sa.select(table).where(table.c.session_id == "north-0")
            rows = [dict(each) for each in connection.execute(of_one).mappings()]
            renamed = [each | {"bundle": "a-newer-one"} for each in rows]
            connection.execute(sa.insert(table), renamed)
    found = of_noor(store)
    assert {(turn.session_id, turn.bundle) for turn in found} == {
        ("north-0", "a-newer-one"),
        ("north-1", BUNDLE),
    }
    assert len(found) == 12
