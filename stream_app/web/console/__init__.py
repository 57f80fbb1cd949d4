"""Server-rendered pages for people, with plain JavaScript for live updates."""

from fastapi import APIRouter

from stream_app.web.console import admin, help_pages, policy_page, rules, tour
from stream_app.web.console.analytics import analyses, analytics, exports, report_page, teams
from stream_app.web.console.error_pages import add_error_pages
from stream_app.web.console.overviews import inbox, past_sessions, wall
from stream_app.web.console.people import counsellor, counsellor_list, development, goals
from stream_app.web.console.rendering import STATIC
from stream_app.web.console.reviews import calibration, review_queue, reviewing
from stream_app.web.console.session import (
    disputes,
    feedback,
    interventions,
    looking,
    practice,
    rating,
    readers,
    session,
)
from stream_app.web.console.sign_in import account, own_password, single_sign_on

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
    policy_page,
    tour,
)
for part in PARTS:
    router.include_router(part.router)

__all__ = [
    "STATIC",
    "add_error_pages",
    "analytics",
    "rendering",
    "router",
]
