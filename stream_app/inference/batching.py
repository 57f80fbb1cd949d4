"""Micro-batches of similar length within a token budget: on a CPU, padding is the enemy."""

from collections.abc import Iterator


def by_length(lengths: list[int], token_budget: int) -> Iterator[list[int]]:
    """Indices grouped so that ``count x longest`` stays within the budget, shortest first.

    A text that is longer than the budget makes a batch of its own; a budget of 0 makes every
    batch one text.

    >>> list(by_length([5, 30, 6, 7], token_budget=20))
    [[0, 2], [3], [1]]
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[index] > token_budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
