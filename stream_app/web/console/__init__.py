"""Pages for people: server-rendered, plain JavaScript where a page must move."""

from fastapi import APIRouter

from stream_app.web.console import (
    calibration,
    counsellor,
    disputes,
    feedback,
    inbox,
    pages,
    session,
    teams,
    wall,
)
from stream_app.web.console.frame import STATIC
from stream_app.web.console.refusals import attach

router = APIRouter()
for part in (pages, wall, session, inbox, feedback, counsellor, calibration, disputes, teams):
    router.include_router(part.router)

__all__ = ["STATIC", "attach", "router"]
