"""The Faust app, configured so that nothing is acknowledged before it is committed.

Faust's tables, web server and topic declarations are off. Its behaviour under failures and the
reasons for the settings are in ``docs/decisions/0002-faust-delivery.md``.
"""

import asyncio
import shutil
import tempfile
import weakref
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

import faust
from faust.tables import TableManager
from faust.types import TP

from stream_app.settings import SaslMechanism, SecurityProtocol, Settings
from stream_app.store.stream.log_positions import StartOffsets, TopicPartition
from stream_app.worker.kafka.consumer import OrderedConsumer, OrderedTransport
from stream_app.worker.kafka.kafka_security import security_options
from stream_app.worker.kafka.offsets import OffsetTracker

RETRY_FOR = 240.0
"""Seconds for which a worker retries a commit before it exits; the time limits below are longer."""
REBALANCE_FOR = RETRY_FOR + 60.0
"""Seconds that a rebalance waits for a worker: longer than a batch with all its retries."""
METADATA_AGE_MS = 5000
"""Time in which a recreated topic is detected; Faust's default is a minute."""
FETCH_WAIT = 0.05
"""Seconds for which a broker may hold a request while no turn arrives, at most."""
MAX_RECORD_BATCH = 512 * 1024
"""Bytes; half of the brokers' default limit."""
LAST_TASKS = 1.0
"""Seconds that a stop waits for cancelled tasks."""


class NoTables(TableManager):
    """There are no tables: Faust waits a second at each start until they are declared."""

    async def on_start(self) -> None:
        """Let the conductor subscribe at once."""
        await self._update_channels()
        await self.recovery.start()


class RapportWorker(faust.Worker):
    """Ends when its tasks have ended; Faust waits another second at each stop."""

    async def _sentinel_task(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=LAST_TASKS)


class RapportApp(faust.App):
    """A Faust app with an order-preserving consumer, whose hooks ``OrderedApp`` describes."""

    before_stop: Callable[[], None] | None = None
    """Called before the stop waits for the batch in progress."""
    before_wait: Callable[[], None] | None = None
    find_start: Callable[[Mapping[TopicPartition, int | None]], StartOffsets] | None = None
    on_deleted: Callable[[TP, int, int], Awaitable[None]] | None = None
    record_deleted: Callable[[TopicPartition, int, int], None] | None = None
    """Stores that events were deleted unread: partition, first offset, end; blocks."""
    batch_max: int
    fetch_wait: float

    @property
    def offsets(self) -> OffsetTracker:
        """Offsets that the consumer has fetched and the agent has finished."""
        return cast("OrderedConsumer", self.consumer).offsets

    async def on_stop(self) -> None:
        """Stop after the batch in progress."""
        if self.before_stop is not None:
            self.before_stop()
        await super().on_stop()

    def _new_transport(self) -> OrderedTransport:
        return OrderedTransport(self.conf.broker_consumer, self)


def create(settings: Settings) -> RapportApp:
    """Create a Faust app without agents."""
    # of this process alone: others on the machine must neither read it nor prepare it
    folder = tempfile.mkdtemp(prefix="rapport-faust-")
    app = RapportApp(
        settings.kafka_group,
        broker=";".join(
            f"kafka://{address.strip()}" for address in settings.kafka_brokers.split(",")
        ),
        broker_credentials=_credentials(settings),
        broker_client_id="rapport-worker",
        broker_session_timeout=settings.kafka_session_timeout,
        broker_heartbeat_interval=settings.kafka_session_timeout / 4,
        broker_rebalance_timeout=REBALANCE_FOR,
        broker_max_poll_interval=REBALANCE_FOR + 60.0,
        broker_commit_interval=0.5,
        broker_check_crcs=False,
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=1024 * 1024,
        consumer_metadata_max_age_ms=METADATA_AGE_MS,
        stream_buffer_maxsize=2048,
        stream_wait_empty=True,
        stream_publish_on_commit=False,
        producer_acks=-1,
        producer_linger=0.0,
        producer_max_batch_size=MAX_RECORD_BATCH,
        producer_max_request_size=32 * 1024 * 1024,
        producer_threaded=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        table_standby_replicas=1,
        store="memory://",
        TableManager=NoTables,
        datadir=Path(folder),  # stays empty, but Faust needs one
        web_enabled=False,
        autodiscover=False,
        value_serializer="raw",
        key_serializer="raw",
        loghandlers=[],
    )
    weakref.finalize(app, shutil.rmtree, folder, ignore_errors=True)
    app.batch_max = settings.batch_max
    # the embedded broker answers a waiting request late; its session timeout is short, too
    app.fetch_wait = min(FETCH_WAIT, settings.kafka_session_timeout / 200)
    return app


def assigned_partitions(app: faust.App, topic: str) -> list[int]:
    """Partitions of ``topic`` that are assigned to this worker."""
    assigned: set[TP] = app.consumer.assignment()
    return sorted(tp.partition for tp in assigned if tp.topic == topic)


def lag_of(app: RapportApp, topic: str) -> dict[int, int] | None:
    """Committed events that are not finished, by assigned partition; None while unknown.

    An upper bound while there are any, because the part of the log that is not read may contain
    records that are no events. It is 0 once the log is read to its end and all events are finished.
    """
    lag = {}
    consumer = cast("OrderedConsumer", app.consumer)
    for tp in consumer.assignment():
        if tp.topic != topic:
            continue
        read_to = consumer.read_to(tp)
        if read_to is None:
            return None
        unfinished = max(0, (read_to.taken or 0) - app.offsets.done(tp))
        lag[tp.partition] = max(0, read_to.end - read_to.position) + unfinished
    return lag


def skipped_ends(app: RapportApp, topic: str) -> dict[TP, int]:
    """Positions behind the last event, by partition where what follows it is no event."""
    consumer = cast("OrderedConsumer", app.consumer)
    found = {}
    for tp in consumer.assignment():
        read_to = consumer.read_to(tp)
        if tp.topic != topic or read_to is None:
            continue
        done = app.offsets.done(tp)
        if (read_to.taken or 0) <= done < read_to.position:
            found[tp] = read_to.position
    return found


async def skip_what_is_no_event(
    app: RapportApp, topic: str, store: Callable[[dict[TopicPartition, int]], Awaitable[None]]
) -> None:
    """Commit the position behind transaction markers, aborted and deleted records.

    Otherwise others would count them as lag: the console, and who reads the group's offsets.
    ``store``: stores these positions in the database first.
    """
    ends = skipped_ends(app, topic)
    if not ends:
        return
    consumer = cast("OrderedConsumer", app.consumer)
    for tp, end in ends.items():
        await consumer.report_deleted(tp, app.offsets.done(tp), end)
        app.offsets.skip_to(tp, end)
    await store({(tp.topic, tp.partition): end for tp, end in ends.items()})
    for tp, end in ends.items():
        app.offsets.finish(tp, end)
    await consumer.commit()


def _credentials(settings: Settings) -> Any:
    options = security_options(settings)
    context = options.get("ssl_context")
    if settings.kafka_security is SecurityProtocol.PLAINTEXT:
        return None
    if settings.kafka_security is SecurityProtocol.SSL:
        return faust.SSLCredentials(context)
    if settings.kafka_sasl_mechanism is SaslMechanism.OAUTHBEARER:
        provider = options["sasl_oauth_token_provider"]
        return faust.OAuthCredentials(oauth_cb=provider, ssl_context=context)
    return faust.SASLCredentials(
        username=options["sasl_plain_username"],
        password=options["sasl_plain_password"],
        mechanism=options["sasl_mechanism"],
        ssl_context=context,
    )
