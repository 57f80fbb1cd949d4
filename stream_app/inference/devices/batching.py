"""Plans micro-batches within a token budget: by length on CPUs, in fixed shapes on accelerators.

On a CPU padding is expensive, though less so for an encoder that packs its tokens. An accelerator
needs large batches to be busy, and few distinct shapes, so that buffers can be reused and launches
recorded once.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct


class BatchLimits(Struct, frozen=True):
    """Maximum number of tokens and of padding tokens in a batch."""

    tokens: int
    padding: int


ONE_BY_ONE = BatchLimits(tokens=0, padding=0)


class Shapes(Struct, frozen=True):
    """The allowed batch shapes: rows x tokens, within a budget of tokens.

    ``rows`` and ``tokens`` are ascending. The widest shape fits every text, at least one per batch.
    """

    rows: tuple[int, ...]
    tokens: tuple[int, ...]
    budget: int

    def heights(self, tokens: int) -> list[int]:
        """The allowed numbers of rows at a width, given the budget.

        >>> Shapes((1, 8, 32), (16, 64), budget=512).heights(64)
        [1, 8]
        """
        allowed = [rows for rows in self.rows if rows * tokens <= self.budget]
        return allowed or [self.rows[0]]

    def all(self) -> list[tuple[int, int]]:
        """All shapes, rows and tokens.

        >>> Shapes((1, 8, 32), (16, 64), budget=512).all()
        [(1, 16), (8, 16), (32, 16), (1, 64), (8, 64)]
        """
        return [(rows, tokens) for tokens in self.tokens for rows in self.heights(tokens)]


class Batch(Struct, frozen=True):
    """``texts``: the text index of each row; remaining rows are empty."""

    texts: list[int]
    rows: int
    tokens: int


def batch_by_length(lengths: list[int], limits: BatchLimits) -> Iterator[list[int]]:
    """Group indices, shortest first, so that tokens and padding stay within the limits.

    A text longer than the limit gets its own batch; with a limit of 0 tokens every text does.

    >>> list(batch_by_length([5, 30, 6, 7], BatchLimits(tokens=20, padding=20)))
    [[0, 2, 3], [1]]
    >>> list(batch_by_length([5, 30, 6, 7], BatchLimits(tokens=1000, padding=3)))
    [[0, 2, 3], [1]]
    """
    batch: list[int] = []
    tokens = longest = padding = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[index]
        tokens += length
        padding += len(batch) * (length - longest)
        if batch and (tokens > limits.tokens or padding > limits.padding):
            yield batch
            batch, tokens, padding = [], length, 0
        batch.append(index)
        longest = length
    if batch:
        yield batch


def plan_batches(lengths: list[int], limits: BatchLimits | Shapes) -> Iterator[Batch]:
    """Plan the batches of texts with these lengths in tokens."""
    if isinstance(limits, Shapes):
        yield from batch_by_shape(lengths, limits)
        return
    for texts in batch_by_length(lengths, limits):
        yield Batch(texts, len(texts), max(lengths[i] for i in texts))


def batch_by_shape(lengths: list[int], shapes: Shapes) -> Iterator[Batch]:
    """Assign each text to the narrowest width that fits it; order is kept within a width.

    A width's texts fill batches with the maximum number of rows; the rest goes into the smallest
    batch that fits. So a width has ``ceil(texts / max_rows)`` batches: on an accelerator another
    launch costs more than empty rows.

    Raises:
        ValueError: a text is longer than the widest shape.

    >>> shapes = Shapes(rows=(1, 2, 4), tokens=(8, 32), budget=64)
    >>> for batch in batch_by_shape([5, 30, 6, 7, 8, 8], shapes):
    ...     print(batch)
    Batch(texts=[0, 2, 3, 4], rows=4, tokens=8)
    Batch(texts=[5], rows=1, tokens=8)
    Batch(texts=[1], rows=1, tokens=32)
    """
    if lengths and max(lengths) > shapes.tokens[-1]:
        raise ValueError(f"a text of {max(lengths)} tokens; the widest shape: {shapes.tokens[-1]}")
    by_width: dict[int, list[int]] = {tokens: [] for tokens in shapes.tokens}
    for index, length in enumerate(lengths):
        by_width[shapes.tokens[bisect_left(shapes.tokens, length)]].append(index)
    for tokens, texts in by_width.items():
        heights = shapes.heights(tokens)
        for start in range(0, len(texts), heights[-1]):
            part = texts[start : start + heights[-1]]
            yield Batch(part, heights[bisect_left(heights, len(part))], tokens)


def padded(
    texts: Sequence[Sequence[int]], rows: int, tokens: int
) -> dict[str, npt.NDArray[np.int64]]:
    """A graph's inputs for texts of these ids; attention over a row without tokens is NaN.

    >>> padded([[101, 102]], rows=2, tokens=3)["attention_mask"].tolist()
    [[1, 1, 0], [1, 0, 0]]
    """
    ids = np.zeros((rows, tokens), np.int64)
    mask = np.zeros((rows, tokens), np.int64)
    mask[len(texts) :, 0] = 1
    for row, own in enumerate(texts):
        ids[row, : len(own)] = own
        mask[row, : len(own)] = 1
    return {"input_ids": ids, "attention_mask": mask}
