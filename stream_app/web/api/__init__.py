"""``/api/v1``: an application of its own, so that all of its errors are problem details."""

from typing import Final

from fastapi import FastAPI

from stream_app import __version__
from stream_app.web import problems
from stream_app.web.api import (
    agreement,
    alerts,
    disputes,
    feedback,
    live,
    me,
    mutes,
    ratings,
    samples,
)
from stream_app.web.services import Services

PREFIX: Final = "/api/v1"
ROUTERS: Final = (
    live.router,
    alerts.router,
    mutes.router,
    me.router,
    ratings.router,
    disputes.router,
    agreement.router,
    samples.router,
    feedback.router,
)
"""Their paths begin below the prefix, as in ``/alerts``."""


def create(services: Services) -> FastAPI:
    """The API over these services."""
    app = FastAPI(
        title="Rapport",
        version=__version__,
        docs_url=None,  # its page loads scripts from the network
        redoc_url=None,
    )
    app.state.services = services
    problems.attach(app)
    for router in ROUTERS:
        app.include_router(router)
    return app
