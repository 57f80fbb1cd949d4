"""Measure CPU time inside ONNX sessions, to separate it from the rest of the pipeline."""

import threading
import time
from typing import Any


class ModelClock:
    """Sums the CPU seconds that threads spend in the wrapped sessions.

    Correct only for sessions with one intra-op thread, which compute in the calling thread.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """Add CPU seconds; thread-safe."""
        with self._lock:
            self.seconds += seconds

    def watch(self, session: Any) -> "WatchedSession":
        """Wrap the session with this clock."""
        return WatchedSession(session, self)


class WatchedSession:
    """Delegates to an ONNX session and times the calls that run the model."""

    def __init__(self, session: Any, clock: ModelClock) -> None:
        self._session = session
        self._clock = clock

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """``InferenceSession.run``, timed."""
        return self._timed(self._session.run, args, kwargs)

    def run_with_iobinding(self, *args: Any, **kwargs: Any) -> Any:
        """``InferenceSession.run_with_iobinding``, timed."""
        return self._timed(self._session.run_with_iobinding, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def _timed(self, call: Any, args: Any, kwargs: Any) -> Any:
        start = time.thread_time()
        try:
            return call(*args, **kwargs)
        finally:
            self._clock.add(time.thread_time() - start)
