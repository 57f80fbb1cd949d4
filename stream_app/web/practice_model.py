"""The model of the practice page: loaded at its first use, one request scored at a time.

Nothing that it scores is kept. Attempts per person and minute are limited, and so is the number of
requests that wait.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from stream_app.contracts.events import Role
from stream_app.core.pipeline.practice import SaidTurn, WordingScore, context_of, score_wordings
from stream_app.core.rules.languages import ANY, covers
from stream_app.core.session.ports import Scorer
from stream_app.errors import BundleError, RapportError
from stream_app.extras import ExtraMissing

log = structlog.get_logger(__name__)

SECONDS: Final = 60.0
PER_PERSON: Final = 20
"""Attempts of one person in a minute, in each process."""
MAX_WAITING: Final = 4
"""Requests that wait for the one that is scored; each holds a thread of the process."""
BUSY_SECONDS: Final = 3
UNREADABLE: Final = "Practice is not available: the model cannot be loaded (see the log)."


class PracticeUnavailable(RapportError):
    """The model cannot be used in this process; the message says why."""


class TooManyTries(RapportError):
    """Too many attempts of this person, or too many people at once; try again later."""

    def __init__(self, message: str, status: int, retry_after: int) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A scorer, and the number of turns before and after a turn that it sees."""

    scorer: Scorer
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class PracticeScores:
    """The scores of each wording; ``unknown``: turns of the window that have no text any more."""

    wordings: list[WordingScore]
    bundle: str
    unknown: int


class PracticeModel:
    """Scores wordings of a turn; ``check`` raises ``ExtraMissing`` without the model's runtime."""

    def __init__(
        self,
        load: Callable[[], LoadedModel],
        check: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        languages: Callable[[], Sequence[str]] = lambda: (ANY,),
    ) -> None:
        """``languages``: reads those of the bundle's manifest, when they are first needed."""
        self._load = load
        self._languages = languages
        self._known_languages: Sequence[str] | None = None
        self._check = check
        self._clock = clock
        self._model: LoadedModel | None = None
        self._running = threading.Lock()
        self._slots = threading.BoundedSemaphore(1 + MAX_WAITING)
        self._counting = threading.Lock()
        self._since = clock()
        self._attempts: Counter[str] = Counter()

    def require(self) -> None:
        """Check that the model can be used, without loading it.

        Raises:
            PracticeUnavailable: its runtime is not installed.
        """
        try:
            self._check()
        except ExtraMissing as problem:
            raise PracticeUnavailable(f"Practice is not available: {problem}") from None

    def covers(self, lang: str | None) -> bool:
        """Whether the model was made for a session's language.

        Raises:
            PracticeUnavailable: its manifest cannot be read.
        """
        if self._known_languages is None:
            try:
                self._known_languages = tuple(self._languages())
            except BundleError as problem:
                log.error("practice.unavailable", problem=str(problem))
                raise PracticeUnavailable(UNREADABLE) from None
        return covers(self._known_languages, lang)

    def score(
        self, person: str, turns: Sequence[SaidTurn], seq: int, role: Role, wordings: Sequence[str]
    ) -> PracticeScores:
        """Score wordings of the turn with this seq; blocks, so call it outside the event loop.

        ``turns``: the session's turns around it, in order.

        Raises:
            PracticeUnavailable: the model cannot be loaded.
            TooManyTries: of this person, or of all people together.
        """
        self.require()
        self._count(person)
        if not self._slots.acquire(blocking=False):
            raise TooManyTries("Others are practising: try again soon.", 503, BUSY_SECONDS)
        try:
            with self._running:
                model = self._loaded()
                context = context_of(turns, seq, model.before, model.after)
                scored = score_wordings(model.scorer, context, role, wordings)
        finally:
            self._slots.release()
        return PracticeScores(scored, model.scorer.bundle_id, context.unknown)

    def _loaded(self) -> LoadedModel:
        if self._model is None:
            try:
                self._model = self._load()
            except BundleError as problem:
                log.error("practice.unavailable", problem=str(problem))
                raise PracticeUnavailable(UNREADABLE) from None
        return self._model

    def _count(self, person: str) -> None:
        with self._counting:
            now = self._clock()
            if now - self._since >= SECONDS:
                self._since = now
                self._attempts.clear()
            self._attempts[person] += 1
            if self._attempts[person] > PER_PERSON:
                wait = max(1, round(self._since + SECONDS - now))
                message = f"At most {PER_PERSON} attempts a minute: try again in a moment."
                raise TooManyTries(message, 429, wait)
