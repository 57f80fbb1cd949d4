"""Server-rendered pages for people, with plain JavaScript for live updates."""

from fastapi import APIRouter

from stream_app.web.console import (
    account,
    admin,
    analyses,
    analytics,
    calibration,
    counsellor,
    counsellor_list,
    development,
    disputes,
    exports,
    feedback,
    goals,
    help_pages,
    inbox,
    interventions,
    looking,
    own_password,
    past_sessions,
    practice,
    rating,
    readers,
    report_page,
    review_queue,
    reviewing,
    rules,
    session,
    single_sign_on,
    teams,
    tour,
    wall,
)
from stream_app.web.console.error_pages import add_error_pages
from stream_app.web.console.rendering import STATIC

router = APIRouter()
PARTS = (
    account,
    single_sign_on,
    own_password,
    wall,
    past_sessions,
    session,
    looking,
    interventions,
    rating,
    readers,
    inbox,
    rules,
    feedback,
    practice,
    counsellor_list,
    counsellor,
    development,
    goals,
    review_queue,
    reviewing,
    calibration,
    disputes,
    analytics,
    report_page,
    analyses,
    teams,
    exports,
    admin,
    help_pages,
    tour,
)
for part in PARTS:
    router.include_router(part.router)

__all__ = [
    "STATIC",
    "add_error_pages",
    "answers",
    "asked_questions",
    "band_chart",
    "figures",
    "formatting",
    "rendering",
    "router",
]
