"""Server-rendered pages for people, with plain JavaScript for live updates."""

from fastapi import APIRouter

from stream_app.web.console import (
    account,
    analytics,
    calibration,
    counsellor,
    development,
    disputes,
    feedback,
    inbox,
    past_sessions,
    session,
    teams,
    wall,
)
from stream_app.web.console.error_pages import add_error_pages
from stream_app.web.console.rendering import STATIC

router = APIRouter()
for part in (
    account,
    wall,
    past_sessions,
    session,
    inbox,
    feedback,
    counsellor,
    development,
    calibration,
    disputes,
    analytics,
    teams,
):
    router.include_router(part.router)

__all__ = ["STATIC", "add_error_pages", "router"]
