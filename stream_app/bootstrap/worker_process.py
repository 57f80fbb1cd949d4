"""Builds the worker process: Faust app, agent and what its timers call."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Final

import msgspec
import structlog
from prometheus_client import Counter as Counts

from stream_app import bootstrap
from stream_app.analytics.rollups import rollups
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.pipeline.shadow import Shadow
from stream_app.core.session.consent import OnWithdrawal
from stream_app.settings import RulesSource, Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.alerts import rule_sources
from stream_app.store.database import tables
from stream_app.store.lifecycle import archived, erasure, restricted, retention
from stream_app.store.lifecycle.retention import Schedule
from stream_app.store.stream import claims, log_positions, shadow_scores, withdrawal
from stream_app.store.stream.baselines import StoredBaselines
from stream_app.store.stream.repository import Store
from stream_app.tracing.port import OFF, Tracing
from stream_app.worker.agents import TurnAgent
from stream_app.worker.batches.lane import Lane
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.batches.outgoing import OutputTopics
from stream_app.worker.batches.processor import BatchProcessor, BatchSettings, Clocks
from stream_app.worker.batches.progress import Progress
from stream_app.worker.kafka import app as faust_app
from stream_app.worker.kafka.app import RapportApp
from stream_app.worker.kafka.publisher import Publisher
from stream_app.worker.upkeep import erasing
from stream_app.worker.upkeep.health import Health, HealthLimits
from stream_app.worker.upkeep.intent_loading import IntentReloader
from stream_app.worker.upkeep.left_bundles import LeftBundles
from stream_app.worker.upkeep.rule_loading import RuleReloader
from stream_app.worker.upkeep.tasks import Chores, Upkeep

if TYPE_CHECKING:
    from stream_app.inference.scorer import OnnxScorer

log = structlog.get_logger(__name__)
ERASED_AT_A_TIME: Final = 50
"""Sessions that a worker erases between two batches after withdrawals of consent."""


def _shadow(store: Store, scorer: "OnnxScorer", tried: "OnnxScorer", faults: Counts) -> Shadow:
    """Register a bundle in the shadow; its faults are counted and logged without their message."""

    def on_fault(problem: Exception) -> None:
        faults.inc()
        log.warning("shadow.failed", error=type(problem).__name__)

    registered = msgspec.to_builtins(tried.bundle.manifest)
    shadow_scores.register(store, tried.bundle_id, tried.bundle.digest, registered)
    return Shadow(tried, on_fault, shares_encoder=tried.encoder is scorer.encoder)


def worker(
    settings: Settings,
    scorer: "OnnxScorer",
    tracing: Tracing = OFF,
    shadow: "OnnxScorer | None" = None,
) -> tuple[RapportApp, TurnAgent]:
    """Create a Faust app with its agent; call it with the event loop set.

    ``shadow``: scores in silence beside ``scorer``.
    """
    metrics = WorkerMetrics()
    metrics.provider.labels(scorer.provider.value, settings.provider.value).set(1)
    opened = bootstrap.prepared_store(settings, scorer)
    core = bootstrap.default_pipeline(settings, scorer)
    core.environment.baselines = baselines = StoredBaselines(opened, scorer.bundle_id)
    baselines.reload()
    if shadow is not None:
        core.shadow = _shadow(opened, scorer, shadow, metrics.shadow_faults)
    processor = BatchProcessor(
        core,
        opened,
        BatchSettings(
            OutputTopics(
                settings.turn_score_topic, settings.session_score_topic, settings.alert_topic
            ),
            faust_app.RETRY_FOR,
            times=settings.plausible_times,
            group=settings.kafka_group,
            hide_withdrawn=opened.hide_withdrawn,
        ),
        metrics,
        Clocks(opened.clock),
        tracing,
        lambda scores: shadow_scores.write(opened, scores),
    )
    health = Health(
        HealthLimits(
            join=faust_app.REBALANCE_FOR + 60.0,
            progress=faust_app.RETRY_FOR + 60.0,
        )
    )
    source = bootstrap.rule_source(settings, opened)
    in_force = core.encodings.intent_reader.intents
    if settings.rules_source is RulesSource.DATABASE:  # the pipeline has the file's
        core.environment.alerting.adopt(rule_sources.load(source, scorer.heads, in_force))
    routed = bootstrap.bundle_reloader(settings, scorer, core, opened, metrics)
    routed.start()
    rules = RuleReloader(
        source,
        core.environment.alerting,
        metrics,
        lambda: [each.environment.alerting for each in core.bundles.routed.values()],
    )
    reloader = None
    if settings.intents is not None:
        reloader = IntentReloader(
            settings.intents, scorer, scorer.heads, core.encodings, rules, metrics
        )
    app = faust_app.create(settings)
    progress = Progress(app, settings.turns_topic, opened.clock)
    lane = Lane(processor, Publisher(app, settings.dead_letter_topic, tracing))
    chores = Chores(
        rules,
        lambda: reload_baselines(core),
        lambda now: purge_expired(settings, opened, now, progress.broker_clock.present()),
        lambda now: chain(
            restricted.remove(opened, settings.restrictions), update_rollups(opened, now)
        ),
        lambda now: apply_withdrawals(settings, opened, now),
        lambda client: erasing.finish_due(
            settings,
            opened,
            lambda: bootstrap.sweep_archive(settings, opened),
            client,
            opened.clock(),
        ),
        LeftBundles(opened, core, processor).close,
        routed,
        reloader,
    )
    upkeep = Upkeep(app, settings, lane, progress, health, chores)
    agent = TurnAgent(app, lane, progress, upkeep)
    agent.attach()
    app.find_start = lambda committed: processor.positions.continue_from(
        lambda: log_positions.start_offsets(opened, settings.kafka_group, committed, opened.clock())
    )
    app.record_deleted = lambda place, first, until: log_positions.record_deleted(
        opened, settings.kafka_group, place, first, until, opened.clock()
    )
    opened.observe_redaction = metrics.redaction_seconds.observe
    return app, agent


def reload_baselines(core: Pipeline) -> None:
    """Read the baselines of all bundles in force again.

    Raises:
        StoreError: the database does not answer.
    """
    for each in core.bundles:
        if isinstance(each.environment.baselines, StoredBaselines):
            each.environment.baselines.reload()


def purge_expired(
    settings: Settings,
    store: Store,
    now: datetime,
    broker: tuple[datetime, datetime] | None = None,
) -> Iterator[Counter[str]]:
    """Purge expired data in steps, if no process has done so today; yields counts by kind.

    ``now``: by this machine's clock; ``broker``: see ``clocks.check``.

    Raises:
        ClocksDisagree: this machine's, the database's and the broker's clocks do.
        PurgeRefused: too much would expire at once.
    """
    planned = retention.due(store, settings.keep_text, settings.keep_scores, now, broker)
    if planned is not None:
        planned.check(store)
        if retention.claim_daily_run(store, planned.now):
            yield from purge(settings, store, planned)


def purge(settings: Settings, store: Store, planned: Schedule) -> Iterator[Counter[str]]:
    """Purge what has expired, in steps; yields counts by kind."""
    yield from retention.purge(store, planned.text_before, planned.sessions_before, planned.now)
    if settings.archive is not None:
        for sessions in archived.expire(store, settings.archive, planned.sessions_before):
            yield Counter({"archived sessions": sessions})
    store.scrub()


def apply_withdrawals(settings: Settings, store: Store, now: datetime) -> list[int]:
    """Hide, show or erase sessions whose consent was withdrawn, as the setting says.

    Returns the ids of outbox rows that notify consumers of erased sessions.
    """
    withdrawal.apply_setting(store, settings.on_withdrawal)
    if settings.on_withdrawal is not OnWithdrawal.ERASE:
        return []
    session_ids = withdrawal.sessions_to_erase(store, ERASED_AT_A_TIME)
    if not session_ids:
        return []
    erased = erasure.erase(store, session_ids, now, settings.session_topics)
    if erased.removed:
        sessions, turns = (erased.removed[table.name] for table in (tables.sessions, tables.turns))
        detail = f"consent withdrawn: {sessions} sessions, {turns} turns"
        audit.record(store, audit.WORKER, AuditAction.ERASE, detail=detail)
    return erased.outbox_ids


def update_rollups(store: Store, now: datetime) -> Iterator[int]:
    """Update the roll-ups in steps, if no process has done so lately; yields counts of changes."""
    if claims.claim(store, rollups.TASK, rollups.INTERVAL, now):
        yield from rollups.update(store)
