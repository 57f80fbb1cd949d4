"""The administrator's home: whether the service is well, and where to look."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from stream_app import __version__
from stream_app.store.alerts.deliveries import DeliveryState
from stream_app.store.database.connection import masked_url
from stream_app.store.lifecycle import service_facts
from stream_app.store.lifecycle.service_facts import PartitionProgress
from stream_app.store.stream import schema
from stream_app.web.console.rendering import render
from stream_app.web.console.tour import tour_step
from stream_app.web.live.log_ends import BrokerAnswer
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Admin
from stream_app.work.account_changes import grants

router = APIRouter(prefix="/admin", default_response_class=HTMLResponse, include_in_schema=False)
STATES: Final = (DeliveryState.DUE, DeliveryState.HELD, DeliveryState.DELIVERED)
"""States of deliveries with a column of their own; the page sums up the others."""


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """A partition of the incoming events; ``stored``: the offset of the next event to store.

    ``waiting``: events in the log that are not stored yet; None without an answer of the broker.
    """

    partition: int
    stored: int
    at: datetime | None
    waiting: int | None


@router.get("")
async def overview(request: Request, services: ServicesDep, person: Admin) -> Response:
    """Show the state of the service. Asks the broker, for at most a few seconds."""
    broker = await services.log_ends.read()
    return await asyncio.to_thread(_page, request, services, person, broker)


def _page(request: Request, services: Services, person: Admin, broker: BrokerAnswer) -> Response:
    store, settings = services.store, services.settings
    current, newest = schema.revisions(store)
    partitions = lags(
        service_facts.progress(store, settings.kafka_group, settings.turns_topic), broker.ends
    )
    known = [each.waiting for each in partitions if each.waiting is not None]
    return render(
        request,
        "admin_overview.html",
        person,
        version=__version__,
        database=masked_url(store.engine.url),
        schema=current,
        newest_schema=newest,
        hub_live=services.hub.live,
        open_streams=services.hub.clients,
        broker=broker,
        group=settings.kafka_group,
        partitions=partitions,
        lag=sum(known) if broker.ends is not None else None,
        bundles=service_facts.bundle_use(store),
        targets=service_facts.target_deliveries(store),
        states=STATES,
        waiting=service_facts.waiting(store),
        grants=grants(store, datetime.now(UTC)),
        tour=tour_step(request, services, person),
    )


def lags(progress: list[PartitionProgress], ends: dict[int, int] | None) -> list[PartitionLag]:
    """Every known partition with its distance to the end of the log."""
    stored = {each.partition: each for each in progress}
    return [
        PartitionLag(
            number,
            known.stored if known else 0,
            known.at if known else None,
            None if ends is None else max(0, ends.get(number, 0) - (known.stored if known else 0)),
        )
        for number in sorted(stored.keys() | (ends or {}).keys())
        for known in [stored.get(number)]
    ]
