"""Analyses on request, for the API and the console: one at a time, and kept for some minutes.

An analysis reads many sessions and uses a core for seconds. Pages that show another part of the
same analysis, or zoom into it, therefore take the kept one and say when it was computed.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from stream_app.analytics.questions import attributes
from stream_app.analytics.questions.result import Analysis
from stream_app.errors import RapportError
from stream_app.findings import agreement_words
from stream_app.settings import Settings
from stream_app.store.stream.repository import Store

if TYPE_CHECKING:
    from stream_app.analytics.questions.questions import Asked

KEPT_SECONDS: Final = 300.0
KEPT: Final = 32


class AnalysisRunning(RapportError):
    """Another analysis is being computed."""

    def __init__(self) -> None:
        super().__init__("another analysis is running")


@dataclass(frozen=True, slots=True)
class Computed:
    """An analysis and when it was computed."""

    analysis: Analysis
    at: datetime


class AnalysisRuns:
    """``now``: seconds of a clock that never goes back."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._running = threading.Lock()
        self._kept: dict[object, tuple[float, Computed]] = {}

    @contextmanager
    def alone(self, wait: float = 0.0) -> Iterator[None]:
        """Wait so many seconds until no analysis runs, and let none begin meanwhile.

        Raises:
            AnalysisRunning: another one takes longer.
        """
        if not self._running.acquire(timeout=wait):
            raise AnalysisRunning
        try:
            yield
        finally:
            self._running.release()

    def answer(self, store: Store, question: str, asked: "Asked", wait: float) -> Computed:
        """The kept analysis, or a new one.

        Raises:
            AnalysisRunning: another one takes longer than ``wait`` seconds.
            NotEnabled: the question needs self-declared attributes.
            ArchiveError: archived sessions are meant, and the archive is not there.
        """
        from stream_app.analytics.questions import questions  # noqa: PLC0415  # imports pandas

        own = None if asked.attributes is None else frozenset(asked.attributes.items())
        key = (question, replace(asked, attributes=None), own)
        if (known := self._recent(key)) is not None:
            return known
        with self.alone(wait):
            if (known := self._recent(key)) is not None:
                return known
            analysis = questions.answer(
                store, question, asked, lambda bundles: agreement_words.sentences(store, bundles)
            )
            found = Computed(analysis, datetime.now(UTC))
            self._keep(key, found)
            return found

    def _recent(self, key: object) -> Computed | None:
        begun, found = self._kept.get(key, (0.0, None))
        return found if found is not None and begun > self._now() - KEPT_SECONDS else None

    def _keep(self, key: object, found: Computed) -> None:
        begin = self._now() - KEPT_SECONDS
        recent = [(key, kept) for key, kept in self._kept.items() if kept[0] > begin]
        self._kept = {**dict(recent[-KEPT + 1 :]), key: (self._now(), found)}


def declared_attributes(settings: Settings, store: Store) -> dict[str, str] | None:
    """Return self-declared attributes by pseudonym; None where no file is configured."""
    file = settings.self_declared_attributes
    return attributes.read(file, store.privacy.pseudonym) if file else None
