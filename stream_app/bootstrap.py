"""The only place that wires: settings → scorer, pipeline, store, processor, worker."""

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from stream_app.core.alerts import AlertRule
from stream_app.core.pipeline import Pipeline, Policy
from stream_app.core.ports import Scorer
from stream_app.core.window import WindowPolicy
from stream_app.errors import BundleError, RapportError
from stream_app.inference import bundle as bundles
from stream_app.inference.scorer import OnnxScorer
from stream_app.notifications.notifier import Notifier
from stream_app.notifications.webhook import Webhook, webhook_target
from stream_app.settings import Settings
from stream_app.store.deliveries import Deliveries
from stream_app.store.people import People
from stream_app.store.repository import Store, open_store
from stream_app.worker import app as faust_app
from stream_app.worker.agents import TurnAgent
from stream_app.worker.app import RapportApp
from stream_app.worker.health import Health, Limits
from stream_app.worker.metrics import WorkerMetrics
from stream_app.worker.processor import BatchProcessor, OutTopics, SessionCache
from stream_app.worker.topics import client_options, declare_topics

if TYPE_CHECKING:
    from fastapi import FastAPI


def scorer(settings: Settings) -> OnnxScorer:
    """Load the bundle."""
    return OnnxScorer(bundles.load(settings.bundle), settings.provider, settings.threads)


def pipeline(settings: Settings, scorer: OnnxScorer) -> Pipeline:
    """The pure core over a scorer.

    Raises:
        BundleError: the window or the alert threshold that is set does not fit the bundle.
    """
    chosen = policy(settings, scorer)
    slots = scorer.bundle.manifest.head.slots
    if chosen.window.before + chosen.window.after > slots:
        raise BundleError(
            f"RAPPORT_WINDOW_BEFORE + RAPPORT_WINDOW_AFTER is "
            f"{chosen.window.before + chosen.window.after}; {scorer.bundle_id} takes {slots} turns"
        )
    if chosen.alert.exit > chosen.alert.enter:  # one is set, the other is the bundle's
        raise BundleError(
            f"an alert would begin at risk {chosen.alert.enter} and end at {chosen.alert.exit} "
            f"with {scorer.bundle_id}: set both RAPPORT_ALERT_ENTER and RAPPORT_ALERT_EXIT, "
            "the second not above the first"
        )
    return Pipeline(scorer, chosen)


def policy(settings: Settings, scorer: Scorer) -> Policy:
    """Settings of the core; what is not set comes from the bundle."""
    before, after = scorer.window
    risk = scorer.risk
    defaults = AlertRule()
    enter = risk.enter if risk else defaults.enter
    leave = risk.exit if risk else defaults.exit
    return Policy(
        window=WindowPolicy(
            before=before if settings.window_before is None else settings.window_before,
            after=after if settings.window_after is None else settings.window_after,
            reorder_turns=settings.reorder_turns,
            reorder_wait=timedelta(seconds=settings.reorder_wait),
        ),
        alert=AlertRule(
            enter=enter if settings.alert_enter is None else settings.alert_enter,
            exit=leave if settings.alert_exit is None else settings.alert_exit,
            for_turns=settings.alert_for_turns,
            cooldown_turns=settings.alert_cooldown_turns,
        ),
        require_consent=settings.require_consent,
    )


def store(settings: Settings) -> Store:
    """Open the database; its schema must be there."""
    return open_store(settings.database_url.get_secret_value())


def prepared_store(settings: Settings, scorer: OnnxScorer) -> Store:
    """Open the database for a worker that scores with this bundle."""
    opened = store(settings)
    opened.prepare(
        scorer.bundle_id,
        scorer.bundle.digest,
        msgspec.to_builtins(scorer.bundle.manifest),
        settings.redact,
    )
    return opened


def notifier(settings: Settings) -> tuple[Notifier, str]:
    """The notifier of the webhook that is set, and the name under which deliveries are kept.

    Raises:
        RapportError: none is set.
    """
    if settings.webhook_url is None:
        raise RapportError("RAPPORT_WEBHOOK_URL is not set: there is nowhere to post alerts to")
    secret = settings.webhook_secret
    address = settings.webhook_url.get_secret_value()
    webhook = Webhook(
        address,
        secret.get_secret_value() if secret else None,
        settings.external_url,
        settings.webhook_timeout,
    )
    target = webhook_target(address)
    deliveries = Deliveries(store(settings), target)
    every, longest = settings.notify_every, settings.notify_longest_wait
    return Notifier(deliveries, webhook, every, longest), target


def web(settings: Settings) -> "FastAPI":
    """The console and the API; what they import, a worker has no need of."""
    from stream_app.web import app as web_app  # noqa: PLC0415
    from stream_app.web.health import WebHealth  # noqa: PLC0415
    from stream_app.web.live import Hub  # noqa: PLC0415
    from stream_app.web.metrics import WebMetrics  # noqa: PLC0415
    from stream_app.web.publishing import Publisher  # noqa: PLC0415
    from stream_app.web.services import Services  # noqa: PLC0415
    from stream_app.web.topics import TopicReader  # noqa: PLC0415

    opened = store(settings)
    opened.open_privacy(settings.redact)
    kafka = client_options(settings)
    hub = Hub()
    told = [settings.turn_score_topic, settings.session_score_topic, settings.alert_topic]

    async def declare() -> None:
        if settings.declare_topics:
            await declare_topics(settings, patience=0.0)

    reader = TopicReader(hub, opened, told, settings.alert_action_topic, kafka, declare)
    return web_app.create(
        Services(
            settings=settings,
            store=opened,
            people=People(opened),
            hub=hub,
            reader=reader,
            publisher=Publisher(kafka),
            metrics=WebMetrics(hub),
            health=WebHealth(opened, hub),
        )
    )


def worker(settings: Settings, scorer: OnnxScorer) -> tuple[RapportApp, TurnAgent]:
    """A Faust app with its agent; call inside a running event loop."""
    metrics = WorkerMetrics()
    processor = BatchProcessor(
        pipeline(settings, scorer),
        prepared_store(settings, scorer),
        OutTopics(settings.turn_score_topic, settings.session_score_topic, settings.alert_topic),
        SessionCache(settings.cache_sessions),
        settings.database_retry_for,
        metrics,
    )
    app = faust_app.create(settings)
    health = Health(
        Limits(
            join=faust_app.rebalance_timeout(settings) + 60.0,
            progress=settings.database_retry_for + 60.0,
        )
    )
    agent = TurnAgent(app, settings, processor, health, metrics)
    agent.attach()
    return app, agent
