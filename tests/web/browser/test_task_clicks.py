"""How many clicks the common tasks of supervisors take."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import schema
from stream_app.demo import simulated_store
from stream_app.demo.simulator import simulate
from tests.web.browser.conftest import NewWeb, OpenTab
from tests.web.browser.scored_web import ScoredWeb
from tests.web.people.longitudinal import WORLD

HALF = timedelta(minutes=10)
BEGIN = datetime.now(UTC) - timedelta(days=185)
"""The simulated half-year contains the last finished quarter, on whatever day it is.

Its weeks have enough sessions that none is hidden for having too few clients.
"""
CLICKS = "Number(sessionStorage.getItem('clicks'))"


@pytest.fixture(scope="module")
def web(new_web: NewWeb) -> ScoredWeb:
    """Two live sessions, one with a firing alert, beside months of simulated ones."""
    web = new_web()
    simulated_store.write(simulate(replace(WORLD, begins=BEGIN, sessions_a_month=24)), web.store)
    web.play_sample("counselling-05", "calm", ago=HALF, until=8)
    web.play_sample("peer-support-03", "bad", ago=HALF, until=12, counsellor="cleo@example.org")
    rollups.rebuild(web.store)
    schema.create_views(web.store)
    web.start()
    return web


@pytest.fixture
def wall(web: ScoredWeb, open_tab: OpenTab) -> Page:
    """The wall, in a tab that counts clicks over all its pages."""
    page = open_tab(web).page
    page.add_init_script("""addEventListener("click", (event) => {
      const clicks = Number(sessionStorage.getItem("clicks")) + Number(event.isTrusted);
      sessionStorage.setItem("clicks", clicks);
    }, true);""")
    page.reload()
    return page


def test_the_worst_session_and_its_reason(wall: Page) -> None:
    first = wall.locator("#cards > .card").first
    expect(first).to_have_attribute("data-session", "bad")
    expect(first.locator(".alert-badge")).to_contain_text("low-empathy")
    first.locator(".alert-badge").click()
    expect(wall.locator("#alerts")).to_be_in_viewport()
    expect(wall.locator("#alerts")).to_contain_text(re.compile("Little empathy lately"))
    assert wall.evaluate(CLICKS) == 1


def test_answering_an_alert(wall: Page) -> None:
    wall.get_by_role("navigation", name="Main").get_by_role("link", name="Alerts").click()
    alert = wall.locator(".alert", has_text="low-empathy").first
    alert.locator("summary", has_text="Acknowledge").click()
    assert wall.evaluate(CLICKS) == 2
    alert.get_by_role("button", name="Right").click()
    expect(wall.locator(".alert.firing", has_text="low-empathy")).to_have_count(0)
    assert wall.evaluate(CLICKS) <= 3


def test_a_past_session_of_a_given_day(wall: Page) -> None:
    wall.get_by_role("navigation", name="Main").get_by_role("link", name="Past sessions").click()
    day = BEGIN + timedelta(days=60)
    for end in ("From", "To"):
        wall.get_by_label(end, exact=True).fill(f"{day:%Y-%m-%d}")
    wall.wait_for_url(re.compile(f"from={day:%Y-%m-%d}&to={day:%Y-%m-%d}"))
    rows = wall.locator("tbody tr")
    expect(rows.first).to_contain_text(f"{day:%d %b}")
    rows.first.get_by_role("link").first.click()
    expect(wall).to_have_url(re.compile("/sessions/[^?]+$"))
    assert wall.evaluate(CLICKS) <= 3


def test_two_teams_over_a_quarter(wall: Page) -> None:
    wall.get_by_role("navigation", name="Main").get_by_role("link", name="Analytics").click()
    wall.get_by_role("link", name="Teams in the last quarter").click()
    expect(wall.locator("figure").first.locator(".legend")).to_contain_text("north")
    expect(wall.locator("figure").first.locator(".legend")).to_contain_text("south")
    assert wall.evaluate(CLICKS) == 2
