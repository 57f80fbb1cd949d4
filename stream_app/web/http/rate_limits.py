"""Limits of how much one account may ask of one web process."""

import math
import threading
import time
from collections.abc import Callable
from typing import Final

from fastapi import HTTPException
from msgspec import Struct

MAX_ACCOUNTS: Final = 10_000
"""Beyond, accounts whose allowance is full again are forgotten."""


class _Left(Struct):
    """What an account has left of its allowance, at a time."""

    amount: float
    at: float


class RateLimit:
    """Allows each account ``per_second`` on average, and ``burst`` at once; callable from threads.

    A request may exceed what is left: it is allowed while anything is, and the next one waits until
    the allowance is positive again. So a request of any size is possible.
    """

    def __init__(
        self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._accounts: dict[str, _Left] = {}
        self._counting = threading.Lock()

    def count(self, account: str, amount: float = 1.0) -> None:
        """Take ``amount`` of the account's allowance.

        Raises:
            HTTPException: 429 with ``Retry-After`` if nothing is left.
        """
        with self._counting:
            now = self._clock()
            left = self._accounts.setdefault(account, _Left(self._burst, now))
            left.amount = min(self._burst, left.amount + (now - left.at) * self._per_second)
            left.at = now
            if left.amount <= 0.0:
                wait = max(1, math.ceil(-left.amount / self._per_second))
                raise HTTPException(
                    429, "too many requests of this account", {"Retry-After": str(wait)}
                )
            left.amount -= amount
            if len(self._accounts) > MAX_ACCOUNTS:
                self._forget_full(now)

    def _forget_full(self, now: float) -> None:
        full_after = self._burst / self._per_second
        self._accounts = {
            account: left for account, left in self._accounts.items() if now - left.at < full_after
        }
