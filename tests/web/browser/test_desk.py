"""The session page as a desk: what is seen without scrolling, and what waits one level down."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.browser.conftest import PHONE, NewWeb, OpenTab
from tests.web.browser.scored_web import ScoredWeb, turn

LAPTOP = {"width": 1280, "height": 800}
HALF = timedelta(minutes=10)


@pytest.fixture(scope="module")
def web(new_web: NewWeb) -> ScoredWeb:
    """A live session with alerts, one that is over, and one without an alert."""
    web = new_web()
    web.play_sample("peer-support-03", "bad", ago=HALF, until=16, counsellor="cleo@example.org")
    web.play_sample("peer-support-06", "over", ago=timedelta(hours=1))
    web.play_sample("counselling-05", "calm", ago=HALF, until=8)
    web.start()
    return web


def in_first_window(page: Page, what: Locator) -> bool:
    """Whether all of an element is seen without scrolling, not covered by the scroll bars."""
    return bool(
        what.evaluate(
            """one => {
              const box = one.getBoundingClientRect();
              const frames = [document.documentElement];
              for (let at = one.parentElement; at; at = at.parentElement)
                if (getComputedStyle(at).overflowY === "auto") frames.push(at);
              return box.height > 0 && frames.every((frame) => {
                const own = frame === document.documentElement
                  ? { top: 0, bottom: innerHeight } : frame.getBoundingClientRect();
                return box.top >= own.top - 1 && box.bottom <= own.bottom + 1;
              });
            }"""
        )
    )


def test_a_supervisor_decides_without_scrolling(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/bad", viewport=LAPTOP).page
    alerts = page.get_by_role("region", name="Alert", exact=True)
    firing = page.locator("#turn-11")
    expect(firing).to_have_class(re.compile("is-firing"))
    needed = {
        "who": page.locator(".facts").get_by_role("link", name="cleo"),
        "how long": page.locator(".facts dd", has_text="min so far"),
        "reason": alerts.locator(".reason").first,
        "right": alerts.get_by_role("button", name="Right"),
        "false": alerts.get_by_role("button", name="False alarm"),
        "unclear": alerts.get_by_role("button", name="Unclear"),
        "note": page.get_by_label("Note to the counsellor’s desk"),
        "masked": page.get_by_text("will be masked before it is sent"),
        "send": page.get_by_role("button", name="Send note"),
        "take over": page.get_by_role("button", name="Take over…"),
        "review": page.get_by_role("link", name="Assign for review"),
        "firing turn": firing.locator(".text"),
    }
    page.wait_for_timeout(200)  # the transcript settles in a few frames
    unseen = [name for name, what in needed.items() if not in_first_window(page, what)]
    assert unseen == []


LABORATORY = (".curve", ".level", ".p", ".perceived", ".window", ".agreement", ".chip .p", ".model")


@pytest.mark.parametrize("session", ["bad", "over"])
def test_scores_wait_one_level_down(web: ScoredWeb, open_tab: OpenTab, session: str) -> None:
    page = open_tab(web, to=f"/sessions/{session}", viewport=LAPTOP).page
    for part in LABORATORY:
        assert page.locator(f"{part}:visible").count() == 0, part
    assert re.findall(r"0\.\d\d", page.locator(".facts").inner_text()) == []
    of_turn = page.locator("#turn-1")
    of_turn.locator(".how > summary").click()
    expect(of_turn.get_by_role("group", name="Expressed")).to_be_visible()
    expect(of_turn.locator(".window")).to_be_visible()
    page.locator("#scored > summary").click()
    for part in (".curve", ".agreement", ".model"):
        expect(page.locator(part).first).to_be_visible()


@pytest.mark.parametrize("session", ["bad", "over", "calm"])
def test_nothing_is_clipped_on_a_phone(web: ScoredWeb, open_tab: OpenTab, session: str) -> None:
    """Every element is inside the window's width, also with everything unfolded."""
    page = open_tab(web, to=f"/sessions/{session}", viewport=PHONE, has_touch=True).page
    for _ in range(2):
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert clipped(page) == []
        page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")


def clipped(page: Page) -> list[str]:
    """Visible elements that reach out of the window, or whose words are cut off."""
    found: list[str] = page.evaluate("""() => [...document.querySelectorAll("main *")]
      .filter((one) => !one.closest(".unseen, .scrolls table, svg, [popover]"))
      .filter((one) => {
        const box = one.getBoundingClientRect();
        if (!box.width) return false;
        const style = getComputedStyle(one);
        const cut = style.overflowX === "hidden" && one.scrollWidth > one.clientWidth + 1;
        return cut || box.left < -1 || box.right > innerWidth + 1;
      }).map((one) => one.outerHTML.slice(0, 90))""")
    return found


def test_taking_over_asks_once(web: ScoredWeb, open_tab: OpenTab) -> None:
    """Also without JavaScript; the first button alone changes nothing."""
    page = open_tab(web, to="/sessions/calm", java_script_enabled=False).page
    page.get_by_role("button", name="Take over…").click()
    asked = page.get_by_role("dialog", name="Take over this session?")
    expect(asked).to_be_visible()
    expect(asked.get_by_role("button", name="Cancel")).to_be_focused()
    asked.get_by_role("button", name="Cancel").click()
    expect(asked).to_be_hidden()
    page.reload()
    expect(page.get_by_role("button", name="Hand back")).to_have_count(0)
    page.get_by_role("button", name="Take over…").click()
    asked.get_by_role("button", name="Take over", exact=True).click()
    page.get_by_role("button", name="Hand back").click()
    expect(page.get_by_role("button", name="Take over…")).to_be_visible()


def test_a_verdict_is_given_on_the_page_and_can_be_changed(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    web.play_sample("customer-service-02", "judged", ago=HALF, until=14)
    page = open_tab(web, to="/sessions/judged", viewport=LAPTOP).page
    first = page.locator("#alerts .session-alert").first
    expect(first.locator(".state").first).to_have_text("firing")
    first.get_by_role("button", name="Unclear").click()
    expect(first.locator(".state").first).to_have_text("acknowledged")
    expect(first.locator(".verdict")).to_contain_text("Is the alert right?")
    first.get_by_role("button", name="False alarm").click()
    expect(first.locator(".verdict")).to_contain_text("Judged a false alarm")
    first.get_by_role("button", name="Right").click()
    expect(first.locator(".verdict")).to_contain_text("Judged right")
    expect(page).to_have_url(re.compile("/sessions/judged$"))


def test_every_open_alert_is_seen_and_the_first_verdict_stays_in_view(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    said = ("I feel so alone and hopeless.", "It hurts so much.", "I want to kill myself.")
    words = [each for client in said * 2 for each in (client, "Get over it.")]
    web.commit(*(turn("twice", seq, text, domain="peer-support") for seq, text in enumerate(words)))
    page = open_tab(web, to="/sessions/twice", viewport=LAPTOP).page
    alerts = page.locator("#alerts .session-alert")
    assert alerts.count() > 1
    for place in range(alerts.count()):
        expect(alerts.nth(place).locator(".reason")).to_be_visible()
    for name in ("Right", "False alarm", "Unclear"):
        assert in_first_window(page, alerts.first.get_by_role("button", name=name))
    for name in ("Send note", "Take over…"):
        assert in_first_window(page, page.get_by_role("button", name=name))
