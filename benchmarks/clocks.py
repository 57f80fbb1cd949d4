"""CPU time inside model sessions, so that what is left is the stream's own."""

import threading
import time
from typing import Any


class ModelClock:
    """Adds up the CPU seconds that threads spend in the sessions it watches.

    Right for sessions with one intra-op thread: they compute in the thread that calls them.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """From any thread."""
        with self._lock:
            self.seconds += seconds

    def watch(self, session: Any) -> "WatchedSession":
        """The same session, watched."""
        return WatchedSession(session, self)


class WatchedSession:
    """Passes everything on to an ONNX session; what runs the model is timed."""

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
