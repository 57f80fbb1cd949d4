"""The pages about months: axe, window width, and the same without JavaScript."""

import re

import pytest
from playwright.sync_api import expect

from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import schema
from stream_app.demo import simulated_store
from stream_app.demo.simulator import simulate
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.web.sign_in.auth import hash_password
from tests.web.browser.accessibility import grave_violations
from tests.web.browser.conftest import PHONE, WIDE, NewWeb, OpenTab
from tests.web.browser.scored_web import PASSWORD, ScoredWeb
from tests.web.people.longitudinal import LINKED, WORLD

RANGE = "from=2026-01-01&to=2026-07-31"
COUNSELLOR = "{counsellor}"
PAGES = (
    f"/analytics?{RANGE}",
    f"/analytics?{RANGE}&cohort=every",
    "/teams?month=2026-03-01",
    "/sessions",
    "/sessions?team=south&alert=any",
    f"/counsellors/{COUNSELLOR}/development?{RANGE}",
)
WINDOWS = {"wide": {"viewport": WIDE}, "phone": {"viewport": PHONE, "has_touch": True}}


@pytest.fixture(scope="module")
def web(new_web: NewWeb) -> ScoredWeb:
    web = new_web()
    simulated_store.write(simulate(WORLD), web.store)
    rollups.rebuild(web.store)
    schema.create_views(web.store)
    speaker = web.store.privacy.pseudonym(LINKED)
    linked = Person("cora", PersonRole.COUNSELLOR, None, speaker)
    People(web.store).add(linked, hash_password(PASSWORD))
    web.start()
    return web


def address(web: ScoredWeb, path: str) -> str:
    return path.replace(COUNSELLOR, web.store.privacy.pseudonym(LINKED))


@pytest.mark.parametrize("window", WINDOWS)
def test_axe_finds_nothing_and_pages_fit_the_window(
    web: ScoredWeb, open_tab: OpenTab, window: str
) -> None:
    tab = open_tab(web, **WINDOWS[window])
    found, widths = [], {}
    for path in PAGES:
        page = tab.open(address(web, path))
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        widths[path] = page.evaluate("document.documentElement.scrollWidth")
        page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
        found += [(path, *one) for one in grave_violations(page)]
    assert found == []
    assert set(widths.values()) == {WINDOWS[window]["viewport"]["width"]}, widths


def test_everything_works_without_javascript(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, java_script_enabled=False).open(f"/analytics?{RANGE}")
    page.get_by_text("Measures", exact=True).first.click()
    for name in ("Empathy index", "Interpretations", "Explorations"):
        page.get_by_role("checkbox", name=name).uncheck()
    page.get_by_label("Team").select_option("south")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("figure")).to_have_count(2)
    expect(page).to_have_url(re.compile("team=south.*measure=emotional_reactions"))
    page.get_by_text("As a table: Emotional reactions").click()
    table = page.get_by_role("region", name="Emotional reactions as a table")
    expect(table).to_contain_text(re.compile(r"0\.\d{3}\s+to\s+\d"))
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename.endswith("-curves.csv")


def test_a_saved_view_and_the_way_to_a_counsellors_development(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web).open("/sessions")
    page.get_by_label("Counsellor").select_option(label="cora")
    expect(page).to_have_url(re.compile("counsellor="))  # without a click on "Show"
    page.get_by_label("Save this filter as").fill("Her sessions")
    page.get_by_role("button", name="Save").click()
    page.goto(web.url + "/sessions")
    page.get_by_role("navigation", name="Saved views").get_by_role(
        "link", name="Her sessions"
    ).click()
    expect(page.get_by_label("Counsellor")).to_have_value(web.store.privacy.pseudonym(LINKED))
    page.get_by_role("link", name="cora").first.click()
    page.get_by_role("link", name="Development over months").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Development of cora")
    page.locator("[name=from]").fill("2026-01-01")
    page.locator("[name=from]").blur()
    expect(page).to_have_url(re.compile("2026-01-01"))
    expect(page.locator("svg.bands[role=img]").first).to_be_visible()
