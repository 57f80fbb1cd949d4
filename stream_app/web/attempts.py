"""Slows down whoever guesses passwords: refused attempts are counted by name and by address.

Bounded in memory and kept in one process: several web processes count each on its own.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from stream_app.errors import RapportError

LONGEST_WAIT: Final = 900.0
FORGET_AFTER: Final = 3600.0
MOST_KEYS: Final = 10_000


class TooManyAttempts(RapportError):
    """Sign-in was refused too often; ``wait``: seconds until it may be tried again."""

    def __init__(self, wait: float) -> None:
        super().__init__(f"too many attempts to sign in; try again in {max(1, round(wait))} s")
        self.wait = wait


class Attempts:
    """Counts refusals by key; beyond what a key allows, each doubles its wait, up to 15 minutes.

    What is passed in are keys with the number of refusals that cost nothing.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._refused: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def check(self, keys: Mapping[str, int]) -> None:
        """Let an attempt through.

        Raises:
            TooManyAttempts: one of the keys has to wait.
        """
        now = self._clock()
        with self._lock:
            wait = max((self._until(key, free) - now for key, free in keys.items()), default=0.0)
        if wait > 0:
            raise TooManyAttempts(wait)

    def begin(self, keys: Mapping[str, int]) -> None:
        """Let an attempt through, counted as refused until it has succeeded: many at once count.

        Raises:
            TooManyAttempts: one of the keys has to wait.
        """
        with self._lock:
            self.check(keys)
            self.refused(keys)

    def refused(self, keys: Mapping[str, int]) -> None:
        """Count a refusal."""
        now = self._clock()
        with self._lock:
            for key in keys:
                count, last = self._refused.pop(key, (0, now))
                self._refused[key] = (1 if now - last > FORGET_AFTER else count + 1, now)
            while len(self._refused) > MOST_KEYS:
                self._refused.popitem(last=False)

    def succeeded(self, key: str, others: Iterable[str] = ()) -> None:
        """Forget what was counted for a key, and for others this one attempt."""
        with self._lock:
            self._refused.pop(key, None)
            for other in others:
                if other in self._refused:
                    count, last = self._refused[other]
                    self._refused[other] = (max(0, count - 1), last)

    def _until(self, key: str, free: int) -> float:
        count, last = self._refused.get(key, (0, 0.0))
        over = count - free
        return last + min(LONGEST_WAIT, 2.0 ** min(over, 20)) if over >= 0 else 0.0
