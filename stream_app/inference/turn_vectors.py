"""The stored form of a turn's two vectors: whole numbers of one byte, and a scale for each vector.

A window holds its turns in memory and in the database, and vectors are most of both. A byte for
each number takes half of what half floats take, and changes hardly any label
(``python -m export.vector_precision``). Scores are always computed from the stored form, so that
they do not depend on whether a turn is still in memory. ::

    01                 number of the layout
    scales             2 little-endian floats (4 each): largest absolute value / 127
    numbers            2 x hidden signed bytes

Earlier releases stored 2 x hidden half floats, whose length is even; this one is odd.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

_LAYOUT: Final = b"\x01"
_LARGEST: Final = 127
_HEADER: Final = len(_LAYOUT) + 2 * 4

Floats = npt.NDArray[np.float32]


def pack(vectors: npt.NDArray[np.floating]) -> list[bytes]:
    """Pack vectors [turns, 2, hidden]; each turn depends on its own numbers alone.

    A vector with a number that is not finite is unpacked as NaN in all places.
    """
    plain = vectors.astype(np.float32, copy=False)
    scales = np.abs(plain).max(axis=2) / np.float32(_LARGEST)
    usable = np.isfinite(scales) & (scales > 0)
    steps = np.where(usable, scales, np.float32(1))[:, :, None]
    numbers = np.rint(np.where(usable[:, :, None], plain, np.float32(0)) / steps).astype(np.int8)
    kept = np.where(np.isfinite(scales), scales, np.float32(np.nan)).astype("<f4")
    return [
        _LAYOUT + scale.tobytes() + of_turn.tobytes()
        for scale, of_turn in zip(kept, numbers, strict=True)
    ]


def unpack(packed: Sequence[bytes]) -> Floats:
    """Vectors [turns, 2, hidden] of packed turns of one encoder, also of earlier releases."""
    lengths = {len(one) for one in packed}
    if len(lengths) == 1 and lengths.pop() % 2:
        return _unpack_all(packed)
    return np.concatenate(
        [_unpack_all([one]) if len(one) % 2 else _of_half_floats(one) for one in packed]
    )


def _unpack_all(packed: Sequence[bytes]) -> Floats:
    raw = np.frombuffer(b"".join(packed), np.int8).reshape(len(packed), -1)
    scales = raw[:, len(_LAYOUT) : _HEADER].copy().view("<f4")
    numbers = raw[:, _HEADER:].reshape(len(packed), 2, -1)
    return np.asarray(np.multiply(numbers, scales[:, :, None], dtype=np.float32))


def _of_half_floats(one: bytes) -> Floats:
    return np.frombuffer(one, np.float16).reshape(1, 2, -1).astype(np.float32)
