"""Puts the web application together: middleware, the API, the console."""

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.sessions import SessionMiddleware

from stream_app import __version__
from stream_app.web import console
from stream_app.web.auth import COOKIE
from stream_app.web.security import SecurityHeaders
from stream_app.web.services import Services


def create(services: Services) -> FastAPI:
    """The application over these services."""
    app = FastAPI(
        title="Rapport",
        version=__version__,
        docs_url=None,  # its page loads scripts from the network
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
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
    app.add_middleware(SecurityHeaders)
    app.mount("/static", StaticFiles(directory=console.STATIC), name="static")
    app.include_router(console.router)
    console.attach(app)
    return app
