"""What each role reaches by clicking: counsellors, the administration, help, presence."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from stream_app.store.accounts.people import People
from stream_app.store.database.tables import people as accounts
from stream_app.web.console.pseudonym_words import short_form
from tests.web.browser.accessibility import grave_violations
from tests.web.browser.conftest import PHONE, WIDE, NewWeb, OpenTab
from tests.web.browser.scored_web import PASSWORD, ScoredWeb

HALF = timedelta(minutes=10)
CLEO = "cleo@example.org"
OTHER = "no-account@example.org"
ADMIN = (
    "",
    "/accounts",
    "/accounts/sue",
    "/teams",
    "/settings",
    "/bundles",
    "/retention",
    "/consent",
    "/erasure",
    "/holds",
    "/audit",
)
WINDOWS = {"wide": {"viewport": WIDE}, "phone": {"viewport": PHONE, "has_touch": True}}


@pytest.fixture(scope="module")
def web(new_web: NewWeb) -> ScoredWeb:
    """A live session with a firing alert, led by Cleo, and one by somebody without an account."""
    web = new_web()
    bad = {"team": "north", "counsellor": CLEO}
    web.play_sample("peer-support-03", "bad", ago=HALF, until=12, **bad)
    web.play_sample("counselling-05", "calm", ago=HALF, until=8, team="south", counsellor=OTHER)
    for number in range(4):
        ago = timedelta(days=7 * (number // 2) + 8, hours=number)
        web.play_sample(f"counselling-0{number + 1}", f"past-{number}", ago=ago, **bad)
    web.start()
    return web


def development(web: ScoredWeb, page: Page, speaker: str) -> None:
    page.get_by_role("link", name="Development over months").click()
    expect(page).to_have_url(
        f"{web.url}/counsellors/{web.store.privacy.pseudonym(speaker)}/development"
    )


@pytest.mark.parametrize(
    "start",
    ["/", "/sessions/bad", "/alerts?state=firing", "/sessions"],
    ids=["wall", "session", "alert", "past sessions"],
)
def test_two_clicks_lead_from_every_page_to_a_counsellors_development(
    web: ScoredWeb, open_tab: OpenTab, start: str
) -> None:
    page = open_tab(web).open(start)
    page.locator("main").get_by_role("link", name="cleo", exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("cleo")
    development(web, page, CLEO)


def test_the_list_of_a_team_leads_to_development_in_one_click(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web).open("/counsellors?team=north")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="over months of cleo").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Development of cleo")


def test_without_an_account_a_counsellor_has_a_readable_name_that_works_as_an_address(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web).page
    speaker = web.store.privacy.pseudonym(OTHER)
    name = page.locator("[data-session=calm] .who a").inner_text()
    assert name == short_form(speaker)
    for given in (name, speaker[:8]):
        page.goto(f"{web.url}/counsellors/{given}")
        expect(page).to_have_url(f"{web.url}/counsellors/{speaker}")
        expect(page.get_by_role("heading", level=1)).to_have_text(name)


@pytest.mark.parametrize(("name", "home"), [("ana", "Analytics"), ("ada", "Administration")])
def test_no_card_leads_where_the_role_may_not_go(
    web: ScoredWeb, open_tab: OpenTab, name: str, home: str
) -> None:
    tab = open_tab(web, name, "/help")
    page = tab.open("/")
    badge = page.locator("[data-session=bad] .alert-badge")
    expect(badge).to_be_visible()
    links = page.locator("main a, header a").evaluate_all("all => all.map(one => one.href)")
    for address in sorted(set(links)):
        answer = page.request.get(address)
        assert answer.status == 200, address
    tab.open("/sessions/bad")
    expect(page.get_by_role("heading", level=1)).to_have_text("You do not have access")
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    expect(page.locator("main")).to_contain_text(re.compile("you can open"))
    page.locator("main").get_by_role("link", name=home).click()
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    tab.console_errors.clear()  # the browser notes the 403


def test_an_administrator_creates_an_account_without_the_command_line(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, None, java_script_enabled=False).open("/sign-in")
    page.fill("[name=name]", "ada")
    page.fill("[name=password]", PASSWORD)
    page.click("main button")
    expect(page).to_have_url(f"{web.url}/admin")
    page.get_by_role("link", name="Accounts and tokens").click()
    page.fill("[name=name]", "vera")
    page.select_option("[name=role]", "supervisor")
    page.select_option("[name=team]", "north")
    page.fill("[name=password]", PASSWORD)
    page.get_by_role("button", name="Create").click()
    initial = page.locator("#secret").inner_text()
    page.get_by_role("button", name="Sign out").click()
    page.fill("[name=name]", "vera")
    page.fill("[name=password]", initial)
    page.click("main button")
    expect(page).to_have_url(f"{web.url}/password")
    page.fill("[name=current]", initial)
    page.fill("[name=new]", "wooden-harp-9-lantern")
    page.fill("[name=repeated]", "wooden-harp-9-lantern")
    page.get_by_role("button", name="Change").click()
    page.get_by_role("link", name="Live sessions").click()
    expect(page.locator("[data-session=bad]")).to_be_visible()
    expect(page.locator("#tour-title")).to_have_text("Who needs you now")


def test_the_introduction_is_remembered(web: ScoredWeb, open_tab: OpenTab) -> None:
    with web.store.transaction() as connection:
        connection.execute(
            accounts.update().where(accounts.c.name == "nora").values(toured_at=None)
        )
    page = open_tab(web, "nora").open("/")
    for step in (2, 3):
        page.locator("#tour").get_by_role("link", name="Next").click()
        expect(page.locator("#tour")).to_contain_text(f"Introduction, {step} of 3")
    page.locator("#tour").get_by_role("button", name="Done").click()
    expect(page.locator("#tour")).to_have_count(0)
    page.reload()
    expect(page.locator("#tour")).to_have_count(0)
    assert People(web.store).toured("nora")


def test_words_lead_to_their_help_and_question_mark_shows_the_shortcuts(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web).open("/sessions/bad")
    page.locator("#scored > summary").click()
    page.get_by_role("link", name="Low-empathy risk").first.click()
    expect(page).to_have_url(f"{web.url}/help/risk")
    page.wait_for_load_state()
    page.keyboard.press("?")
    expect(page.locator("#shortcuts")).to_be_visible()
    assert grave_violations(page) == []
    page.keyboard.press("Escape")
    expect(page.locator("#shortcuts")).to_be_hidden()
    page.keyboard.press("g")
    page.keyboard.press("c")
    expect(page).to_have_url(f"{web.url}/counsellors")
    page.wait_for_load_state()  # the address changes before the page's script runs
    page.keyboard.press("/")
    page.keyboard.type("g?a")
    expect(page.locator("main input[type=search]")).to_have_value("g?a")
    page.locator("main input[type=search]").fill("")
    page.locator("h1").click()
    page.keyboard.press("?")
    page.get_by_label("Shortcuts are on").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("a")
    expect(page).to_have_url(f"{web.url}/counsellors")


def test_supervisors_see_each_other_on_a_session_and_its_counsellor_sees_nobody(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    sue = open_tab(web).open("/sessions/bad")
    expect(sue.locator("#presence")).to_be_hidden()
    nora = open_tab(web, "nora").open("/sessions/bad")
    expect(nora.locator("#presence")).to_have_text("Also looking at this session: sue")
    cleo = open_tab(web, "cleo").open("/sessions/bad")
    expect(cleo.locator("#presence")).to_have_count(0)
    sue.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(sue.locator("#presence")).to_have_text("Also looking at this session: nora")
    nora.goto("about:blank")
    sue.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(sue.locator("#presence")).to_be_hidden()


def test_trend_charts_have_dates_and_units(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web).open("/counsellors/cleo")
    chart = page.locator("svg.trend").first
    expect(chart.locator(".date text").first).to_have_text(re.compile(r"^\d\d \w{3}"))
    expect(chart.locator(".axis")).to_contain_text("week beginning; mean level")
    boxes = chart.locator("text").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(b => [b.left, b.right, b.bottom])"
    )
    frame = chart.bounding_box()
    assert frame is not None
    for left, right, bottom in boxes:
        assert frame["x"] - 1 <= left <= right <= frame["x"] + frame["width"] + 1
        assert bottom <= frame["y"] + frame["height"] + 1


@pytest.mark.parametrize("window", WINDOWS)
def test_pages_have_no_grave_finding_and_fit_the_window(
    web: ScoredWeb, open_tab: OpenTab, window: str
) -> None:
    found, widths = [], {}
    for name, paths in {
        "ada": ("/rules", *(f"/admin{path}" for path in ADMIN)),
        "sue": ("/counsellors", "/help", "/help/alert", "/?group=team", "/?density=compact"),
    }.items():
        tab = open_tab(web, name, "/help", **WINDOWS[window])
        for path in paths:
            page = tab.open(path)
            widths[path] = page.evaluate("document.documentElement.scrollWidth")
            page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
            found += [(path, *one) for one in grave_violations(page)]
    assert found == []
    assert set(widths.values()) == {WINDOWS[window]["viewport"]["width"]}, widths
