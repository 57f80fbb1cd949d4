"""Stored states: equal after reading, and still read in the layouts of before."""

import base64
import zlib
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from stream_app.core.measures.aggregates import Contribution, Totals
from stream_app.core.measures.window import WindowPolicy, WindowTurn
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session import earlier_layouts
from stream_app.core.session.earlier_layouts import from_map
from stream_app.core.session.environment import Policy
from stream_app.core.session.session_state import SessionState, Versioned, pack, unpack
from stream_app.store.stream import windows
from tests.core.earlier_states import as_map
from tests.core.test_whole_sessions import logs
from tests.fakes import FakeScorer, received
from tests.rule_texts import ALL
from tests.store import batches

STORED: Final[dict[str, Any]] = msgspec.json.decode(
    Path(__file__).with_name("earlier_states.json").read_bytes()
)


def stored(name: str) -> bytes:
    """States as the development branch stored them before whole states; see ``earlier_states``."""
    return base64.b64decode(STORED[name])


def state_after(log: list[bytes]) -> SessionState | None:
    states: dict[str, Versioned] = {}
    pipeline = Pipeline(FakeScorer(), Policy(WindowPolicy(), ALL))
    found = pipeline.process(received(log), states).sessions.values()
    return next((versioned.state for versioned in found), None)


def test_open_sessions_share_the_names_of_their_evidence() -> None:
    """There are some seventy for each recent turn."""
    events = [batches.turn(seq, session_id="s") for seq in range(6)]
    computed, other = (state_after(events) for _ in range(2))
    assert computed is not None
    assert other is not None
    read = unpack(pack(computed))
    for state in (other, read):
        aggregates = state.aggregates, computed.aggregates
        for one, same in zip(*(each.latest for each in aggregates), strict=True):
            assert one.evidence == same.evidence
            for name, known in zip(one.evidence, same.evidence, strict=True):
                assert name is known


@settings(deadline=None)
@given(logs())
def test_a_state_is_read_as_it_was_stored(log: list[bytes]) -> None:
    state = state_after(log)
    if state is not None:
        assert unpack(pack(state)) == state
        assert pack(unpack(pack(state))) == pack(state)


@settings(deadline=None)
@given(
    st.dictionaries(st.text(), st.integers(-(2**62), 2**62)),
    st.lists(st.integers(0, 2**62), min_size=3, max_size=3),
    st.lists(st.integers(0, 2**62), min_size=3, max_size=3),
)
def test_any_numbers_of_evidence_are_read_as_they_were_stored(
    evidence: dict[str, int], shown: list[int], expected: list[int]
) -> None:
    state = SessionState("s", "b")
    state.aggregates.settled = Totals(3, expected, shown, evidence=evidence)
    turn = Contribution(0, (None, 1, 2), tuple(expected), tuple(shown), None, None, evidence)
    state.aggregates.client_latest = [turn]
    assert unpack(pack(state)) == state


@settings(deadline=None)
@given(logs())
def test_a_state_that_was_stored_as_a_map_is_read_unchanged(log: list[bytes]) -> None:
    state = state_after(log)
    if state is not None:
        stored = msgspec.msgpack.encode(as_map(state))
        assert unpack(stored) == state


def test_fields_that_a_map_lacks_have_their_defaults() -> None:
    stored = {"session_id": "s", "bundle": "b", "window": {"next_seq": 3}}
    state = SessionState("s", "b")
    state.window.next_seq = 3
    assert unpack(msgspec.msgpack.encode(stored)) == state


def test_a_map_without_a_required_field_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="session_id"):
        unpack(msgspec.msgpack.encode({"bundle": "b"}))


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(b"\x04", id="an unknown layout"),
        pytest.param(b"", id="nothing"),
        pytest.param(pack(SessionState("s", "b"))[:-4], id="the end is missing"),
        pytest.param(b"\x78" + bytes(range(200, 240)), id="no compressed bytes"),
        pytest.param(b"\x02" + bytes(range(200, 240)), id="no compressed bytes, earlier"),
        pytest.param(b"\x03\x00\x00\x00\x00\xff", id="no compressed changes"),
        pytest.param(stored("state"), id="changes without their base"),
    ],
)
def test_damaged_states_are_refused(damaged: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        unpack(damaged)


@pytest.mark.parametrize("name", ["state", "whole"])
def test_a_state_of_the_development_branch_is_read_with_its_turns(name: str) -> None:
    rows = {int(slot): base64.b64decode(raw) for slot, raw in STORED["turns"].items()}
    state, slots = windows.join_state(stored(name), rows)
    assert state == unpack(zlib.compress(stored("expected")))
    assert set(slots) == {turn.seq for turn in state.window.history} | set(state.window.waiting)
    assert set(slots.values()) == set(rows) - {windows.BASE}


def test_changes_against_another_state_are_refused() -> None:
    with pytest.raises(msgspec.DecodeError, match="the base of a state is missing"):
        unpack(stored("state"), stored("whole"))


def test_damaged_vectors_of_the_development_branch_are_refused() -> None:
    raw = base64.b64decode(STORED["turns"]["0"])
    turn = msgspec.msgpack.decode(raw[1:], type=WindowTurn)
    assert earlier_layouts.turn(raw).vectors != turn.vectors
    for damaged in (b"", b"\xff", turn.vectors[:-2]):
        packed = msgspec.msgpack.encode(structs.replace(turn, vectors=damaged))
        with pytest.raises(msgspec.DecodeError):
            earlier_layouts.turn(raw[:1] + packed)


def test_a_turn_of_an_earlier_release_is_read_with_all_its_fields() -> None:
    state = state_after(
        [
            msgspec.json.encode(
                {
                    "type": "turn",
                    "session_id": "s",
                    "seq": seq,
                    "speaker_id": "k",
                    "role": "counsellor",
                    "text": "That sounds hard.",
                    "occurred_at": f"2026-01-05T10:00:0{seq}Z",
                    "consent": True,
                }
            )
            for seq in range(3)
        ]
    )
    assert state is not None
    for turn in state.window.history:
        assert from_map(msgspec.msgpack.encode(as_map(turn)), WindowTurn) == turn
