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

from stream_app.core.measures.window import WindowTurn
from stream_app.core.session import earlier_layouts
from stream_app.core.session.session_state import SessionState, Versioned, pack, unpack
from stream_app.store.database.rows import Row

log = structlog.get_logger(__name__)

Slots = dict[int, int]
"""The slots of a window's turns, by seq."""
BASE: Final = -1
"""The slot of what a state in an earlier layout needs (``core.earlier_layouts``)."""
ARRAY: Final = b"\xdc"
"""The first byte of a MessagePack array of 16 to 65,535 items, as a turn is."""

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(WindowTurn)


class SplitState(Struct, frozen=True):
    """The packed state without its turns, the slots of its turns, and rows not stored yet.

    ``reused``: rows whose slot was used before, so that they replace a stored row.
    """

    state: bytes
    slots: Slots
    turns: list[Row]
    reused: list[Row]


def split_state(versioned: Versioned) -> SplitState:
    """Separate a state from its turns; only turns that have no row yet get one."""
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
    key = {"session_id": state.session_id, "bundle": state.bundle}
    rows = {
        slot: {**key, "slot": slot, "turn": _encoder.encode(turns[seq])}
        for seq, slot in assigned.items()
    }
    return SplitState(
        pack(structs.replace(state, window=without, slots=slots)),
        slots,
        [row for slot, row in rows.items() if slot > highest],
        [row for slot, row in rows.items() if slot < highest],
    )


def join_state(raw: bytes, rows: Mapping[int, bytes]) -> tuple[SessionState, Slots]:
    """Combine a state with its stored turns, by slot; also returns the slots of its window.

    States of earlier releases contain their turns. If stored turns are missing, the window
    continues with the others.

    Raises:
        msgspec.DecodeError: the bytes do not match the layout.
    """
    state = unpack(raw, rows.get(BASE, b""))
    slots, state.slots = state.slots, {}
    if not slots:
        return state, slots
    stored = {slot: _decoded(rows[slot]) for slot in slots.values() if slot in rows}
    found = [stored[slot] for seq, slot in sorted(slots.items()) if _seq(stored.get(slot)) == seq]
    window = state.window
    window.history = [turn for turn in found if turn.seq < window.next_seq]
    for turn in window.history:  # it may have been stored while it waited
        turn.client = window.answers.get(turn.seq, turn.client)
    window.waiting = {turn.seq: turn for turn in found if turn.seq >= window.next_seq}
    if len(found) < len(slots):
        log.error("state.incomplete", missing=len(slots) - len(found))
        kept = {turn.seq for turn in window.history}
        window.unfinished = [seq for seq in window.unfinished if seq in kept]
    return state, {turn.seq: slots[turn.seq] for turn in found}


def _decoded(raw: bytes) -> WindowTurn:
    return _decoder.decode(raw) if raw.startswith(ARRAY) else earlier_layouts.turn(raw)


def _seq(turn: WindowTurn | None) -> int | None:
    return turn.seq if turn is not None else None
