"""The intents of the configured file, as the console and the exports name them."""

import threading
from contextlib import suppress
from pathlib import Path

from stream_app.core.measures.intents import NO_INTENTS, IntentSet
from stream_app.core.rules.intent_file import IntentFileError
from stream_app.inference import intent_files

_Stamp = tuple[int, int] | None


class KnownIntents:
    """Reads the file again only after it has changed; an invalid file leaves the old intents."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stamp: _Stamp = None
        self._found = NO_INTENTS
        self._read = False

    def read(self) -> IntentSet:
        """The intents; empty without a file, or as long as it was never valid."""
        stamp = self._current()
        with self._lock:
            if not self._read or stamp != self._stamp:
                self._stamp, self._read = stamp, True
                with suppress(IntentFileError):  # the worker reports it
                    self._found = intent_files.load(self._path)
            return self._found

    def _current(self) -> _Stamp:
        try:
            found = self._path.stat() if self._path is not None else None
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size)
