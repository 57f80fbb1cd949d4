"""``/healthz`` and ``/readyz`` on the web port itself, for load balancers; without signing in."""

import json

from fastapi import APIRouter
from starlette.responses import Response

from stream_app.web.health import WebHealth
from stream_app.web.services import Wired

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
async def healthz(services: Wired) -> Response:
    """Alive."""
    return _told(services.health, services.health.not_alive())


@router.get("/readyz")
async def readyz(services: Wired) -> Response:
    """Able to serve; says no more than that of the database's trouble."""
    return _told(services.health, ["store"] if await services.health.asked() else [])


def _told(health: WebHealth, reasons: list[str]) -> Response:
    body = {"ok": not reasons, "reasons": reasons, "live": health.live()}
    return Response(json.dumps(body), 503 if reasons else 200, media_type="application/json")
