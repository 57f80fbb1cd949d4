"""The bytes of a turn's two vectors, as windows keep and the store stores them.

A bundle's manifest names one of two forms. Half floats take twice the space of bytes, which round
to 1/127 of a vector's largest number but one. The largest is stored exactly: the encoders have one
dimension that is nearly constant and many times as large as the others, whose steps it would
coarsen.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from stream_app.inference.bundle import VectorForm

Vectors = npt.NDArray[np.float32]
"""First-token state and mean of the token states: [turns, 2, hidden]."""
STEPS: Final = 127
_MARK: Final = 1
_LARGEST: Final = float(np.finfo(np.float16).max)


@cache
def _layout(hidden: int) -> np.dtype[np.void]:
    """A turn in bytes; its odd length distinguishes it from half floats.

    A number is its ``steps`` times the vector's ``step``, or ``largest`` at ``place``.
    """
    return np.dtype(
        [
            ("mark", "u1"),
            ("step", "<f4", 2),
            ("largest", "<f4", 2),
            ("place", "<u2", 2),
            ("steps", "i1", (2, hidden)),
        ]
    )


def to_bytes(vectors: Vectors, form: VectorForm) -> list[bytes]:
    """The bytes of each turn; numbers that are not finite become 0 or the largest possible."""
    if form is VectorForm.HALVES:
        return [turn.tobytes() for turn in vectors.astype(np.float16)]
    numbers = np.nan_to_num(vectors, posinf=_LARGEST, neginf=-_LARGEST)
    turns = np.zeros(len(vectors), _layout(vectors.shape[-1]))
    place = np.abs(numbers).argmax(-1)[..., None]
    largest = np.take_along_axis(numbers, place, -1)
    np.put_along_axis(numbers, place, 0.0, -1)
    step = np.abs(numbers).max(-1, keepdims=True) / STEPS
    turns["mark"] = _MARK
    turns["step"], turns["largest"], turns["place"] = step[..., 0], largest[..., 0], place[..., 0]
    turns["steps"] = np.rint(numbers / np.where(step > 0, step, 1.0))
    return [turn.tobytes() for turn in turns]


def from_bytes(raw: Sequence[bytes], hidden: int | None = None) -> Vectors:
    """The vectors of turns.

    ``hidden``: size of a vector; without it, it follows from the length of the bytes. Turns may
    have both forms: an open session's bundle stays, while its encoder's form may change.

    Raises:
        ValueError: the bytes are no vectors, or have another size.
    """
    size = len(raw[0]) if raw else 0
    if len({len(turn) % 2 for turn in raw}) > 1:
        parts = [[i for i, turn in enumerate(raw) if len(turn) % 2 == odd] for odd in (0, 1)]
        found = [from_bytes([raw[i] for i in part], hidden) for part in parts]
        return np.concatenate(found)[np.argsort(np.concatenate(parts))]
    if size % 2 == 0:
        shape = len(raw), 2, size // 4 if hidden is None else hidden
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return np.frombuffer(b"".join(raw), "<f2").reshape(shape).astype(np.float32)
    layout = _layout((size - _layout(0).itemsize) // 2 if hidden is None else hidden)
    turns = np.frombuffer(b"".join(raw), layout)
    vectors = turns["steps"] * turns["step"][..., None]
    places, largest = turns["place"][..., None].astype(np.intp), turns["largest"][..., None]
    np.put_along_axis(vectors, places, largest, -1)
    return np.asarray(vectors, np.float32)


def rounded(vectors: Vectors, form: VectorForm) -> Vectors:
    """The vectors after they were bytes."""
    return from_bytes(to_bytes(vectors, form), vectors.shape[-1])
