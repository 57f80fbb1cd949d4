"""Stores the turns of a window, and the base of a state, separately from the session's state.

Turns in a window no longer change, and their vectors are most of a state; as part of the state they
would be rewritten with every following turn. So each turn has its own row, in a slot that later
turns of the session reuse; the state has the slots of its window. What remains of the state changes
by a fraction with each turn: it is stored as its changes against a base, which has a row in a slot
of its own and is replaced when the changes have grown.
"""

from collections.abc import Mapping
from itertools import count, islice
from typing import Final

import msgspec
import structlog
from msgspec import Struct, structs

from stream_app.core.measures.window import WindowTurn
from stream_app.core.session import state_layout
from stream_app.core.session.session_state import SessionState, Versioned, encode, unpack
from stream_app.core.session.state_layout import from_map, is_map
from stream_app.store.database.rows import Row

log = structlog.get_logger(__name__)

Slots = dict[int, int]
"""The slots of a window's turns, by seq."""
BASE: Final = -1
"""The slot of the base."""
LARGEST_CHANGES: Final = 0.3
"""Share of the base's encoded size (0.6 of what a new base takes compressed). Less: more bases."""

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(WindowTurn)


class SplitState(Struct, frozen=True):
    """The state's changes against ``base``, the slots of its turns, and rows not stored yet.

    ``reused``: rows whose slot was used before, so that they replace a stored row.
    """

    state: bytes
    base: bytes
    slots: Slots
    turns: list[Row]
    reused: list[Row]


def split_state(versioned: Versioned) -> SplitState:
    """Separate a state from its turns and its base; only what has no row yet gets one."""
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
    plain = encode(structs.replace(state, window=without, slots=slots))
    base = versioned.base
    changes = state_layout.changes(plain, base) if base else b""
    stored = {slot: _encoded(turns[seq]) for seq, slot in assigned.items()}
    used = {slot for slot in assigned.values() if slot < highest}
    if not base or len(changes) > LARGEST_CHANGES * len(base):
        if base:
            used.add(BASE)
        base, changes = plain, state_layout.changes(plain, plain)
        stored[BASE] = state_layout.compress(plain)
    key = {"session_id": state.session_id, "bundle": state.bundle}
    rows = [{**key, "slot": slot, "turn": value} for slot, value in stored.items()]
    return SplitState(
        changes,
        base,
        slots,
        [row for row in rows if row["slot"] not in used],
        [row for row in rows if row["slot"] in used],
    )


def join_state(raw: bytes, rows: Mapping[int, bytes]) -> tuple[SessionState, Slots, bytes]:
    """Combine a state with its stored turns and its base (by slot); also returns slots and base.

    States of earlier releases contain their turns, or have no base. If stored turns are missing,
    the window continues with the others.

    Raises:
        msgspec.DecodeError: the bytes do not match the layout, or the base is missing.
    """
    base = (
        state_layout.decompress(rows[BASE]) if state_layout.has_base(raw) and BASE in rows else b""
    )
    state = unpack(raw, base)
    slots, state.slots = state.slots, {}
    if not slots:
        return state, slots, base
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
    return state, {turn.seq: slots[turn.seq] for turn in found}, base


def _encoded(turn: WindowTurn) -> bytes:
    packed = structs.replace(turn, vectors=state_layout.pack_vectors(turn.vectors))
    return state_layout.TURN + _encoder.encode(packed)


def _decoded(raw: bytes) -> WindowTurn:
    if is_map(raw):
        return from_map(raw, WindowTurn)
    if not raw.startswith(state_layout.TURN):
        raise msgspec.DecodeError("a stored turn has a layout that this release does not know")
    turn = _decoder.decode(memoryview(raw)[len(state_layout.TURN) :])
    turn.vectors = state_layout.unpack_vectors(turn.vectors)
    return turn


def _seq(turn: WindowTurn | None) -> int | None:
    return turn.seq if turn is not None else None
