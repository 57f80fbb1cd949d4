"""Takes the screenshots of the README and docs if RAPPORT_SCREENSHOTS=docs/images is set.

Otherwise the same pages are opened, but nothing is written.
"""

import os
import re
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from stream_app.analytics.views import schema
from stream_app.demo import history
from stream_app.store.alerts import alert_actions, alerts
from stream_app.store.alerts.alerts import ActionKind, AlertFilter
from stream_app.store.database.judgements import Reason
from stream_app.store.sessions.scope import ALL_SESSIONS
from tests.web.browser.conftest import NewWeb, OpenTab
from tests.web.browser.scored_web import ScoredWeb

FOLDER = os.environ.get("RAPPORT_SCREENSHOTS")
SIZE = {"width": 1280, "height": 800}
MAX_BYTES = 300_000
OPEN = (
    ("customer-service-02", "service-4127", 12),
    ("customer-service-07", "service-4131", 17),
    ("counselling-04", "chat-0936", 20),
    ("customer-service-03", "service-4119", 16),
    ("counselling-02", "chat-0941", 14),
    ("peer-support-05", "peer-2207", 12),
    ("customer-service-04", "service-4140", 20),
    ("counselling-07", "chat-0928", 15),
    ("peer-support-01", "peer-2213", 13),
    ("customer-service-05", "service-4133", 11),
    ("counselling-03", "chat-0944", 17),
    ("counselling-05", "chat-0939", 11),
    ("peer-support-07", "peer-2198", 26),
    ("customer-service-08", "service-4102", 5),
    ("counselling-08", "chat-0931", 20),
    ("peer-support-02", "peer-2216", 16),
)
OVER = (("peer-support-03", "peer-2189"), ("peer-support-08", "peer-2191"))


@pytest.fixture(scope="module")
def web(new_web: NewWeb, live_broker: str) -> ScoredWeb:
    web = new_web(broker=live_broker, changes={"topic_prefix": "pictures"})
    for place, (sample, session, until) in enumerate(OPEN):
        web.play_sample(sample, session, ago=timedelta(minutes=9 + place % 4), until=until)
    for sample, session in OVER:
        web.play_sample(sample, session, ago=timedelta(hours=2))
    _handle_alerts(web)
    web.start_live()
    return web


@pytest.fixture(scope="module")
def months(new_web: NewWeb) -> ScoredWeb:
    """With the history of the demo."""
    web = new_web()
    history.write(web.store, web.settings.marked_days)
    schema.create_views(web.store)
    web.start()
    return web


def _handle_alerts(web: ScoredWeb) -> None:
    """Acknowledge and resolve the older alerts."""
    reasons = (Reason.JUSTIFIED_HANDLED, Reason.JUSTIFIED, Reason.FALSE_ALARM)
    over = AlertFilter(states=frozenset({alerts.ShownState.RESOLVED}))
    for place, alert in enumerate(alerts.find(web.store, ALL_SESSIONS, over).items):
        alert_actions.record_action(
            web.store,
            ALL_SESSIONS,
            alert.episode_id,
            ActionKind.ACKNOWLEDGE,
            "sue",
            reasons[place % len(reasons)],
        )


def keep(page: Page, name: str) -> None:
    picture = page.screenshot(animations="disabled", caret="hide")
    assert len(picture) < MAX_BYTES, f"{name} has {len(picture)} bytes"
    if FOLDER is not None:
        Path(FOLDER).mkdir(parents=True, exist_ok=True)
        (Path(FOLDER) / f"{name}.png").write_bytes(picture)


@pytest.mark.nightly  # test_gallery opens the same pages
@pytest.mark.parametrize("look", ["light", "dark"])
def test_screenshots_of_pages(web: ScoredWeb, open_tab: OpenTab, look: str) -> None:
    tab = open_tab(web, viewport=SIZE, color_scheme=look, timezone_id="UTC")
    tab.wait_until_live()
    page = tab.page
    expect(page.locator(".card.unanswered").first).to_be_visible()
    keep(page, f"wall-{look}")
    tab.open("/sessions/peer-2198")
    tab.wait_until_live()
    page.locator("#turn-21 .how summary").click()
    page.locator("#turn-21 .window").hover()
    expect(page.locator("#turn-20")).to_have_class(re.compile("in-window"))
    keep(page, f"session-{look}")
    tab.open("/sessions/service-4127")
    tab.wait_until_live()
    keep(page, f"risk-{look}")
    tab.open("/alerts?state=firing")
    tab.wait_until_live()
    page.locator(".alert summary", has_text="Acknowledge").first.click()
    keep(page, f"inbox-{look}")
    admin = open_tab(web, "ada", "/help", viewport=SIZE, color_scheme=look, timezone_id="UTC")
    admin.open("/admin")
    keep(admin.page, f"admin-{look}")
    tab.open("/?group=team&density=compact")
    tab.wait_until_live()
    keep(page, f"teams-{look}")


@pytest.mark.nightly
@pytest.mark.parametrize("look", ["light", "dark"])
def test_screenshots_of_months(months: ScoredWeb, open_tab: OpenTab, look: str) -> None:
    tab = open_tab(months, viewport=SIZE, color_scheme=look, timezone_id="UTC")
    keep(tab.open("/analytics"), f"analytics-{look}")
