"""What holds for every page: axe, the policy, the keyboard, light and dark, a phone's width."""

import re
import statistics
from datetime import timedelta
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.web.browser.conftest import PHONE, WIDE, NewStage, Sit
from tests.web.browser.stage import PASSWORD, Stage, turn

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
    "/sign-in",
)
LOOKS = {
    "light": {"viewport": WIDE, "color_scheme": "light"},
    "dark": {"viewport": WIDE, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light", "has_touch": True},
    "phone-dark": {"viewport": PHONE, "color_scheme": "dark", "has_touch": True},
}


@pytest.fixture(scope="module")
def stage(new_stage: NewStage, live_broker: str) -> Stage:
    stage = new_stage(broker=live_broker, changes={"topic_prefix": "pages"})
    stage.play("customer-service-02", "bad", ago=HALF, until=12)
    stage.play("counselling-04", "marked", ago=HALF, until=20)
    stage.play("peer-support-08", "over", ago=timedelta(hours=1))
    stage.commit(
        turn("hostile", 0, "<script>alert(1)</script>"),
        turn("hostile", 1, "I am so sorry. That sounds hard. What happened? " * 60),
        turn("hostile", 2, "מה אני אמור לעשות " * 400),
        *(
            turn("interview", seq, f"{seq}: what else?", approach="motivational-interviewing")
            for seq in range(4)
        ),
    )
    stage.go_live()
    return stage


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_serious(stage: Stage, sit: Sit, look: str) -> None:
    sitting = sit(stage, **LOOKS[look])
    found = []
    for path in PAGES:
        page = sitting.open(path)
        page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
        answer = Axe().run(page).response
        assert "color-contrast" in {rule["id"] for rule in answer["passes"]}, path
        for violation in answer["violations"]:
            if violation["impact"] in ("serious", "critical"):
                nodes = [
                    (n["html"][:160], n.get("failureSummary", "")[:300])
                    for n in violation["nodes"][:3]
                ]
                found.append((path, violation["id"], nodes))
    assert found == []


def test_the_measures_of_an_interview_are_a_table(stage: Stage, sit: Sit) -> None:
    page = sit(stage, **LOOKS["light"]).open("/sessions/interview")
    table = page.get_by_role("region", name="MITI measures")
    expect(table.get_by_role("rowheader")).to_have_count(5)
    expect(table.get_by_role("columnheader", name="Good from")).to_be_visible()


@pytest.mark.parametrize("look", ["light", "phone"])
def test_no_page_is_wider_than_the_window(stage: Stage, sit: Sit, look: str) -> None:
    sitting = sit(stage, **LOOKS[look])
    widths = {}
    for path in PAGES:
        page = sitting.open(path)
        widths[path] = page.evaluate("document.documentElement.scrollWidth")
    assert set(widths.values()) == {LOOKS[look]["viewport"]["width"]}, widths


def test_every_page_has_its_landmarks_one_first_heading_and_a_title(stage: Stage, sit: Sit) -> None:
    sitting = sit(stage)
    titles = []
    for path in PAGES:
        page = sitting.open(path)
        for role in ("banner", "main", "contentinfo"):
            expect(page.get_by_role(role)).to_have_count(1)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        titles.append(page.title())
    assert all(title.endswith("– Rapport") for title in titles)
    assert "bad – Rapport" in titles


def focused(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("""() => {
      const held = document.activeElement;
      const ring = getComputedStyle(held.closest(".card") ?? held);
      const own = getComputedStyle(held);
      return {
        words: (held.innerText || held.getAttribute("aria-label") || held.name || "").trim(),
        tag: held.tagName.toLowerCase(),
        ringed: own.outlineStyle !== "none" || ring.outlineStyle !== "none" || held.tagName === "a",
      };
    }""")
    return found


def test_everything_can_be_done_with_the_keyboard(stage: Stage, sit: Sit) -> None:
    """Sign in, skip to the content, open the worst session, go to its alert, acknowledge it."""
    sitting = sit(stage, None)
    page = sitting.open("/sign-in")
    page.keyboard.type("sue")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(stage.url + "/")
    page.keyboard.press("Tab")
    assert focused(page)["words"] == "Skip to the content"
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    seen = []
    for _ in range(12):
        page.keyboard.press("Tab")
        held = focused(page)
        seen.append(held["words"])
        assert held["ringed"], held
        if held["words"] == "bad":
            break
    assert seen[-1] == "bad", seen
    page.keyboard.press("Enter")
    page.wait_for_url(stage.url + "/sessions/bad")
    for _ in range(40):
        page.keyboard.press("Tab")
        if focused(page)["words"] == "in the inbox":
            break
    page.keyboard.press("Enter")
    page.wait_for_url(stage.url + "/alerts/*")
    for _ in range(30):
        page.keyboard.press("Tab")
        if focused(page)["words"] == "Acknowledge":
            break
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.type("on it")
    page.keyboard.press("Tab")
    assert focused(page)["words"] == "Acknowledge"
    page.keyboard.press("Enter")
    expect(page.locator(".alert.acknowledged")).to_be_visible()
    expect(page.locator(".actions")).to_contain_text("on it")


def brightness(page: Page) -> float:
    """Of the page's ground, 0-255."""
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return statistics.fmean(int(part) for part in re.findall(r"\d+", colour))


def choose(page: Page, appearance: str) -> None:
    """The page is loaded anew; the old one must be gone before anybody looks."""
    page.get_by_role("button", name=appearance).click()
    expect(page.locator("html")).to_have_attribute("data-appearance", appearance.lower())
    page.wait_for_load_state()


def test_light_and_dark_follow_the_system_until_somebody_chooses(stage: Stage, sit: Sit) -> None:
    sitting = sit(stage, color_scheme="dark", java_script_enabled=False)
    page = sitting.page
    assert brightness(page) < 60
    choose(page, "Light")
    expect(page).to_have_url(stage.url + "/")
    assert brightness(page) > 200
    page.emulate_media(color_scheme="light")
    choose(page, "Dark")
    assert brightness(page) < 60
    choose(page, "Auto")
    assert brightness(page) > 200


def test_a_page_that_is_not_there_says_so(stage: Stage, sit: Sit) -> None:
    sitting = sit(stage)
    for path in ("/nothing", "/sessions/nothing", "/alerts/nothing", "/alerts?state=nothing"):
        page = sitting.open(path)
        expect(page.get_by_role("heading", level=1)).to_have_text("Nothing here")
        expect(page.get_by_role("link", name="Live sessions")).to_be_visible()
    sitting.complaints.clear()


def test_whoever_is_not_signed_in_is_led_to_the_form_and_back(stage: Stage, sit: Sit) -> None:
    sitting = sit(stage, None)
    page = sitting.open("/alerts?state=resolved")
    assert "/sign-in?to=" in page.url
    page.fill("[name=name]", "sue")
    page.fill("[name=password]", "wrong, and long enough")
    page.click("main button")
    expect(page.get_by_role("alert")).to_have_text("The name or the password is not right.")
    page.fill("[name=name]", "sue")
    page.fill("[name=password]", PASSWORD)
    page.click("main button")
    page.wait_for_url(stage.url + "/alerts?state=resolved")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(stage.url + "/sign-in")
    assert "/sign-in" in sitting.open("/").url
    sitting.complaints.clear()  # the browser notes the 401


def test_nobody_is_sent_to_another_site_after_signing_in(stage: Stage, sit: Sit) -> None:
    sitting = sit(stage, None)
    for elsewhere in ("//example.org/", "https://example.org/", "/\\example.org"):
        page = sitting.open(f"/sign-in?to={elsewhere}")
        page.fill("[name=name]", "sue")
        page.fill("[name=password]", PASSWORD)
        page.click("main button")
        page.wait_for_url(stage.url + "/")


def test_what_was_lost_during_a_load_is_loaded_by_another_one(stage: Stage, sit: Sit) -> None:
    page = sit(stage).page
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
