"""Growing pauses between the attempts of single messages."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

MAX_DOUBLINGS: Final = 30
Key = TypeVar("Key")


class Delays(Generic[Key]):
    """Which messages wait before their next attempt; forgotten when the process ends."""

    def __init__(self, every: float, longest: float, now: Callable[[], datetime]) -> None:
        """``every``: seconds of the first pause, which then doubles; ``longest``: of any."""
        self._every = every
        self._longest = longest
        self._now = now
        self._not_before: dict[Key, datetime] = {}

    def postpone(self, key: Key, attempts: int, at_least: float = 0.0) -> None:
        """Delay the next attempt; ``attempts``: made before this one.

        ``at_least``: seconds that the target asks for, up to the longest pause.
        """
        pause = max(at_least, self._every * 2 ** min(attempts, MAX_DOUBLINGS))
        seconds = min(self._longest, pause)
        self._not_before[key] = self._now() + timedelta(seconds=seconds)

    def is_over(self, key: Key) -> bool:
        """Whether the message does not wait, or no longer."""
        now = self._now()
        return now >= self._not_before.get(key, now)

    def forget(self, key: Key) -> None:
        """The message was delivered."""
        self._not_before.pop(key, None)
