"""What people come for, from start to end, and how many clicks it takes."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from stream_app.store.sessions.routing import find_readable
from stream_app.store.stream.repository import Store
from tests.web.browser.conftest import NewWeb, OpenTab
from tests.web.browser.scored_web import PASSWORD, ScoredWeb

CLEO = "cleo@example.org"
HALF = timedelta(minutes=10)
CLICKS = "Number(sessionStorage.getItem('clicks'))"
COUNT_CLICKS = """addEventListener("click", (event) => {
  const clicks = Number(sessionStorage.getItem("clicks")) + Number(event.isTrusted);
  sessionStorage.setItem("clicks", clicks);
}, true);"""


@pytest.fixture(scope="module")
def web(new_web: NewWeb) -> ScoredWeb:
    """A live session with a firing alert, and one of yesterday evening."""
    web = new_web()
    web.play_sample("peer-support-03", "bad", ago=HALF, until=12, counsellor=CLEO)
    evening = timedelta(hours=8)
    web.play_sample("counselling-04", "evening", ago=evening, counsellor=CLEO)
    over = (datetime.now(UTC) - evening + timedelta(hours=3)).isoformat()
    end = {"type": "session_end", "session_id": "evening", "occurred_at": over}
    web.commit(json.dumps(end).encode())
    web.start()
    return web


def counted(page: Page) -> Page:
    """The page, from which on trusted clicks are counted over all pages of the tab."""
    page.add_init_script(COUNT_CLICKS)
    page.reload()
    return page


def known(store: Store, session_id: str) -> bool:
    return bool(find_readable(store, [session_id]))


def test_a_newcomer_understands_an_alert_without_a_click(web: ScoredWeb, open_tab: OpenTab) -> None:
    """The wall says which session, what it is about, and what the model saw there."""
    page = counted(open_tab(web).page)
    first = page.locator("#cards > .card").first
    expect(first.locator(".alert-badge")).to_be_in_viewport()
    reason = first.locator(".reason")
    expect(reason).to_be_in_viewport()
    expect(reason).to_contain_text(re.compile("emotional messages|index|answer", re.IGNORECASE))
    assert page.evaluate(CLICKS) == 0


def test_a_supervisor_answers_an_alert(web: ScoredWeb, open_tab: OpenTab) -> None:
    """The exchanges stand beside the question whether the alert was right."""
    page = counted(open_tab(web).page)
    page.locator("#cards > .card").first.locator(".alert-badge").first.click()
    alert = page.locator("#alerts")
    expect(alert.locator(".exchanges").first).to_be_in_viewport()
    alert.get_by_role("button", name="Right", exact=True).first.click()
    expect(page.locator("#alerts .firing button", has_text="Right")).to_have_count(0)
    assert page.evaluate(CLICKS) <= 3


def test_a_counsellor_learns_from_a_session(web: ScoredWeb, open_tab: OpenTab) -> None:
    """From the own sessions to an answer in other words, with what the model says of its fit."""
    page = counted(open_tab(web, "cleo").page)
    row = page.locator("tr", has_text="evening")
    row.get_by_role("link", name=re.compile("feedback", re.IGNORECASE)).click()
    page.get_by_role("link", name=re.compile("^Rewrite this turn")).nth(1).click()
    page.locator("[name=text]").fill("That sounds lonely. What was the evening like?")
    page.get_by_role("button", name="Check this wording").click()
    expect(page.locator("#levels")).to_be_in_viewport()
    expect(page.locator("#levels")).to_contain_text(re.compile("fit|answer", re.IGNORECASE))
    assert page.evaluate(CLICKS) <= 4


def test_an_administrator_erases_a_person(web: ScoredWeb, open_tab: OpenTab) -> None:
    """Counted before it is done, and confirmed by the own password."""
    web.play_sample("peer-support-01", "gone", ago=HALF * 2, counsellor="gil@example.org")
    assert known(web.store, "gone")
    page = counted(open_tab(web, "ada").page)
    page.get_by_role("link", name="Erasure").click()
    page.get_by_label("A person's speaker id, as in events").fill("gil@example.org")
    page.get_by_role("button", name="Count what would be erased").click()
    plan = page.locator("section", has_text="What would be erased").first
    expect(plan).to_contain_text(re.compile(r"Stored\s*1"))
    page.get_by_label("Your password, to confirm").fill(PASSWORD)
    page.get_by_role("button", name="Erase 1 session").click()
    expect(page.get_by_role("heading", name="Erased")).to_be_visible()
    assert page.evaluate(CLICKS) <= 6
    assert not known(web.store, "gone")
