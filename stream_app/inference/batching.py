"""Micro-batches within a token budget: of similar length on a CPU, of a few shapes elsewhere.

On a CPU padding is the enemy, though less so for an encoder that packs its tokens. An accelerator
is idle in small batches and wants the same shapes again and again: memory that is laid out once,
and launches that are recorded once.
"""

from bisect import bisect_left
from collections.abc import Iterator

from msgspec import Struct


class Limits(Struct, frozen=True):
    """How many tokens of its texts a batch may have, and how much padding beside them."""

    tokens: int
    padding: int


ONE_BY_ONE = Limits(tokens=0, padding=0)


class Shapes(Struct, frozen=True):
    """All shapes that a batch may have: rows x tokens, within a budget of tokens.

    ``rows`` and ``tokens`` ascend. The widest shape holds every text, at least one at a time.
    """

    rows: tuple[int, ...]
    tokens: tuple[int, ...]
    budget: int

    def heights(self, tokens: int) -> list[int]:
        """The numbers of rows that the budget allows at a width.

        >>> Shapes((1, 8, 32), (16, 64), budget=512).heights(64)
        [1, 8]
        """
        allowed = [rows for rows in self.rows if rows * tokens <= self.budget]
        return allowed or [self.rows[0]]


class Batch(Struct, frozen=True):
    """``texts``: indices, one for each of the first rows; the other rows are empty."""

    texts: list[int]
    rows: int
    tokens: int


def by_length(lengths: list[int], limits: Limits) -> Iterator[list[int]]:
    """Indices grouped so that the sum of the lengths and the padding stay within the limits.

    Shortest first. A text that is longer than the limit makes a batch of its own; a limit of 0
    tokens makes every batch one text.

    >>> list(by_length([5, 30, 6, 7], Limits(tokens=20, padding=20)))
    [[0, 2, 3], [1]]
    >>> list(by_length([5, 30, 6, 7], Limits(tokens=1000, padding=3)))
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


def planned(lengths: list[int], limits: Limits | Shapes) -> Iterator[Batch]:
    """The batches of some texts by their lengths in tokens."""
    if isinstance(limits, Shapes):
        yield from by_shape(lengths, limits)
        return
    for texts in by_length(lengths, limits):
        yield Batch(texts, len(texts), max(lengths[i] for i in texts))


def by_shape(lengths: list[int], shapes: Shapes) -> Iterator[Batch]:
    """Each text goes to the narrowest width that holds it; order is kept within a width.

    A width's texts fill the tallest batches that the budget allows; what is left over goes into
    the lowest one that holds it. So there are ``ceil(texts / tallest)`` batches of a width: on an
    accelerator a launch costs more than rows that nobody reads.

    Raises:
        ValueError: a text is longer than the widest shape.

    >>> shapes = Shapes(rows=(1, 2, 4), tokens=(8, 32), budget=64)
    >>> for batch in by_shape([5, 30, 6, 7, 8, 8], shapes):
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
