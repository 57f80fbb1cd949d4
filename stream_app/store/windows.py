"""Stores the turns of a window separately from the session's state.

Turns in a window no longer change, and their vectors are most of a state; as part of the state they
would be rewritten with every following turn. So each turn has its own row, in a slot that later
turns of the session reuse; the state has the slots of its window.
"""

from collections.abc import Mapping
from itertools import count, islice
from typing import Final

import msgspec
import structlog
from msgspec import Struct, structs

from stream_app.core.session_state import SessionState, Versioned, pack, unpack
from stream_app.core.state_layout import from_map, is_map
from stream_app.core.window import WindowTurn
from stream_app.store.rows import Row

log = structlog.get_logger(__name__)

Slots = dict[int, int]
"""The slots of a window's turns, by seq."""

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(WindowTurn)


class SplitState(Struct, frozen=True):
    """The encoded state without its turns, the turns' slots, and rows of turns not stored yet.

    ``reused``: rows whose slot was used before, so that they replace a stored row.
    """

    state: bytes
    slots: Slots
    turns: list[Row]
    reused: list[Row]


def split_state(versioned: Versioned) -> SplitState:
    """Separate a state from its turns; only turns without a slot get new rows."""
    state = versioned.state
    window = state.window
    turns = {turn.seq: turn for turn in (*window.history, *window.waiting.values())}
    slots = {seq: slot for seq, slot in versioned.slots.items() if seq in turns}
    new = [seq for seq in turns if seq not in slots]
    taken = set(slots.values())
    free = islice((slot for slot in count() if slot not in taken), len(new))
    assigned = dict(zip(new, free, strict=True))
    highest = max(taken, default=-1)
    slots |= assigned
    without = structs.replace(window, history=[], waiting={})
    rows: list[tuple[int, Row]] = [
        (
            slot,
            {
                "session_id": state.session_id,
                "bundle": state.bundle,
                "slot": slot,
                "turn": _encoder.encode(turns[seq]),
            },
        )
        for seq, slot in assigned.items()
    ]
    return SplitState(
        pack(structs.replace(state, window=without, slots=slots)),
        slots,
        [row for slot, row in rows if slot > highest],
        [row for slot, row in rows if slot < highest],
    )


def join_state(raw: bytes, turns: Mapping[int, bytes]) -> tuple[SessionState, Slots]:
    """Combine a state with its stored turns (by slot).

    States of earlier releases contain their turns. If stored turns are missing, the window
    continues with the others.

    Raises:
        msgspec.ValidationError: the bytes do not match the layout.
    """
    state = unpack(raw)
    slots, state.slots = state.slots, {}
    if not slots:
        return state, slots
    stored = {slot: _decoded(turns[slot]) for slot in slots.values() if slot in turns}
    found = [stored[slot] for seq, slot in sorted(slots.items()) if _seq(stored.get(slot)) == seq]
    window = state.window
    window.history = [turn for turn in found if turn.seq < window.next_seq]
    window.waiting = {turn.seq: turn for turn in found if turn.seq >= window.next_seq}
    if len(found) < len(slots):
        log.error("state.incomplete", missing=len(slots) - len(found))
        kept = {turn.seq for turn in window.history}
        window.unfinished = [seq for seq in window.unfinished if seq in kept]
    return state, {turn.seq: slots[turn.seq] for turn in found}


def _decoded(raw: bytes) -> WindowTurn:
    return from_map(raw, WindowTurn) if is_map(raw) else _decoder.decode(raw)


def _seq(turn: WindowTurn | None) -> int | None:
    return turn.seq if turn is not None else None
