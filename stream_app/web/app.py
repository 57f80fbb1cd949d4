"""Assembles the web application: middleware, the API and the console."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio.to_thread
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.routing import Mount

from stream_app import __version__
from stream_app.web import api, console, health_routes
from stream_app.web.http import telemetry
from stream_app.web.http.body_limit import BodyLimit
from stream_app.web.http.cookie_sessions import CookieSessions
from stream_app.web.http.metrics import RequestMetrics
from stream_app.web.http.path_segments import EncodedSlashes
from stream_app.web.http.proxies import ProxyHeaders
from stream_app.web.http.security import SecurityHeaders
from stream_app.web.services import Services
from stream_app.web.sign_in.auth import SIGN_IN_LASTS

CONNECTIONS: Final = 15
"""Connections of each process to each database."""
THREADS: Final = 12
"""Pages and requests that are computed at a time.

Fewer than ``CONNECTIONS``, so that none waits for a connection; and few, because they share one
interpreter: more of them finish later, not sooner.
"""


def create(services: Services) -> FastAPI:
    """Create the application with these services."""
    app = FastAPI(
        title="Rapport",
        version=__version__,
        docs_url=None,  # its page loads scripts from a CDN
        redoc_url=None,
        openapi_url=None,  # the API under /api/v1 serves its own
        lifespan=_lifespan,
        telemetry=telemetry.traces_of(services.tracing, "POST", f"{api.PREFIX}/events"),
    )
    app.state.services = services
    always_https = services.settings.web_https
    app.add_middleware(
        CookieSessions,
        key=services.store.cookie_key(),
        max_age=round(SIGN_IN_LASTS.total_seconds()),
        always_https=always_https,
    )
    app.add_middleware(EncodedSlashes)
    app.add_middleware(BodyLimit, exempt=(f"{api.PREFIX}/events",))
    app.add_middleware(SecurityHeaders, always_https=always_https)
    app.add_middleware(RequestMetrics, metrics=services.metrics)
    app.add_middleware(ProxyHeaders, proxies=services.settings.proxies)
    app.mount("/static", StaticFiles(directory=console.STATIC), name="static")
    app.router.routes.append(_mount(api.PREFIX, api.create(services)))
    for router in (health_routes.router, console.router):
        app.router.routes.extend(router.routes)  # `include_router` would analyse them again
    console.add_error_pages(app)
    return app


def _mount(path: str, app: FastAPI) -> Mount:
    """Mount a sub-application. Starlette's own pattern does not match paths with line breaks."""
    mount = Mount(path, app)
    mount.path_regex = re.compile(mount.path_regex.pattern, re.DOTALL)
    return mount


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Read live events and publish while the application runs; the broker may be unavailable."""
    services: Services = app.state.services
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    services.hub.bind_loop()
    services.publisher.bind_loop()
    reading = asyncio.create_task(services.reader.run())
    publishing = asyncio.create_task(services.interventions.run())
    try:
        yield
    finally:
        reading.cancel()
        publishing.cancel()
        await asyncio.gather(reading, publishing, return_exceptions=True)
        await services.publisher.close()
        await services.log_ends.close()
        await asyncio.to_thread(services.tracing.close)  # a signal ends uvicorn right after this
        services.close()
