"""The turns of a window lie apart from the state that refers to them.

A turn in a window does not change any more, and its vectors are most of a state: written with the
state, it would be written as often as the window is long. So each has a row of its own, in a slot
that a later turn of the session takes over; the state says which slots are its window.
"""

from collections.abc import Mapping
from itertools import count, islice
from typing import Final

import msgspec
import structlog
from msgspec import Struct, structs

from stream_app.core.session_state import SessionState, Versioned, pack, unpack
from stream_app.core.window import WindowTurn
from stream_app.store.rows import Row

log = structlog.get_logger(__name__)

Slots = dict[int, int]
"""Where the turns of a window lie, by seq."""

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(WindowTurn)


class Apart(Struct, frozen=True):
    """A state as bytes without its turns, where they lie, and the rows of those that are new."""

    state: bytes
    slots: Slots
    turns: list[Row]


def apart(versioned: Versioned) -> Apart:
    """Take a state and its turns apart; a turn that has its slot already makes no row."""
    state = versioned.state
    window = state.window
    held = {turn.seq: turn for turn in (*window.history, *window.waiting.values())}
    slots = {seq: slot for seq, slot in versioned.slots.items() if seq in held}
    new = [seq for seq in held if seq not in slots]
    taken = set(slots.values())
    free = islice((slot for slot in count() if slot not in taken), len(new))
    found = dict(zip(new, free, strict=True))
    slots |= found
    without = structs.replace(window, history=[], waiting={})
    return Apart(
        pack(structs.replace(state, window=without, slots=slots)),
        slots,
        [
            {
                "session_id": state.session_id,
                "bundle": state.bundle,
                "slot": slot,
                "turn": _encoder.encode(held[seq]),
            }
            for seq, slot in found.items()
        ],
    )


def together(raw: bytes, turns: Mapping[int, bytes]) -> tuple[SessionState, Slots]:
    """The state with its turns, by slot; one that an earlier release wrote has them in itself.

    A window that is not complete goes on with the turns that are there.

    Raises:
        msgspec.ValidationError: another layout.
    """
    state = unpack(raw)
    slots, state.slots = state.slots, {}
    if not slots:
        return state, slots
    lying = {slot: _decoder.decode(turns[slot]) for slot in slots.values() if slot in turns}
    held = [lying[slot] for seq, slot in sorted(slots.items()) if _seq(lying.get(slot)) == seq]
    window = state.window
    window.history = [turn for turn in held if turn.seq < window.next_seq]
    window.waiting = {turn.seq: turn for turn in held if turn.seq >= window.next_seq}
    if len(held) < len(slots):
        log.error("state.incomplete", missing=len(slots) - len(held))
        there = {turn.seq for turn in window.history}
        window.unfinished = [seq for seq in window.unfinished if seq in there]
    return state, {turn.seq: slots[turn.seq] for turn in held}


def _seq(turn: WindowTurn | None) -> int | None:
    return turn.seq if turn is not None else None
