"""Turns of a window are stored separately from the state and restored unchanged."""

import itertools

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from stream_app.core.environment import Policy
from stream_app.core.pipeline import Pipeline
from stream_app.core.session_state import Versioned, pack
from stream_app.core.window import WindowPolicy, WindowTurn
from stream_app.store import schema, tables, windows
from stream_app.store.repository import Store
from tests.core.test_whole_sessions import logs
from tests.fakes import FakeScorer, received
from tests.rule_texts import ALL
from tests.store.batches import BUNDLE, process, turn
from tests.store.reading import rows

POLICY = WindowPolicy()
MOST = POLICY.before + POLICY.after + 1 + POLICY.reorder_turns + 1
"""Maximum number of turns in a window, including the newest."""


@settings(deadline=None)
@given(logs(), st.lists(st.integers(0, 40), max_size=8))
def test_a_session_continued_from_its_stored_parts_equals_one_in_memory(
    log: list[bytes], cuts: list[int]
) -> None:
    pipeline = Pipeline(FakeScorer(), Policy(POLICY, ALL))
    edges = sorted({0, len(log), *(place % (len(log) + 1) for place in cuts)})
    events = received(log)
    states: dict[str, Versioned] = {}
    stored_turns: dict[int, bytes] = {}
    for start, stop in itertools.pairwise(edges):
        for session in pipeline.process(events[start:stop], states).sessions.values():
            split = windows.split_state(session)
            written = (*split.turns, *split.reused)
            stored_turns |= {row["slot"]: row["turn"] for row in written}
            state, slots = windows.join_state(split.state, stored_turns)
            assert state == session.state
            assert slots == split.slots
            assert len(set(slots.values())) == len(slots)
            assert max(stored_turns, default=0) < MOST
            states = {"s": Versioned(state, slots=slots)}


def test_a_turn_is_written_once_and_its_slot_is_reused(store: Store) -> None:
    states: dict[str, Versioned] = {}
    slots_of: dict[int, set[int]] = {}
    for seq in range(20):
        result = process([turn(seq)], states)
        split = windows.split_state(result.sessions["s"])
        [row] = [*split.turns, *split.reused]
        assert msgspec.msgpack.decode(row["turn"], type=WindowTurn).seq == seq
        slots_of.setdefault(row["slot"], set()).add(seq)
        store.commit(result)
    assert len(slots_of) == len(rows(store, tables.window_turns)) == 7
    [stored] = rows(store, tables.session_states)
    state = states["s"].state
    assert all(
        held.vectors and held.vectors not in stored["state"] for held in state.window.history
    )
    assert pack(store.load_states(["s"], BUNDLE)["s"].state) == pack(state)


def test_a_state_of_an_earlier_release_contains_its_turns(store: Store) -> None:
    states: dict[str, Versioned] = {}
    store.commit(process([turn(seq) for seq in range(9)], states))
    with store.engine.begin() as connection:
        connection.execute(sa.delete(tables.window_turns))
        connection.execute(sa.update(tables.session_states).values(state=pack(states["s"].state)))
    loaded = store.load_states(["s"], BUNDLE)
    assert pack(loaded["s"].state) == pack(states["s"].state)
    store.commit(process([turn(9)], loaded))
    assert len(rows(store, tables.window_turns)) == 7
    process([turn(9)], states)
    assert pack(store.load_states(["s"], BUNDLE)["s"].state) == pack(states["s"].state)


@pytest.mark.parametrize("damage", ["missing", "another"])
def test_a_window_with_missing_turns_continues_with_the_others(store: Store, damage: str) -> None:
    store.commit(process([turn(seq) for seq in range(9)]))
    table = tables.window_turns
    raw = {row["slot"]: row["turn"] for row in rows(store, table)}
    last = max(raw, key=lambda slot: msgspec.msgpack.decode(raw[slot], type=WindowTurn).seq)
    here = table.c.slot == last
    other = next(slot for slot in raw if slot != last)
    change = sa.delete(table) if damage == "missing" else sa.update(table).values(turn=raw[other])
    with store.engine.begin() as connection:
        connection.execute(change.where(here))
    with capture_logs() as said:
        loaded = store.load_states(["s"], BUNDLE)
    assert [(line["event"], line["missing"]) for line in said] == [("state.incomplete", 1)]
    assert [held.seq for held in loaded["s"].state.window.history] == [2, 3, 4, 5, 6, 7]
    result = process([turn(seq) for seq in range(9, 14)], loaded)
    store.commit(result)
    assert result.sessions["s"].state.aggregates.turns == 14
    assert len(store.load_states(["s"], BUNDLE)["s"].state.window.history) == 7


def test_a_downgrade_moves_the_turns_back_into_the_states(store: Store) -> None:
    states: dict[str, Versioned] = {}
    events = [turn(seq, session_id=name) for name in ("a", "b") for seq in (*range(9), 11, 10)]
    store.commit(process(events, states))
    schema.downgrade(store, "0007")
    query = sa.text("SELECT session_id, state FROM session_states")
    with store.engine.connect() as connection:
        found = {row.session_id: bytes(row.state) for row in connection.execute(query)}
    for name, raw in found.items():
        state, slots = windows.join_state(raw, {})
        assert slots == {}
        assert len(state.window.history) == 7
        assert list(state.window.waiting) == [10, 11]
        assert state == states[name].state
