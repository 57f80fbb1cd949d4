"""The stored layout of states: smaller than maps, equal after reading, readable if it was a map."""

import msgspec
import pytest
from hypothesis import given, settings

from stream_app.core.environment import Policy
from stream_app.core.pipeline import Pipeline
from stream_app.core.session_state import SessionState, Versioned, pack, unpack
from stream_app.core.state_layout import from_map
from stream_app.core.window import WindowPolicy, WindowTurn
from tests.core.earlier_states import as_map
from tests.core.test_whole_sessions import logs
from tests.fakes import FakeScorer, received
from tests.rule_texts import ALL


def state_after(log: list[bytes]) -> SessionState | None:
    states: dict[str, Versioned] = {}
    pipeline = Pipeline(FakeScorer(), Policy(WindowPolicy(), ALL))
    found = pipeline.process(received(log), states).sessions.values()
    return next((versioned.state for versioned in found), None)


@settings(deadline=None)
@given(logs())
def test_a_state_is_read_as_it_was_stored(log: list[bytes]) -> None:
    state = state_after(log)
    if state is not None:
        assert unpack(pack(state)) == state
        assert pack(unpack(pack(state))) == pack(state)


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
        pytest.param(b"\x03", id="an unknown layout"),
        pytest.param(b"", id="nothing"),
        pytest.param(pack(SessionState("s", "b"))[:-4], id="the end is missing"),
        pytest.param(b"\x02" + bytes(range(200, 240)), id="no compressed bytes"),
    ],
)
def test_damaged_states_are_refused(damaged: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        unpack(damaged)


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
