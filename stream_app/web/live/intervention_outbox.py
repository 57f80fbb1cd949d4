"""Publishes stored interventions: at once, or as soon as the broker is reachable again."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from aiokafka.errors import KafkaError

from stream_app.contracts.cloudevents import outgoing_headers
from stream_app.contracts.interventions import encode
from stream_app.errors import RapportError
from stream_app.store.alerts import interventions
from stream_app.store.sessions.routing import SessionRouting, read_routing
from stream_app.store.stream.repository import Store
from stream_app.web.live.live_hub import Hub
from stream_app.web.live.publisher import Publisher

log = structlog.get_logger(__name__)

CHECK_EVERY: Final = 15.0
"""Seconds between checks for interventions that another process has left unpublished."""
GRACE: Final = timedelta(seconds=10)
"""An intervention that is older was left by another process."""
MIN_PAUSE: Final = 0.5
MAX_PAUSE: Final = 10.0


class InterventionOutbox:
    """Publishes in the order of storing; at least once, with the same CloudEvents id.

    ``hub`` then tells open pages. Any web process may publish what another one has stored.
    """

    def __init__(self, store: Store, publisher: Publisher, hub: Hub, topic: str) -> None:
        self._store = store
        self._publisher = publisher
        self._hub = hub
        self._topic = topic
        self._own: set[str] = set()
        self._wanted = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, intervention_id: str) -> None:
        """Publish this intervention soon; callable from any thread, and without ``run``."""
        self._own.add(intervention_id)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wanted.set)

    async def run(self) -> None:
        """Publish until cancelled; after a failure wait, each time longer."""
        self._loop = asyncio.get_running_loop()
        pause = MIN_PAUSE
        while True:
            self._wanted.clear()
            try:
                await self.publish_due()
            except (RapportError, KafkaError) as problem:
                log.warning("intervention.not_published", problem=type(problem).__name__)
                await asyncio.sleep(pause)
                pause = min(MAX_PAUSE, pause * 2)
                continue
            pause = MIN_PAUSE
            try:
                await asyncio.wait_for(self._wanted.wait(), CHECK_EVERY)
            except TimeoutError:
                continue

    async def publish_due(self) -> int:
        """Publish everything that is due; return the number of messages.

        Raises:
            BrokerUnavailable: no broker can be reached; also ``KafkaError``.
            StoreError: the database failed.
        """
        own = frozenset(self._own)
        before = datetime.now(UTC) - GRACE
        due = await asyncio.to_thread(interventions.unpublished, self._store, own, before)
        for each in due:
            value = encode(each.message)
            headers = outgoing_headers("intervention", value)
            key = each.session_id.encode()
            await (await self._publisher.send(self._topic, key, value, headers))
            await asyncio.to_thread(interventions.mark_published, self._store, each.intervention_id)
            known = await asyncio.to_thread(read_routing, self._store, [each.session_id])
            routing = known.get(each.session_id, SessionRouting())
            self._hub.broadcast_intervention(each.message, routing, again=True)
        self._own -= own  # what is left over will be found by its age
        return len(due)
