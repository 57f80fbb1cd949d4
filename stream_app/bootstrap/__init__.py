"""Composition root: builds scorer, pipeline, store and web app from the settings.

Each process imports only its own parts: ``worker_process``, ``notifier_process``,
``asking_process``.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import structlog
from pydantic import SecretStr

from stream_app import extras
from stream_app.core.measures.baselines import BaselineBook, NoBaselines
from stream_app.core.measures.intents import NO_INTENTS, IntentSet
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.rules.scorecards import ScorecardFileError, Scorecards
from stream_app.core.rules.scorecards import parse as parse_scorecards
from stream_app.core.session.consent import OnWithdrawal
from stream_app.core.session.environment import Policy
from stream_app.core.session.ports import Scorer
from stream_app.errors import BundleError, RapportError
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.devices.provider_choice import CudaDevice
from stream_app.redaction.mask import redact
from stream_app.redaction.port import Redactor
from stream_app.redaction.presidio import open_presidio
from stream_app.redaction.rules import Rules
from stream_app.sealing.sources import KeySource
from stream_app.settings import RedactorName, RulesSource, Settings
from stream_app.store.accounts.people import People
from stream_app.store.accounts.sign_in_throttle import SignInThrottle
from stream_app.store.alerts import drift_changes, rule_sources
from stream_app.store.alerts.rule_sources import AdoptedRules, RuleFile, RuleSource
from stream_app.store.database.secrets import MASTER_KEY, PSEUDONYM_KEY
from stream_app.store.lifecycle import restricted
from stream_app.store.stream.baselines import StoredBaselines
from stream_app.store.stream.repository import Store, open_store
from stream_app.tracing.port import OFF, Tracing
from stream_app.worker.batches.metrics import WorkerMetrics

if TYPE_CHECKING:
    from fastapi import FastAPI

    from stream_app.inference.routed_bundles import Refusal
    from stream_app.inference.scorer import OnnxScorer
    from stream_app.web.practice_model import PracticeModel
    from stream_app.worker.upkeep.bundle_loading import BundleReloader

__all__ = [
    "asking_process",
    "bundle",
    "bundle_ids",
    "bundle_reloader",
    "default_pipeline",
    "new_store",
    "notifier_process",
    "offline_scorer",
    "opened",
    "pipeline",
    "policy",
    "practice_model",
    "prepared_store",
    "read_store",
    "redactor",
    "register_bundle",
    "routed_pipeline",
    "rule_source",
    "scorecards",
    "scorer",
    "shadow_scorer",
    "store",
    "sweep_archive",
    "tracing",
    "usable_cores",
    "web",
    "worker_process",
]

log = structlog.get_logger(__name__)


def tracing(settings: Settings, service: str) -> Tracing:
    """Return the tracer of a process; it traces nothing unless OTEL_TRACES_EXPORTER is ``otlp``.

    Raises:
        RapportError: a variable ``OTEL_*`` has a value that cannot be used.
    """
    exporter = os.environ.get("OTEL_TRACES_EXPORTER", "")
    if exporter in ("", "none"):
        return OFF
    if exporter != "otlp":
        raise RapportError(f"OTEL_TRACES_EXPORTER is {exporter!r}: Rapport knows otlp and none")
    from stream_app.tracing.otlp import OtlpTracing  # noqa: PLC0415  # an extra

    return OtlpTracing(service, settings.kafka_group)


def scorer(settings: Settings) -> "OnnxScorer":
    """Load the bundle into a scorer."""
    from stream_app.inference.scorer import OnnxScorer  # noqa: PLC0415  # the console has no runtime

    return OnnxScorer(
        bundle(settings),
        settings.provider,
        settings.threads,
        mask=mask(settings),
        device=cuda_device(settings),
    )


def cuda_device(settings: Settings) -> CudaDevice:
    """The device that CUDA sessions use."""
    return CudaDevice(memory_mb=settings.cuda_memory_mb)


def offline_scorer(settings: Settings) -> "OnnxScorer":
    """A scorer for recordings, which uses all cores that this process may use."""
    from stream_app.inference.scorer import OnnxScorer  # noqa: PLC0415  # the console has no runtime

    at_once = max(1, usable_cores() // settings.threads)
    return OnnxScorer(
        bundle(settings),
        settings.provider,
        settings.threads,
        at_once=at_once,
        mask=mask(settings),
        device=cuda_device(settings),
    )


def usable_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shadow_scorer(settings: Settings, folder: Path, beside: "OnnxScorer") -> "OnnxScorer":
    """Load a bundle that scores in the shadow of another one.

    Raises:
        BundleError: it is not valid, is the bundle in force, or supports fewer neighbours.
    """
    from stream_app.inference.scorer import OnnxScorer  # noqa: PLC0415  # the console has no runtime

    found = bundles.load(folder)
    if found.manifest.bundle_id == beside.bundle_id:
        raise BundleError(f"{beside.bundle_id} is the bundle in force: name another one")
    window = policy(settings, beside).window
    if window.before + window.after > found.manifest.head.slots:
        raise BundleError(
            f"{found.manifest.bundle_id} supports {found.manifest.head.slots} neighbouring turns; "
            f"the window in force has {window.before + window.after}"
        )
    shared = beside if bundles.share_encoder(found.manifest, beside.bundle.manifest) else None
    return OnnxScorer(
        found,
        settings.provider,
        settings.threads,
        shared=shared,
        mask=mask(settings),
        device=beside.device,
    )


def bundle(settings: Settings) -> bundles.Bundle:
    """Read and check the configured bundle.

    Raises:
        BundleError: it is not valid, or RAPPORT_BUNDLE_DIGEST is the digest of another one.
    """
    return bundles.load(settings.bundle, settings.bundle_digest)


def pipeline(settings: Settings, scorer: "OnnxScorer") -> Pipeline:
    """Build the pipeline with a scorer.

    Raises:
        BundleError: the bundle's window is larger than its head supports.
        RuleFileError: the file of rules is not valid.
        IntentFileError: the file of intents is not valid.
        RoutesFileError: the file of bundles and routes is not valid.
    """
    return routed_pipeline(settings, scorer)[0]


def routed_pipeline(
    settings: Settings, scorer: "OnnxScorer"
) -> "tuple[Pipeline, Sequence[Refusal]]":
    """Build a ``pipeline``, and name the bundles of the routes file that were refused."""
    core = default_pipeline(settings, scorer)
    reloader = bundle_reloader(settings, scorer, core)
    reloader.start()
    return core, reloader.refused


def bundle_ids(settings: Settings) -> list[str]:
    """Ids of the default bundle and of those that routes assign, the default one first.

    Raises:
        RapportError: a bundle or the routes file is not valid.
    """
    own = bundle(settings).manifest.bundle_id
    if settings.bundle_routes is None:
        return [own]
    core = pipeline(settings, scorer(settings))
    return [each.environment.bundle_id for each in core.bundles]


def default_pipeline(settings: Settings, scorer: "OnnxScorer") -> Pipeline:
    """The pipeline with its default bundle and the intents, without routes."""
    from stream_app.inference import (  # noqa: PLC0415  # the console has no runtime
        intent_files,
        intents,
        language_detector,
    )

    wanted = intent_files.load(settings.intents)
    core = Pipeline(scorer, _checked_policy(settings, scorer, wanted))
    core.languages = language_detector.TextLanguages()
    if wanted.intents:
        core.encodings.intent_reader = intents.compare(wanted, scorer)
    return core


def _checked_policy(settings: Settings, scorer: "OnnxScorer", wanted: IntentSet) -> Policy:
    """The core's policy, with a window that the bundle's head supports.

    Raises:
        BundleError: the head supports only smaller ones.
        RuleFileError: the file of rules is not valid.
    """
    chosen = policy(settings, scorer, wanted)
    supported = scorer.bundle.manifest.head.slots
    if chosen.window.before + chosen.window.after > supported:
        raise BundleError(
            f"the window of {scorer.bundle_id} has {chosen.window.before + chosen.window.after} "
            f"turns, its head supports {supported}"
        )
    return chosen


def bundle_reloader(
    settings: Settings,
    scorer: "OnnxScorer",
    core: Pipeline,
    store: Store | None = None,
    metrics: WorkerMetrics | None = None,
) -> "BundleReloader":
    """Return the loader of the routes file's bundles, beside the default one (``scorer``).

    ``store``: where they are registered before they score.
    """
    from stream_app.inference.routed_bundles import BundleLoader  # noqa: PLC0415  # the runtime
    from stream_app.worker.upkeep.bundle_loading import BundleReloader  # noqa: PLC0415

    def register(found: "OnnxScorer") -> BaselineBook:
        return NoBaselines() if store is None else register_bundle(store, found)

    window = core.environment.policy.window
    loader = BundleLoader(scorer, settings.provider, settings.threads, window.before + window.after)
    languages = scorer.bundle.manifest.languages
    return BundleReloader(settings.bundle_routes, loader, core, languages, register, metrics)


def register_bundle(store: Store, scorer: "OnnxScorer") -> StoredBaselines:
    """Register a bundle that routes assign, and read its baselines.

    Raises:
        BundleError: another content has scored under its id.
    """
    digest = scorer.bundle.digest
    manifest = msgspec.to_builtins(scorer.bundle.manifest)
    known = store.register_bundle(scorer.bundle_id, digest, manifest)
    if known != digest:
        raise BundleError(
            f"another bundle has scored as {scorer.bundle_id} (digest {known[:12]}…, this one has "
            f"{digest[:12]}…): give it another name or version"
        )
    baselines = StoredBaselines(store, scorer.bundle_id)
    baselines.reload()
    return baselines


def policy(settings: Settings, scorer: Scorer, wanted: IntentSet = NO_INTENTS) -> Policy:
    """The core's policy; the bundle provides defaults."""
    return Policy(
        approaches=settings.approach_by_group,
        window=settings.window_of(scorer.window),
        rules=rule_sources.load(RuleFile(settings.rules), scorer.heads, wanted),
        require_consent=settings.require_consent,
        restrictions=settings.restrictions,
    )


def rule_source(settings: Settings, store: Store) -> RuleSource:
    """Where the service's rules come from; files are scored with the file's rules."""
    if settings.rules_source is RulesSource.DATABASE:
        return AdoptedRules(store, settings.rules)
    return RuleFile(settings.rules)


def store(settings: Settings, connections: int = 5, overflow: int = 10) -> Store:
    """Open the database, which must have a schema."""
    return _open(settings, settings.database, connections, overflow)


@contextmanager
def opened(settings: Settings, *, privacy: bool = False) -> Iterator[Store]:
    """Open the database for a ``with`` block; ``privacy``: with the key of its pseudonyms."""
    found = store(settings)
    try:
        if privacy:
            found.load_privacy(settings.redact)
        yield found
    finally:
        found.close()


def new_store(settings: Settings) -> Store:
    """Open the database that is to get its schema; an SQLite file is created if it is missing."""
    return _open(settings, settings.database, create=True)


def _open(
    settings: Settings,
    url: str,
    connections: int = 5,
    overflow: int = 10,
    *,
    create: bool = False,
) -> Store:
    master = _source(MASTER_KEY, settings.master_key, settings.master_key_file)
    pseudonym = _source(PSEUDONYM_KEY, settings.pseudonym_key, settings.pseudonym_key_file)
    return open_store(
        url,
        connections=connections,
        overflow=overflow,
        master=master,
        pseudonym=pseudonym,
        prepare=settings.database_prepare,
        create=create,
    )


def _source(setting: str, text: SecretStr | None, file: Path | None) -> KeySource | None:
    if text is None and file is None:
        return None
    return KeySource(setting, text.get_secret_value() if text else None, file)


def redactor(settings: Settings) -> Redactor:
    """Return the redactor that finds personal details in text before it is stored.

    Raises:
        RapportError: Presidio is configured and does not start.
    """
    if not settings.redact or settings.redactor is RedactorName.RULES:
        return Rules()
    return open_presidio(settings.redactor if isinstance(settings.redactor, Path) else None)


def mask(settings: Settings) -> Callable[[str], str] | None:
    """Return the function that masks words before a window keeps them; None without masking."""
    return partial(redact, redactor=redactor(settings)) if settings.redact else None


def read_store(settings: Settings, connections: int = 5, overflow: int = 10) -> Store:
    """Open the database that analyses read: the replica, if there is one."""
    replica = settings.database_read_url
    url = replica.get_secret_value() if replica is not None else settings.database
    return _open(settings, url, connections, overflow)


def prepared_store(settings: Settings, scorer: "OnnxScorer") -> Store:
    """Open the database for a worker with this bundle, and register the bundle."""
    opened = store(settings)
    opened.check_schema()
    opened.redactor = redactor(settings)
    opened.hide_withdrawn = settings.on_withdrawal is not OnWithdrawal.KEEP
    opened.prepare(
        scorer.bundle_id,
        scorer.bundle.digest,
        msgspec.to_builtins(scorer.bundle.manifest),
        settings.redact,
    )
    return opened


def scorecards(file: Path) -> Scorecards:
    """The scorecards of a file.

    Raises:
        ScorecardFileError: it cannot be read, or is not valid.
    """
    try:
        raw = file.read_bytes()
    except OSError as problem:
        raise ScorecardFileError([f"{file}: {problem.strerror}"]) from None
    return parse_scorecards(raw, str(file))


def web(settings: Settings, tracing: Tracing = OFF) -> "FastAPI":
    """Create the app of console and API; imported here because workers do not need it."""
    from stream_app.web import app as web_app  # noqa: PLC0415
    from stream_app.web.http.identity_provider import IdentityProvider  # noqa: PLC0415
    from stream_app.web.http.metrics import WebMetrics  # noqa: PLC0415
    from stream_app.web.http.unknown_senders import UnknownSenders  # noqa: PLC0415
    from stream_app.web.live.health import WebHealth  # noqa: PLC0415
    from stream_app.web.live.intervention_outbox import InterventionOutbox  # noqa: PLC0415
    from stream_app.web.live.live_hub import Hub  # noqa: PLC0415
    from stream_app.web.live.log_ends import LogEnds  # noqa: PLC0415
    from stream_app.web.live.publisher import Publisher  # noqa: PLC0415
    from stream_app.web.live.topic_reader import TopicReader  # noqa: PLC0415
    from stream_app.web.services import Services  # noqa: PLC0415
    from stream_app.work.access_log import AccessLog  # noqa: PLC0415
    from stream_app.work.known_intents import KnownIntents  # noqa: PLC0415
    from stream_app.worker.kafka.topics import client_options, declare_topics  # noqa: PLC0415

    if settings.bundle_digest:
        bundle(settings)
    pool = web_app.CONNECTIONS, 0  # opening one takes longer than most pages
    opened = store(settings, *pool)
    opened.redactor = redactor(settings)
    opened.load_privacy(settings.redact)
    for _ in restricted.remove(opened, settings.restrictions):
        pass  # before a page can show what was stored earlier
    kafka = client_options(settings)
    hub = Hub()
    live_topics = [settings.turn_score_topic, settings.session_score_topic, settings.alert_topic]

    async def declare() -> None:
        if settings.topic_partitions:
            await declare_topics(settings, patience=0.0)

    people_topics = [settings.alert_action_topic, settings.intervention_topic]
    reader = TopicReader(hub, opened, live_topics, people_topics, kafka, declare)
    publisher = Publisher(kafka)
    return web_app.create(
        Services(
            settings=settings,
            store=opened,
            read_store=opened
            if settings.database_read_url is None
            else read_store(settings, *pool),
            people=People(opened, timedelta(hours=settings.web_idle_hours)),
            hub=hub,
            reader=reader,
            publisher=publisher,
            interventions=InterventionOutbox(opened, publisher, hub, settings.intervention_topic),
            metrics=WebMetrics(hub, lambda: drift_changes.waiting(opened)),
            health=WebHealth(store(settings, connections=1), hub, opened),
            attempts=SignInThrottle(opened),
            identity_provider=IdentityProvider(settings) if settings.oidc_issuer else None,
            practice=practice_model(settings) if settings.practice else None,
            accesses=AccessLog(opened),
            log_ends=LogEnds(kafka, settings.turns_topic, settings.kafka_group),
            unknown_senders=UnknownSenders(opened),
            scorecards=scorecards(settings.scorecards),
            rules=rule_source(settings, opened),
            tracing=tracing,
            intents=KnownIntents(settings.intents),
        )
    )


def practice_model(settings: Settings) -> "PracticeModel":
    """The model of the practice page, which loads the bundle at its first use."""
    from stream_app.web.practice_model import LoadedModel, PracticeModel  # noqa: PLC0415

    def load() -> LoadedModel:
        loaded = scorer(settings)
        window = settings.window_of(loaded.window)
        return LoadedModel(loaded, window.before, window.after)

    return PracticeModel(
        load,
        lambda: extras.require("cpu", ["onnxruntime"]),
        languages=lambda: bundle(settings).manifest.languages,
    )


def sweep_archive(settings: Settings, store: Store) -> str | None:
    """Remove the rows of erased sessions from the archive's files; return the receipt's line.

    None if there is no archive here.

    Raises:
        ArchiveError: it is another database's.
        ExtraMissing: its files cannot be written here.
    """
    folder = settings.archive
    if folder is None or not folder.is_dir():
        return None
    extras.require_analytics()
    from stream_app.analytics.archive import archive  # noqa: PLC0415  # needs the extra

    swept = archive.sweep(store, folder)
    return f"archive: {swept.rows} rows removed, {swept.files} files rewritten or deleted"
