"""Turns of a window are stored separately from the state and restored unchanged."""

import base64
import copy
import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from stream_app.contracts.scores import TurnScore
from stream_app.core.measures.window import WindowPolicy, WindowTurn
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session.environment import Policy
from stream_app.core.session.session_state import Versioned, pack
from stream_app.errors import RowRefused
from stream_app.sealing.envelope import seal
from stream_app.store.database import tables
from stream_app.store.keys.session_keys import place
from stream_app.store.lifecycle import erasure, retention
from stream_app.store.stream import windows
from stream_app.store.stream.repository import Store
from tests.core.test_whole_sessions import logs
from tests.fakes import FakeScorer, received
from tests.rule_texts import ALL
from tests.store.batches import BUNDLE, end, process, turn
from tests.store.reading import rows

EARLIER = Path(__file__).parents[1] / "core" / "earlier_states.json"
STATE = tables.session_states.c.state
POLICY = WindowPolicy()
MOST = POLICY.before + POLICY.after + 1 + POLICY.reorder_turns + 1
"""Maximum number of turns in a window, including the newest."""


def turns_of(store: Store) -> dict[int, bytes]:
    """The stored turns of the only window, by slot."""
    return {row["slot"]: row["turn"] for row in rows(store, tables.window_turns)}


def seq_of(raw: bytes) -> int:
    """The seq of a stored turn."""
    return msgspec.msgpack.decode(raw, type=WindowTurn).seq


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
        assert seq_of(row["turn"]) == seq
        slots_of.setdefault(row["slot"], set()).add(seq)
        store.commit(result)
    assert len(slots_of) == len(turns_of(store)) == 7
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
    assert len(turns_of(store)) == 7
    process([turn(9)], states)
    assert pack(store.load_states(["s"], BUNDLE)["s"].state) == pack(states["s"].state)


@pytest.mark.parametrize("damage", ["missing", "another"])
def test_a_window_with_missing_turns_continues_with_the_others(store: Store, damage: str) -> None:
    store.commit(process([turn(seq) for seq in range(9)]))
    table = tables.window_turns
    raw = turns_of(store)
    last = max(raw, key=lambda slot: seq_of(raw[slot]))
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


def test_a_worker_that_takes_over_continues_like_the_one_before(store: Store) -> None:
    kept: dict[str, Versioned] = {}
    for seq in range(30):
        store.commit(process([turn(seq)], kept))
        loaded = store.load_states(["s"], BUNDLE)
        assert loaded["s"].state == kept["s"].state
        assert process([turn(seq + 1)], loaded).turn_scores == one_ahead(kept, seq + 1)


def one_ahead(states: dict[str, Versioned], seq: int) -> list[TurnScore]:
    """The scores of the next turn, without changing the states."""
    copied = {name: Versioned(copy.deepcopy(one.state)) for name, one in states.items()}
    return process([turn(seq)], copied).turn_scores


def test_a_turn_of_an_unknown_layout_is_refused(store: Store) -> None:
    states: dict[str, Versioned] = {}
    store.commit(process([turn(seq) for seq in range(3)], states))
    table, one = tables.window_turns, states["s"]
    slot = next(iter(one.slots.values()))
    sealed = seal(one.key, b"\x7f later", place(table.c.turn, "s", BUNDLE, slot))
    with store.engine.begin() as connection:
        connection.execute(sa.update(table).where(table.c.slot == slot).values(turn=sealed))
    with pytest.raises(RowRefused, match="layout that this release does not know"):
        store.load_states(["s"], BUNDLE)


def test_a_session_of_the_development_branch_continues_without_its_base(store: Store) -> None:
    states: dict[str, Versioned] = {}
    store.commit(process([turn(seq) for seq in range(8)], states))
    raw = msgspec.json.decode(EARLIER.read_bytes())
    key, table = states["s"].key, tables.window_turns
    held = {int(slot): base64.b64decode(value) for slot, value in raw["turns"].items()}
    sealed = seal(key, base64.b64decode(raw["state"]), place(STATE, "s", BUNDLE))
    with store.engine.begin() as connection:
        connection.execute(sa.delete(table))
        connection.execute(sa.update(tables.session_states).values(state=sealed))
        for slot, value in held.items():
            where = place(table.c.turn, "s", BUNDLE, slot)
            row = {"session_id": "s", "bundle": BUNDLE, "slot": slot}
            connection.execute(sa.insert(table).values(turn=seal(key, value, where), **row))
    loaded = store.load_states(["s"], BUNDLE)
    assert [held.seq for held in loaded["s"].state.window.history] == [1, 2, 3, 4, 5, 6, 7]
    store.commit(process([turn(8)], loaded))
    with store.engine.begin() as connection:
        connection.execute(sa.delete(table).where(table.c.slot == windows.BASE))
    assert store.load_states(["s"], BUNDLE)["s"].state == loaded["s"].state


@pytest.mark.parametrize("deleted", ["erased", "expired"])
def test_nothing_is_left_of_the_window_of_a_deleted_session(store: Store, deleted: str) -> None:
    store.commit(process([turn(seq) for seq in range(9)]))
    assert rows(store, tables.window_turns)
    later = datetime.now(UTC) + timedelta(days=1)
    if deleted == "erased":
        erasure.erase(store, ["s"], later)
    else:
        assert list(retention.purge(store, later, later, later))
    assert rows(store, tables.window_turns) == []
    assert rows(store, tables.session_states) == []


@pytest.mark.parametrize(
    "log",
    [
        pytest.param([end()], id="without a turn"),
        pytest.param([turn(0, text="x" * 32_000)], id="the longest text"),
        pytest.param([turn(seq, speaker_id="k" * 99) for seq in range(9, 80)], id="gaps"),
        pytest.param([turn(seq) for seq in range(10_000)], id="10,000 turns"),
    ],
)
def test_extreme_sessions_are_stored_and_read(log: list[bytes]) -> None:
    states: dict[str, Versioned] = {}
    stored: dict[int, bytes] = {}
    size = max(7, len(log) // 100)
    for start in range(0, len(log), size):
        process(log[start : start + size], states)
        one = states["s"]
        split = windows.split_state(one)
        stored |= {row["slot"]: row["turn"] for row in (*split.turns, *split.reused)}
        state, slots = windows.join_state(split.state, stored)
        assert state == one.state
        one.slots = slots
        assert len(split.state) < 4000
