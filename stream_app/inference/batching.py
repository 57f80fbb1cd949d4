"""Micro-batches of similar length within a token budget: on a CPU, padding is the enemy."""

from collections.abc import Iterator

from msgspec import Struct


class Limits(Struct, frozen=True):
    """How large a batch may be, in tokens with its padding, and how many of them padding."""

    tokens: int
    padding: int


ONE_BY_ONE = Limits(tokens=0, padding=0)


def by_length(lengths: list[int], limits: Limits) -> Iterator[list[int]]:
    """Indices grouped so that ``count x longest`` and the padding in it stay within the limits.

    Shortest first. A text that is longer than the limit makes a batch of its own; a limit of 0
    tokens makes every batch one text.

    >>> list(by_length([5, 30, 6, 7], Limits(tokens=20, padding=20)))
    [[0, 2], [3], [1]]
    >>> list(by_length([5, 30, 6, 7], Limits(tokens=1000, padding=3)))
    [[0, 2, 3], [1]]
    """
    batch: list[int] = []
    longest = padding = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[index]
        padding += len(batch) * (length - longest)
        if batch and ((len(batch) + 1) * length > limits.tokens or padding > limits.padding):
            yield batch
            batch, padding = [], 0
        batch.append(index)
        longest = length
    if batch:
        yield batch
