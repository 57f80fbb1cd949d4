"""What all pages share: status colours, times with a zone, instant filters, the phone's header."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from stream_app.store.accounts.people import People
from stream_app.store.sessions import sessions
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.work import disputes
from tests.web.browser.conftest import PHONE, NewWeb, OpenTab
from tests.web.browser.scored_web import ScoredWeb

HALF = timedelta(minutes=10)


@pytest.fixture(scope="module")
def web(new_web: NewWeb) -> ScoredWeb:
    web = new_web()
    web.play_sample("peer-support-03", "firing", ago=HALF, until=12)
    web.play_sample("counselling-05", "calm", ago=HALF, until=8)
    web.play_sample("counselling-02", "over", ago=timedelta(hours=1), counsellor="cleo@example.org")
    cleo = People(web.store).find("cleo")
    assert cleo is not None
    disputes.contest(web.store, cleo, "over", 3, "explorations", None, "I asked about her garden.")
    web.start()
    return web


def colours(page: Page, card: str) -> set[str]:
    """The colours of a card's edge, risk number or shape, and badge."""
    found: list[str] = page.locator(card).evaluate(
        """card => {
          const of = (one, name) => one && getComputedStyle(one)[name];
          const shape = card.querySelector(".risk .ring");
          const ring = shape && getComputedStyle(shape).display !== "none";
          return [
            of(card, "borderInlineStartColor"),
            ring ? of(shape, "stroke") : of(card.querySelector(".risk"), "color"),
            of(card.querySelector(".alert-badge"), "backgroundColor"),
          ].filter(Boolean);
        }"""
    )
    return set(found)


def test_a_card_with_a_firing_alert_has_one_status_colour(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web).page
    card = ".card[data-session=firing]"
    assert len(colours(page, card)) == 1
    # The risk falls below the threshold, but not yet below that at which the alert ends.
    page.locator(card).evaluate(
        """card => {
          card.classList.remove("at-risk");
          card.querySelector(".risk").classList.replace("above", "below");
        }"""
    )
    assert len(colours(page, card)) == 1
    expect(page.locator(f"{card} .still")).to_have_text(
        "below the threshold; the alert has not ended"
    )


def test_the_closing_value_is_drawn_and_explained(web: ScoredWeb, open_tab: OpenTab) -> None:
    found = sessions.one(web.store, ALL_SESSIONS, "over")
    assert found is not None
    assert found.low_empathy_risk is not None
    closing, last = found.low_empathy_risk, found.risk_by_turn[-1][1]
    assert f"{closing:.2f}" != f"{last:.2f}", "the sample no longer shows the difference"
    page = open_tab(web, to="/sessions/over").page
    page.locator("#scored > summary").click()
    expect(page.locator(".fact-risk .value")).to_have_text(f"{closing:.2f}")
    expect(page.locator(".fact-words")).to_contain_text("closing value")
    expect(page.locator(".closing-words")).to_contain_text(
        f"closed at {closing:.2f}, after {last:.2f} at its last counsellor turn"
    )
    expect(page.locator(".curve .closing title")).to_have_text(f"Closing value: risk {closing:.2f}")
    mark = page.locator(".curve .closing path").bounding_box()
    point = page.locator(".curve a[data-seq] circle").last.bounding_box()
    assert mark is not None
    assert point is not None
    assert mark["x"] > point["x"]
    assert mark["y"] < point["y"], "a higher risk is drawn higher"


def test_lapsed_conditions_are_folded_on_the_session_page(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, to="/sessions/over").page
    page.locator("#scored > summary").click()
    alerts = page.get_by_role("region", name="Alert", exact=True)
    assert set(alerts.locator(".state").all_inner_texts()) <= {"firing", "acknowledged", "resolved"}
    folded = page.locator("details.lapsed")
    expect(folded.locator("summary")).to_contain_text("ended before the rule fired")
    expect(folded.locator("li").first).to_be_hidden()
    assert page.locator(".alert-span.lapsed, .alert-span.pending").count() == 0


def test_waiting_disputes_are_counted_and_show_their_turn(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web).page
    badge = page.get_by_role("navigation", name="Main").get_by_role("link", name="Disputes")
    expect(badge).to_have_text("Disputes 1 waiting")
    badge.click()
    card = page.locator(".disputes > li").first
    expect(card.locator(".disputed-turns li")).to_have_count(2)
    expect(card.locator(".is-disputed .caption")).to_have_text("turn 3")
    assert card.locator(".is-disputed .text").inner_text()
    expect(card.locator("blockquote")).to_have_text("I asked about her garden.")
    theirs = open_tab(web, "cleo").page
    expect(theirs.locator(".frame nav .count")).to_have_count(0)


def test_times_are_the_readers_with_utc_in_the_title(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/over", timezone_id="Asia/Tokyo").page
    time = page.locator("#turn-3 time")
    moment = time.get_attribute("datetime")
    assert moment is not None
    expect(time).to_have_attribute("title", f"{moment[:10]} {moment[11:19]} UTC")
    assert time.inner_text() != moment[11:19]
    expect(page.locator("#zone")).to_have_text(
        "Times are in Asia/Tokyo (GMT+9); point at one to see it in UTC."
    )
    still = open_tab(web, to="/sessions/over", java_script_enabled=False).page
    expect(still.locator("#turn-3 time")).to_have_text(f"{moment[11:19]} UTC")
    expect(still.locator("#zone")).to_have_text("Times are in UTC.")


def test_a_review_is_due_at_the_end_of_the_readers_day(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/over/reviews", timezone_id="Asia/Tokyo").page
    expect(page.get_by_label("Due at the end of (Asia/Tokyo)")).to_be_visible()
    page.locator("[name=due]").fill("2100-01-02")
    page.get_by_role("button", name="Assign", exact=True).click()
    due = page.get_by_role("region", name="Reviews of this session").locator("time").first
    expect(due).to_have_text("2 Jan 2100, 23:59")
    expect(due).to_have_attribute("title", "2100-01-02 14:59:59 UTC")


def test_the_sign_in_page_says_what_this_is_and_whom_to_ask(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, None).open("/sign-in")
    expect(page.locator("main")).to_contain_text("Rapport follows counselling")
    expect(page.locator("main")).to_contain_text("Rapport administrator creates accounts")


def test_a_filter_applies_at_once_and_keeps_the_focus(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions").page
    expect(page.get_by_role("button", name="Show", exact=True)).to_have_count(0)
    page.get_by_label("Domain").focus()
    page.get_by_label("Domain").select_option("counselling")
    expect(page).to_have_url(re.compile("domain=counselling"))
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.get_by_label("Domain")).to_be_focused()
    still = open_tab(web, java_script_enabled=False).page
    still.get_by_label("Domain").select_option("counselling")
    still.get_by_role("button", name="Show", exact=True).click()
    expect(still.locator(".card")).to_have_count(1)


@pytest.mark.parametrize(("path", "field"), [("/", "Domain"), ("/sessions", "Order")])
def test_filters_are_folded_on_a_phone(
    web: ScoredWeb, open_tab: OpenTab, path: str, field: str
) -> None:
    page = open_tab(web, to=path, viewport=PHONE).page
    expect(page.get_by_label(field)).to_be_hidden()
    page.locator(".folding > summary").click()
    expect(page.get_by_label(field)).to_be_visible()
    wide = page.evaluate("""() => [...document.querySelectorAll("main *")].filter(
      (one) => one.getBoundingClientRect().right > innerWidth + 1 &&
        !one.closest(".scrolls table, .unseen")).map((one) => one.outerHTML.slice(0, 60))""")
    assert wide == []
    still = open_tab(web, to=path, viewport=PHONE, java_script_enabled=False).page
    expect(still.get_by_label(field)).to_be_visible()
    laptop = open_tab(web, to=path).page
    expect(laptop.get_by_label(field)).to_be_visible()
    expect(laptop.locator(".folding > summary")).to_be_hidden()


def test_the_header_is_one_line_on_a_laptop(web: ScoredWeb, open_tab: OpenTab) -> None:
    """Also with work waiting, for the longest navigation and a long name."""
    page = open_tab(web, to="/sessions", viewport={"width": 1280, "height": 800}).page
    page.evaluate("""() => {
      const [first] = document.querySelectorAll(".frame nav .count");
      document.querySelector('.frame nav a[href="/reviews"]').append(first.cloneNode(true));
      document.querySelector(".frame .who a").textContent = "evangelina-of-the-night-shift";
    }""")
    tops = page.locator(".frame nav a, .frame-end button, .frame .brand").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(box => box.top + box.height / 2)"
    )
    assert max(tops) - min(tops) < 4
    box = page.locator("header.frame").bounding_box()
    assert box is not None
    assert box["height"] < 60
    expect(page.get_by_role("button", name="Light", exact=True)).to_be_visible()


def test_the_phones_header_is_low_and_shows_the_current_page(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, to="/exports", viewport=PHONE).page
    box = page.locator("header.frame").bounding_box()
    assert box is not None
    assert box["height"] <= 100
    expect(page.locator(".frame nav [aria-current]")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Sign out")).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
