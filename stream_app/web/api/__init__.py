"""``/api/v1``: a separate application, so that all its errors are problem details."""

from typing import Final

from fastapi import APIRouter, FastAPI

from stream_app import __version__
from stream_app.web import problems
from stream_app.web.api import (
    analyses,
    audit,
    bundles,
    consents,
    document,
    drift,
    exports,
    history,
    live,
    me,
    schemas,
    sessions,
    speakers,
)
from stream_app.web.api.alerting import alerts, interventions, mutes, rules
from stream_app.web.api.judging import (
    agreement,
    assignments,
    disputes,
    feedback,
    goals,
    ratings,
    reviews,
    samples,
)
from stream_app.web.api.receiving import event_socket, events
from stream_app.web.http import telemetry
from stream_app.web.services import Services

__all__ = ["PREFIX", "create", "judging"]

PREFIX: Final = "/api/v1"
ROUTERS: Final = (
    live.router,
    alerts.router,
    mutes.router,
    rules.router,
    feedback.router,
    sessions.router,
    assignments.router,
    interventions.router,
    consents.router,
    history.router,
    speakers.router,
    ratings.router,
    disputes.router,
    reviews.router,
    goals.router,
    agreement.router,
    analyses.router,
    drift.router,
    samples.router,
    exports.router,
    events.router,
    event_socket.router,
    bundles.router,
    me.router,
    audit.router,
    schemas.router,
)
"""Routers with paths relative to ``PREFIX``, such as ``/alerts``."""
_included: Final = APIRouter(generate_unique_id_function=lambda route: route.name)
for _router in ROUTERS:
    _included.include_router(_router)


def create(services: Services) -> FastAPI:
    """Create the API application with these services."""
    app = FastAPI(
        title="Rapport",
        version=__version__,
        docs_url=None,  # its page loads scripts from a CDN
        redoc_url=None,
        telemetry=telemetry.OFF,  # the application around it traces
    )
    app.state.services = services
    problems.add_handlers(app)
    app.router.routes.extend(_included.routes)  # `include_router` would analyse them again
    document.serve_document(app)
    return app
