"""The process of ``rapport reviews ask``: asks about ended sessions, and stores proposals."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from prometheus_client import Counter
from tenacity import RetryCallState

from stream_app.asking.asker import Asker
from stream_app.core.rules.proposals import Dropped
from stream_app.core.rules.scorecards import Criterion
from stream_app.notifications.rounds import Rounds
from stream_app.store.stream.repository import Store
from stream_app.store.work import proposals

log = structlog.get_logger(__name__)
RECENT: Final = timedelta(days=7)
"""Sessions that ended longer ago are not asked about when a question is new."""
PROPOSED: Final = "proposed"
NAME: Final = "ask"


def proposals_counter() -> Counter:
    """Counter of answers: proposals, and dropped ones by reason; not in the default registry."""
    counter = Counter(
        "rapport_proposals",
        "Answers of the language model that are proposals, and dropped ones by reason",
        ["result"],
        registry=None,
    )
    for result in (PROPOSED, *(reason.value for reason in Dropped)):
        counter.labels(result)  # starts at 0: alert rules see the first
    return counter


class AskingRounds(Rounds):
    """Asks about every ended session with consent, each question once."""

    def __init__(
        self,
        store: Store,
        asker: Asker,
        questions: Sequence[Criterion],
        counter: Counter,
        now: Callable[[], datetime],
        every: float,
        max_wait: float,
    ) -> None:
        """``every``: seconds between two rounds; ``max_wait``: maximum seconds between retries."""
        super().__init__(NAME, every, max_wait)
        self._store = store
        self._asker = asker
        self._questions = questions
        self._counter = counter
        self._now = now

    def round(self) -> int:
        """Ask about all sessions that are waiting; return the number of proposals.

        Raises:
            EndpointFailed: the endpoint gives no answer; the rest waits for the next round.
            StoreUnavailable: the database does not answer.
        """
        made = 0
        model = self._asker.model
        since = self._now() - RECENT
        for session_id in proposals.waiting(self._store, self._questions, model, since):
            left = proposals.unanswered(self._store, session_id, self._questions, model)
            for question, found in self._asker.ask(session_id, left, self.mark_busy):
                if proposals.keep(self._store, session_id, question, model, found):
                    result = found.value if isinstance(found, Dropped) else PROPOSED
                    self._counter.labels(result).inc()
                    made += result == PROPOSED
                if self._stopped.is_set():
                    return made
        return made

    def _log_retry(self, attempt: RetryCallState) -> None:
        problem = attempt.outcome.exception() if attempt.outcome else None
        log.warning("ask.no_answer", attempt=attempt.attempt_number, problem=str(problem))
