"""What the web application works with."""

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends
from starlette.requests import HTTPConnection

from stream_app.settings import Settings
from stream_app.store.people import People
from stream_app.store.repository import Store


@dataclass(frozen=True, slots=True)
class Services:
    """Made once by ``bootstrap.web``; routes get it as the parameter ``services: Wired``."""

    settings: Settings
    store: Store
    people: People


def _services(connection: HTTPConnection) -> Services:
    return cast("Services", connection.app.state.services)


Wired = Annotated[Services, Depends(_services)]
