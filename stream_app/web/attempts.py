"""Slows down whoever guesses passwords: refused attempts are counted by name and by address.

Bounded in memory and kept in one process: several web processes count each on its own.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from stream_app.errors import RapportError

FREE_ATTEMPTS: Final = 5
LONGEST_WAIT: Final = 900.0
FORGET_AFTER: Final = 3600.0
MOST_KEYS: Final = 10_000


class TooManyAttempts(RapportError):
    """Sign-in was refused too often; ``wait``: seconds until it may be tried again."""

    def __init__(self, wait: float) -> None:
        super().__init__(f"too many attempts to sign in; try again in {max(1, round(wait))} s")
        self.wait = wait


class Attempts:
    """After five refusals each further one doubles the wait, from 1 s up to 15 minutes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._refused: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def check(self, *keys: str) -> None:
        """Let an attempt through.

        Raises:
            TooManyAttempts: one of the keys has to wait.
        """
        now = self._clock()
        with self._lock:
            wait = max((self._until(key) - now for key in keys), default=0.0)
        if wait > 0:
            raise TooManyAttempts(wait)

    def refused(self, *keys: str) -> None:
        """Count a refusal."""
        now = self._clock()
        with self._lock:
            for key in keys:
                count, last = self._refused.pop(key, (0, now))
                self._refused[key] = (1 if now - last > FORGET_AFTER else count + 1, now)
            while len(self._refused) > MOST_KEYS:
                self._refused.popitem(last=False)

    def succeeded(self, *keys: str) -> None:
        """Forget what was counted."""
        with self._lock:
            for key in keys:
                self._refused.pop(key, None)

    def _until(self, key: str) -> float:
        count, last = self._refused.get(key, (0, 0.0))
        over = count - FREE_ATTEMPTS
        return last + min(LONGEST_WAIT, 2.0 ** min(over, 20)) if over >= 0 else 0.0
