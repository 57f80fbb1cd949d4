"""Prometheus metrics of a worker (``/metrics``), and the stages that they and the traces time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from stream_app.core.pipeline.pipeline import UNHEARD, Received
from stream_app.tracing.port import OFF, Tracing

STAGES = ("decode", "encode", "load", "score", "commit", "publish")
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, 60.0)
TURN_SECONDS = (0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0)
WATCHED_REASONS = ("implausible-time", "unprocessable")
DEAD_LETTER = "dead-letter"
UNSCORED = "language"
RELOADS = ("adopted", "refused")
EVENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class WorkerMetrics:
    """The metrics of one worker, in their own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.provider = Gauge(
            "rapport_provider",
            "1 for the execution provider in use (in_use) and the requested one (asked)",
            ["in_use", "asked"],
            registry=self.registry,
        )
        self.lag = Gauge(
            "rapport_lag_events",
            "Events in the log that are not committed",
            ["partition"],
            registry=self.registry,
        )
        self.deleted_unread = Counter(
            "rapport_deleted_unread_events",
            "Events that the topic's retention deleted before they were read",
            registry=self.registry,
        )
        self.batch_events = Histogram(
            "rapport_batch_events", "Events in a batch", buckets=EVENTS, registry=self.registry
        )
        self.stage_seconds = Histogram(
            "rapport_stage_seconds",
            "Duration of each stage of a batch",
            ["stage"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.events = Counter(
            "rapport_events", "Processed events by result", ["fate"], registry=self.registry
        )
        self.dead_letters = Counter(
            "rapport_dead_letters", "Dead-lettered events", ["reason"], registry=self.registry
        )
        self.miskeyed = Counter(
            "rapport_miskeyed_events",
            "Events whose Kafka key is not their session_id",
            registry=self.registry,
        )
        self.retries = Counter(
            "rapport_store_retries",
            "Retried store calls while the database was unavailable",
            registry=self.registry,
        )
        self.crashes = Counter(
            "rapport_crashes",
            "Failed batches, by error; the worker exits after each",
            ["reason"],
            registry=self.registry,
        )
        self.store_errors = Counter(
            "rapport_store_errors",
            "Failed store calls: refused, or not successful within the retry time",
            registry=self.registry,
        )
        self.stale_states = Counter(
            "rapport_stale_states",
            "Batches repeated because another worker had updated a session",
            registry=self.registry,
        )
        self.alerts = Counter(
            "rapport_alerts", "Alert transitions", ["state"], registry=self.registry
        )
        self.shadow_scores = Counter(
            "rapport_shadow_scores",
            "Turn scores stored of the bundle in the shadow",
            registry=self.registry,
        )
        self.shadow_faults = Counter(
            "rapport_shadow_faults",
            "Batches whose shadow scores could not be computed or stored",
            registry=self.registry,
        )
        self.rules_loaded = Gauge(
            "rapport_rules_loaded", "Alert rules in force", registry=self.registry
        )
        self.rule_failures = Counter(
            "rapport_rule_failures",
            "Failed evaluations of a rule's expressions; their result is unknown",
            ["rule"],
            registry=self.registry,
        )
        self.rule_reloads = Counter(
            "rapport_rule_reloads",
            "Changes of the file of rules: adopted, or refused (the old rules stay in force)",
            ["outcome"],
            registry=self.registry,
        )
        self.bundles = Gauge(
            "rapport_bundles",
            "Bundles of the routes file, with the default one: in_force, or refused",
            ["state"],
            registry=self.registry,
        )
        self.routes_invalid = Gauge(
            "rapport_routes_invalid",
            "1 while the changed file of bundles and routes is invalid; those in force stay",
            registry=self.registry,
        )
        self.intents_loaded = Gauge(
            "rapport_intents_loaded", "Intents in force", registry=self.registry
        )
        self.intent_reloads = Counter(
            "rapport_intent_reloads",
            "Changes of the file of intents: adopted, or refused (the old ones stay in force)",
            ["outcome"],
            registry=self.registry,
        )
        self.redaction_seconds = Histogram(
            "rapport_redaction_seconds",
            "Time to mask personal details in the text of one turn",
            buckets=TURN_SECONDS,
            registry=self.registry,
        )
        self.ticks = Counter(
            "rapport_ticks",
            "Silent sessions in which a time rule fired",
            registry=self.registry,
        )
        self.outdated = Counter(
            "rapport_outdated",
            "Purged items older than their retention time, by kind",
            ["what"],
            registry=self.registry,
        )
        self.refused_purges = Counter(
            "rapport_refused_purges",
            "Purges that were not begun, by reason: ClocksDisagree or PurgeRefused",
            ["reason"],
            registry=self.registry,
        )
        self.cache_hits = Counter(
            "rapport_cache_hits", "Session states found in memory", registry=self.registry
        )
        self.cache_misses = Counter(
            "rapport_cache_misses", "Session states read from the store", registry=self.registry
        )
        self.cached_sessions = Gauge(
            "rapport_cached_sessions", "Session states in memory", registry=self.registry
        )
        self._start_at_zero()

    def _start_at_zero(self) -> None:
        """Export the series that alert rules watch from the start.

        A counter that appears with its first value has no increase for ``increase``.
        """
        for stage in STAGES:
            self.stage_seconds.labels(stage)
        for reason in WATCHED_REASONS:
            self.dead_letters.labels(reason)
        for outcome in RELOADS:
            self.rule_reloads.labels(outcome)
            self.intent_reloads.labels(outcome)
        self.events.labels(DEAD_LETTER)
        self.events.labels(UNSCORED)
        self.events.labels(UNHEARD)


class Stages:
    """Times and traces the stages of a batch."""

    def __init__(self, metrics: WorkerMetrics, tracing: Tracing = OFF) -> None:
        self.metrics = metrics
        self.tracing = tracing

    @contextmanager
    def stage(self, name: str, records: Sequence[Received] = ()) -> Iterator[None]:
        """Time a stage (one of ``STAGES``), also if it fails; trace it in these records."""
        with (
            self.metrics.stage_seconds.labels(name).time(),
            self.tracing.stage(name, records),
        ):
            yield
