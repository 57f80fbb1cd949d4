"""CPU time of a thread by part of its work: every moment counts for the innermost part."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any


class PartClock:
    """Sums the CPU seconds of one thread by part; not thread-safe."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._open: list[str] = []
        self._since = 0.0

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the time of the ``with`` block, without the parts inside it."""
        self._note()
        self._open.append(name)
        try:
            yield
        finally:
            self._note()
            self._open.pop()

    def wrap(self, owner: Any, attribute: str, name: str) -> None:
        """Count the calls of a function or method of ``owner`` as a part."""
        call: Callable[..., Any] = getattr(owner, attribute)

        @wraps(call)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._note()
            self._open.append(name)
            try:
                return call(*args, **kwargs)
            finally:
                self._note()
                self._open.pop()

        setattr(owner, attribute, counted)

    def _note(self) -> None:
        now = time.thread_time()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now
