"""Audits reads and refused attempts of signed-in people; frequent repeats are one entry.

Pages refresh themselves and streams reconnect, so the same access by the same person is recorded
once in ``REPEAT_SECONDS`` by each process. Reads of transcripts and of counsellors do not pass
through here: each of them is recorded.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.stream.repository import Store

REPEAT_SECONDS: Final = 600.0
MAX_REMEMBERED: Final = 50_000
_Access = tuple[str, AuditAction, str | None, str]


class AccessLog:
    """Records accesses of one process."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._recorded: OrderedDict[_Access, float] = OrderedDict()
        self._lock = threading.Lock()

    def record(
        self, person: str, action: AuditAction, detail: str, session_id: str | None = None
    ) -> None:
        """Record an access, unless this process has recorded the same one recently.

        Raises:
            StoreError: it could not be recorded; do not show the data.
        """
        access = (person, action, session_id, detail)
        now = self._clock()
        with self._lock:
            while self._recorded:
                oldest, at = next(iter(self._recorded.items()))
                if now - at < REPEAT_SECONDS and len(self._recorded) < MAX_REMEMBERED:
                    break
                del self._recorded[oldest]
            if access in self._recorded:
                return
        audit.record(self._store, person, action, session_id, detail)
        with self._lock:
            self._recorded.setdefault(access, now)
