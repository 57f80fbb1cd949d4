"""Checks of every page: axe, CSP, keyboard, light and dark, phone width."""

import re
import statistics
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser.accessibility import grave_violations
from tests.web.browser.conftest import PHONE, WIDE, NewWeb, OpenTab
from tests.web.browser.scored_web import PASSWORD, ScoredWeb, turn

HALF = timedelta(minutes=10)
PAGES = (
    "/",
    "/?team=nobody",
    "/sessions/bad",
    "/sessions/marked",
    "/sessions/over",
    "/sessions/hostile",
    "/sessions/interview",
    "/alerts?state=firing",
    "/alerts?state=resolved",
    "/rules",
    "/rules/draft",
    "/exports",
    "/sign-in",
)
WINDOWS = {"wide": {"viewport": WIDE}, "phone": {"viewport": PHONE, "has_touch": True}}


@pytest.fixture(scope="module")
def web(new_web: NewWeb, live_broker: str) -> ScoredWeb:
    web = new_web(broker=live_broker, changes={"topic_prefix": "pages"})
    web.play_sample("customer-service-02", "bad", ago=HALF, until=14)
    web.play_sample("counselling-04", "marked", ago=HALF, until=20)
    web.play_sample("peer-support-08", "over", ago=timedelta(hours=1))
    web.commit(
        turn("hostile", 0, "<script>alert(1)</script>"),
        turn("hostile", 1, "I am so sorry. That sounds hard. What happened? " * 60),
        turn("hostile", 2, "מה אני אמור לעשות " * 400),
        *(
            turn("interview", seq, f"{seq}: what else?", approach="motivational-interviewing")
            for seq in range(4)
        ),
    )
    web.start_live()
    return web


@pytest.mark.parametrize("window", WINDOWS)
def test_axe_finds_nothing_serious_and_no_page_is_wider_than_the_window(
    web: ScoredWeb, open_tab: OpenTab, window: str
) -> None:
    tab = open_tab(web, **WINDOWS[window])
    found, widths = [], {}
    for path in PAGES:
        page = tab.open(path)
        widths[path] = page.evaluate("document.documentElement.scrollWidth")
        page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
        found += [(path, *one) for one in grave_violations(page)]
    assert found == []
    assert set(widths.values()) == {WINDOWS[window]["viewport"]["width"]}, widths


def test_miti_measures_are_a_table(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web).open("/sessions/interview")
    page.locator("#scored > summary").click()
    table = page.get_by_role("region", name="MITI measures")
    expect(table.get_by_role("rowheader")).to_have_count(5)
    expect(table.get_by_role("columnheader", name="Good from")).to_be_visible()


def test_every_page_has_landmarks_one_h1_and_a_title(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web)
    titles = []
    for path in PAGES:
        page = tab.open(path)
        for role in ("banner", "main", "contentinfo"):
            expect(page.get_by_role(role)).to_have_count(1)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        titles.append(page.title())
    assert all(title.endswith("– Rapport") for title in titles)
    assert "bad – Rapport" in titles


def focused(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("""() => {
      const node = document.activeElement;
      const ring = getComputedStyle(node.closest(".card") ?? node);
      const own = getComputedStyle(node);
      return {
        words: (node.innerText || node.getAttribute("aria-label") || node.name || "").trim(),
        tag: node.tagName.toLowerCase(),
        ringed: own.outlineStyle !== "none" || ring.outlineStyle !== "none" || node.tagName === "a",
      };
    }""")
    return found


def test_everything_can_be_done_with_the_keyboard(web: ScoredWeb, open_tab: OpenTab) -> None:
    """Sign in, skip to content, open the most urgent session, open its alert, acknowledge it."""
    tab = open_tab(web, None)
    page = tab.open("/sign-in")
    page.keyboard.type("sue")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(web.url + "/")
    page.keyboard.press("Tab")
    assert focused(page)["words"] == "Skip to content"
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    seen = []
    for _ in range(12):
        page.keyboard.press("Tab")
        focus = focused(page)
        seen.append(focus["words"])
        assert focus["ringed"], focus
        if focus["words"] == "bad":
            break
    assert seen[-1] == "bad", seen
    page.keyboard.press("Enter")
    page.wait_for_url(web.url + "/sessions/bad")
    for _ in range(40):
        page.keyboard.press("Tab")
        if focused(page)["words"] == "open in the inbox":
            break
    page.keyboard.press("Enter")
    page.wait_for_url(web.url + "/alerts/*")
    for _ in range(30):
        page.keyboard.press("Tab")
        if focused(page)["words"] == "Acknowledge":
            break
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("on it")
    page.keyboard.press("Tab")
    assert focused(page)["words"] == "Right"
    page.keyboard.press("Enter")
    expect(page.locator(".alert.acknowledged")).to_be_visible()
    expect(page.locator(".actions")).to_contain_text("on it")


def brightness(page: Page) -> float:
    """Brightness of the page's background, 0-255."""
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return statistics.fmean(int(part) for part in re.findall(r"\d+", colour))


def choose(page: Page, appearance: str) -> None:
    """Choose an appearance and wait until the page has been reloaded."""
    page.get_by_role("button", name=appearance).click()
    expect(page.locator("html")).to_have_attribute("data-appearance", appearance.lower())
    page.wait_for_load_state()


def test_the_appearance_follows_the_system_until_chosen(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web, color_scheme="dark", java_script_enabled=False)
    page = tab.page
    assert brightness(page) < 60
    choose(page, "Light")
    expect(page).to_have_url(web.url + "/")
    assert brightness(page) > 200
    page.emulate_media(color_scheme="light")
    choose(page, "Dark")
    assert brightness(page) < 60
    choose(page, "Auto")
    assert brightness(page) > 200


def test_missing_pages_show_not_found(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web)
    for path in ("/nothing", "/sessions/nothing", "/alerts/nothing", "/alerts?state=nothing"):
        page = tab.open(path)
        expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
        for part in ("header", "main"):
            link = page.locator(part).get_by_role("link", name="Live sessions")
            expect(link).to_be_visible()
    tab.console_errors.clear()


def test_the_sign_in_form_leads_back_to_the_requested_page(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    tab = open_tab(web, None)
    page = tab.open("/alerts?state=resolved")
    assert "/sign-in?to=" in page.url
    page.fill("[name=name]", "sue")
    page.fill("[name=password]", "wrong, and long enough")
    page.click("main button")
    expect(page.get_by_role("alert")).to_have_text("Wrong name or password.")
    page.fill("[name=name]", "sue")
    page.fill("[name=password]", PASSWORD)
    page.click("main button")
    page.wait_for_url(web.url + "/alerts?state=resolved")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(web.url + "/sign-in")
    assert "/sign-in" in tab.open("/").url
    tab.console_errors.clear()  # the browser notes the 401


def test_signing_in_does_not_redirect_to_other_sites(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web, None)
    for elsewhere in ("//example.org/", "https://example.org/", "/\\example.org"):
        page = tab.open(f"/sign-in?to={elsewhere}")
        page.fill("[name=name]", "sue")
        page.fill("[name=password]", PASSWORD)
        page.click("main button")
        page.wait_for_url(web.url + "/")


def test_a_request_during_a_load_causes_another_load(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web).page
    loads = page.evaluate("""async () => {
      const { oneAtATime } = await import("/static/reload.js");
      const loads = [];
      let end;
      const ask = oneAtATime(() => {
        loads.push("begun");
        return new Promise((resolve) => (end = resolve));
      });
      ask();
      ask();
      const done = ask();
      loads.push("asked thrice");
      end(false);
      while (loads.length < 3) await new Promise((wake) => setTimeout(wake, 20));
      ask();
      end(true);
      while (loads.length < 4) await new Promise((wake) => setTimeout(wake, 20));
      end(true);
      await done;
      return loads;
    }""")
    assert loads == ["begun", "asked thrice", "begun", "begun"]
