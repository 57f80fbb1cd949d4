"""Cost of a run: tokens as the endpoint counts them, and money by prices that the user gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

from research.second_coder.prompt import Prompt

PER: Final = 1_000_000
FRAME_TOKENS: Final = 100
"""Allowance for what a chat template adds to a request."""


class BudgetReached(RuntimeError):
    """The next request could exceed the budget."""


@dataclass(frozen=True)
class Usage:
    """Tokens of a request, as the endpoint reports them."""

    prompt: int
    completion: int


@dataclass(frozen=True)
class Prices:
    """Money for a million tokens of prompt and of completion, in any currency."""

    prompt: float
    completion: float

    def of(self, usage: Usage) -> float:
        """What these tokens cost.

        >>> Prices(2.0, 10.0).of(Usage(1_000_000, 100_000))
        3.0
        """
        return (self.prompt * usage.prompt + self.completion * usage.completion) / PER


@dataclass
class Spending:
    """What a run has used so far.

    A failed attempt may have been billed although the endpoint's count never arrived, and so may a
    request whose answer has no `usage`: both count with their upper bound, as `uncounted`.
    """

    prices: Prices | None = None
    budget: float | None = None
    requests: int = 0
    usage: Usage = field(default=Usage(0, 0))
    uncounted: Usage = field(default=Usage(0, 0))
    uncounted_requests: int = 0

    @property
    def money(self) -> float | None:
        """Money spent at most; None without prices."""
        if self.prices is None:
            return None
        return self.prices.of(self.usage) + self.prices.of(self.uncounted)

    def check(self, bound: Usage, attempts: int) -> None:
        """Before a request that the client may send up to `attempts` times.

        Raises:
            BudgetReached: it could exceed the budget.
        """
        if self.budget is None or self.prices is None or self.money is None:
            return
        most = self.money + attempts * self.prices.of(bound)
        if most > self.budget:
            raise BudgetReached(
                f"the next request could cost up to {attempts * self.prices.of(bound):.6g}; spent "
                f"at most {self.money:.6g} of {self.budget:.6g}"
            )

    def add(self, usage: Usage | None, bound: Usage, failed: int = 0) -> None:
        """Count a request and its failed attempts; `usage` is None if none was reported."""
        self.add_failed(bound, failed)
        if usage is None:
            self.add_failed(bound, 1)
        else:
            self.requests += 1
            self.usage = _sum(self.usage, usage)

    def add_failed(self, bound: Usage, attempts: int) -> None:
        """Count attempts whose tokens the endpoint did not report."""
        self.requests += attempts
        self.uncounted_requests += attempts
        self.uncounted = _sum(self.uncounted, bound, attempts)


def _sum(one: Usage, other: Usage, times: int = 1) -> Usage:
    return Usage(one.prompt + times * other.prompt, one.completion + times * other.completion)


def upper_bound(prompt: Prompt, completion: int) -> Usage:
    """Tokens that a request can use at most: a token is at least one byte of the request.

    >>> upper_bound(Prompt(({"role": "user", "content": "hi"},)), 5)
    Usage(prompt=139, completion=5)
    """
    sent = msgspec.json.encode([list(prompt.messages), prompt.schema])
    return Usage(len(sent) + FRAME_TOKENS, completion)
