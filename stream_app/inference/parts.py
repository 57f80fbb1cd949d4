"""Long turns in parts: each part is read alone, and the heads' logits are joined.

A part has as many tokens as the model reads; parts are equally long and overlap, so that what is
said at a border is read whole in one of them. A short turn is its only part.

======================================  ==========================================
heads                                   of a turn in parts
======================================  ==========================================
levels; lapse; yes or no of the client  the part with the highest value
all others                              the mean of the parts
======================================  ==========================================
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs

from stream_app.core.measures.heads import Dimension, Head, HeadKind
from stream_app.core.measures.window import ScoringRequest, parts_of

Logits = npt.NDArray[np.float32]
LAPSE: Final = "lapse"
OVERLAP: Final = 6
"""Inverse of the share of a part's tokens that the next part repeats."""


class Join(Enum):
    """How the logits of a turn's parts become those of the turn."""

    HIGHEST = "highest"
    MEAN = "mean"


def join_of(head: Head) -> Join:
    """Return how a head joins parts: what occurs in one part occurs in the turn."""
    of_client = head.kind is HeadKind.BINARY and head.dimension is Dimension.CLIENT
    occurs = of_client or head.kind is HeadKind.LEVEL or head.name == LAPSE
    return Join.HIGHEST if occurs else Join.MEAN


def spans(count: int, most: int) -> list[tuple[int, int]]:
    """Where the parts of ``count`` tokens begin and end; a part has at most ``most``.

    >>> spans(12, 12), spans(13, 12), spans(40, 12)
    ([(0, 12)], [(0, 8), (5, 13)], [(0, 12), (9, 21), (18, 30), (28, 40)])
    """
    if count <= most:
        return [(0, count)]
    overlap = most // OVERLAP
    number = -(-(count - overlap) // (most - overlap))
    size = -(-(count + (number - 1) * overlap) // number)
    starts = (place * (count - size) // (number - 1) for place in range(number))
    return [(start, start + size) for start in starts]


def in_parts(requests: Sequence[ScoringRequest]) -> tuple[list[ScoringRequest], list[int]]:
    """A request for each part of each turn, and how many each turn has."""
    found: list[ScoringRequest] = []
    counts: list[int] = []
    for request in requests:
        turn = request.turn
        vectors = parts_of(turn.vectors, turn.parts)
        counts.append(len(vectors))
        if len(vectors) == 1:
            found.append(request)
            continue
        alone = (structs.replace(turn, vectors=part, parts=b"") for part in vectors)
        found += [structs.replace(request, turn=part) for part in alone]
    return found, counts


class Joined(Struct, frozen=True):
    """Joins rows of parts to rows of turns; ``counts``: how many parts each turn has."""

    counts: Sequence[int]

    def logits(
        self, of_parts: Mapping[str, Logits], joins: Mapping[str, Join]
    ) -> dict[str, Logits]:
        """The logits of turns, by head; those of turns of one part are untouched."""
        if max(self.counts, default=1) == 1:
            return dict(of_parts)
        return {
            name: self._head(rows, joins.get(name, Join.MEAN)) for name, rows in of_parts.items()
        }

    def highest(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The highest of each turn's values."""
        return np.array([values[start:end].max() for start, end in self._ranges()])

    def _head(self, rows: Logits, join: Join) -> Logits:
        chosen = [
            rows[start]
            if end - start == 1
            else rows[start:end].mean(axis=0, dtype=np.float64).astype(np.float32)
            if join is Join.MEAN
            else rows[start + int(np.argmax(_expected(rows[start:end])))]
            for start, end in self._ranges()
        ]
        return np.stack(chosen)

    def _ranges(self) -> list[tuple[int, int]]:
        return list(pairwise([0, *np.cumsum(self.counts).tolist()]))


def mean_of(parts: Sequence[npt.NDArray[np.float16]]) -> npt.NDArray[np.float16]:
    """The vectors of a turn in parts: what other turns' heads see of it."""
    return np.asarray(np.stack(parts).mean(axis=0, dtype=np.float64), np.float16)


def _expected(rows: Logits) -> npt.NDArray[np.float64]:
    """The expected label of each row, as a number."""
    shifted = np.exp(rows.astype(np.float64) - rows.max(axis=1, keepdims=True))
    shares = shifted / shifted.sum(axis=1, keepdims=True)
    return np.asarray((shares * np.arange(rows.shape[1])).sum(axis=1))
