"""Puts the web application together: middleware, the API, the console."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.sessions import SessionMiddleware
from starlette.routing import Mount

from stream_app import __version__
from stream_app.web import api, console, probes
from stream_app.web.auth import COOKIE
from stream_app.web.bodies import BoundedBodies
from stream_app.web.metrics import Measured
from stream_app.web.security import SecurityHeaders
from stream_app.web.segments import EncodedSlashes
from stream_app.web.services import Services


def create(services: Services) -> FastAPI:
    """The application over these services."""
    app = FastAPI(
        title="Rapport",
        version=__version__,
        docs_url=None,  # its page loads scripts from the network
        redoc_url=None,
        openapi_url=None,  # the API under /api/v1 has its own
        lifespan=_running,
    )
    app.state.services = services
    app.add_middleware(
        SessionMiddleware,
        secret_key=services.store.cookie_key(),
        session_cookie=COOKIE,
        max_age=round(services.settings.web_sign_in_hours * 3600),
        same_site="strict",
        https_only=services.settings.web_https,
    )
    app.add_middleware(EncodedSlashes)
    app.add_middleware(BoundedBodies, but=(f"{api.PREFIX}/events",))
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Measured, metrics=services.metrics)
    app.mount("/static", StaticFiles(directory=console.STATIC), name="static")
    app.router.routes.append(_mounted(api.PREFIX, api.create(services)))
    app.include_router(probes.router)
    app.include_router(console.router)
    console.attach(app)
    return app


def _mounted(path: str, part: FastAPI) -> Mount:
    """A part of the application; Starlette's own pattern leaves out paths with a line break."""
    mount = Mount(path, part)
    mount.path_regex = re.compile(mount.path_regex.pattern, re.DOTALL)
    return mount


@asynccontextmanager
async def _running(app: FastAPI) -> AsyncIterator[None]:
    """Live events come in as long as the application runs; the broker may be away."""
    services: Services = app.state.services
    services.hub.opened()
    services.publisher.opened()
    reading = asyncio.create_task(services.reader.run())
    try:
        yield
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await services.publisher.close()
