"""Shared objects of the web application, injected into its routes."""

from dataclasses import dataclass, field
from typing import Annotated, Final, cast

from fastapi import Depends
from starlette.requests import HTTPConnection

from stream_app.findings.analysis_runs import AnalysisRuns
from stream_app.store.accounts.sign_in_throttle import SignInThrottle
from stream_app.tracing.port import OFF, Tracing
from stream_app.web.http.identity_provider import IdentityProvider
from stream_app.web.http.metrics import WebMetrics
from stream_app.web.http.rate_limits import RateLimit
from stream_app.web.http.sign_in_queue import SignInQueue
from stream_app.web.http.unknown_senders import UnknownSenders
from stream_app.web.live.health import WebHealth
from stream_app.web.live.intervention_outbox import InterventionOutbox
from stream_app.web.live.live_hub import Hub
from stream_app.web.live.log_ends import LogEnds
from stream_app.web.live.publisher import Publisher
from stream_app.web.live.topic_reader import TopicReader
from stream_app.web.practice_model import PracticeModel
from stream_app.work.desk import Desk

EVENTS_PER_SECOND: Final = 2_000
EVENTS_AT_ONCE: Final = 40_000
"""Limits of an account over HTTP: programs that catch up after an outage send faster."""
CHECKS_PER_SECOND: Final = 2
CHECKS_AT_ONCE: Final = 40
"""Limits of checks of drafts of alert rules, which are made while somebody types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services(Desk):
    """Created once by ``bootstrap.web``; routes declare ``services: ServicesDep`` to get it.

    ``practice``: None if it is switched off. ``events_sent``, ``rules_checked``: limits of each
    account.
    """

    hub: Hub
    reader: TopicReader
    publisher: Publisher
    interventions: InterventionOutbox
    metrics: WebMetrics
    health: WebHealth
    attempts: SignInThrottle
    log_ends: LogEnds
    unknown_senders: UnknownSenders
    identity_provider: IdentityProvider | None = None
    practice: PracticeModel | None = None
    tracing: Tracing = OFF
    analyses: AnalysisRuns = field(default_factory=AnalysisRuns)
    sign_in_queue: SignInQueue = field(default_factory=SignInQueue)
    events_sent: RateLimit = field(
        default_factory=lambda: RateLimit(EVENTS_PER_SECOND, EVENTS_AT_ONCE)
    )
    rules_checked: RateLimit = field(
        default_factory=lambda: RateLimit(CHECKS_PER_SECOND, CHECKS_AT_ONCE)
    )

    def close(self) -> None:
        """Close all connections to the databases."""
        self.store.close()
        self.read_store.close()
        self.health.close()


async def _services(connection: HTTPConnection) -> Services:
    """Not blocking, so ``async``: FastAPI would call it in another thread otherwise."""
    return cast("Services", connection.app.state.services)


ServicesDep = Annotated[Services, Depends(_services)]
