"""What the web application works with."""

from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends
from starlette.requests import HTTPConnection

from stream_app.settings import Settings
from stream_app.store.attempts import Attempts
from stream_app.store.people import People
from stream_app.store.repository import Store
from stream_app.web.health import WebHealth
from stream_app.web.live import Hub
from stream_app.web.metrics import WebMetrics
from stream_app.web.publishing import Publisher
from stream_app.web.sign_ins import SignIns
from stream_app.web.topics import TopicReader


@dataclass(frozen=True, slots=True)
class Services:
    """Made once by ``bootstrap.web``; routes get it as the parameter ``services: Wired``."""

    settings: Settings
    store: Store
    people: People
    hub: Hub
    reader: TopicReader
    publisher: Publisher
    metrics: WebMetrics
    health: WebHealth
    attempts: Attempts
    sign_ins: SignIns = field(default_factory=SignIns)


def _services(connection: HTTPConnection) -> Services:
    return cast("Services", connection.app.state.services)


Wired = Annotated[Services, Depends(_services)]
