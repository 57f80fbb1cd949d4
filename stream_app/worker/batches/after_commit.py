"""Counts a commit and the rules that failed in it, and stores the shadow's scores."""

from collections.abc import Callable, Sequence

import structlog

from stream_app.core.pipeline.pipeline import UNHEARD, Pipeline
from stream_app.core.session.alerting import Alerting
from stream_app.core.session.batch import BatchResult, ShadowScore
from stream_app.worker.batches.metrics import WorkerMetrics

log = structlog.get_logger(__name__)


class AfterCommit:
    """Counts commits and stores the shadow's scores; ``keep_shadow`` writes them."""

    def __init__(
        self,
        pipeline: Pipeline,
        metrics: WorkerMetrics,
        keep_shadow: Callable[[Sequence[ShadowScore]], None],
    ) -> None:
        self._pipeline = pipeline
        self._metrics = metrics
        self._keep_shadow = keep_shadow
        self._reported: set[tuple[str, str]] = set()

    def follow(self, result: BatchResult) -> None:
        """Do what follows the commit of this result."""
        self._count(result)
        for bundle in self._pipeline.bundles:
            self._report_rules(bundle.environment.alerting)
        self._finish_shadow(result)

    def _count(self, result: BatchResult) -> None:
        for alert in result.alerts:
            self._metrics.alerts.labels(alert.state.value).inc()
        if unheard := result.counts[UNHEARD]:
            log.error("session.unheard", turns=unheard)
        for fate, count in result.counts.items():
            self._metrics.events.labels(fate).inc(count)
        for item in result.dead_letters:
            self._metrics.dead_letters.labels(item.letter.reason).inc()

    def _report_rules(self, alerting: Alerting) -> None:
        """Count rules that failed to evaluate; log each of them once per file of rules."""
        for source, count in alerting.failures.items():
            for rule in alerting.rules.rules:
                if not rule.uses(source):
                    continue
                self._metrics.rule_failures.labels(rule.name).inc(count)
                digest = alerting.rules.digest
                if (digest, rule.name) not in self._reported:
                    self._reported.add((digest, rule.name))
                    log.error("rule.failed", rule=rule.name, expression=source, digest=digest)
        alerting.failures.clear()

    def _finish_shadow(self, result: BatchResult) -> None:
        """Store the shadow's scores; faults are counted and go no further."""
        shadow = self._pipeline.shadow
        if shadow is None:
            return
        try:
            if result.shadow_scores:
                self._keep_shadow(result.shadow_scores)
                self._metrics.shadow_scores.inc(len(result.shadow_scores))
        except Exception as problem:  # noqa: BLE001  # never disturbs the bundle in force
            self._metrics.shadow_faults.inc()
            log.warning("shadow.not_stored", error=type(problem).__name__)
        over = (key for key, v in result.sessions.items() if v.state.closed or v.state.withdrawn)
        shadow.forget(over)
        if result.revised is not None:  # its vectors are of the turn as it was
            shadow.forget([result.revised.session_id])
