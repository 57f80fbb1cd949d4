"""``/healthz`` and ``/readyz`` on the web port, for load balancers; they need no sign-in."""

import json

from fastapi import APIRouter
from starlette.responses import Response

from stream_app.web.live.health import WebHealth
from stream_app.web.services import ServicesDep

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
async def healthz(services: ServicesDep) -> Response:
    """Liveness: always 200 while the process can answer."""
    return _health_response(services.health, services.health.not_alive())


@router.get("/readyz")
async def readyz(services: ServicesDep) -> Response:
    """Readiness: 503 while the database is unavailable, without details of the failure."""
    return _health_response(
        services.health, ["store"] if await services.health.check_ready() else []
    )


def _health_response(health: WebHealth, reasons: list[str]) -> Response:
    body = {"ok": not reasons, "reasons": reasons, "live": health.live()}
    return Response(json.dumps(body), 503 if reasons else 200, media_type="application/json")
