"""The wall of live sessions, with a real web process and broker."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.browser.conftest import UNTIL_SORTED_MS, NewWeb, OpenTab
from tests.web.browser.scored_web import ScoredWeb, sample_session_events, turn

BAD = "customer-service-02"
CALM = "counselling-05"
HALF = timedelta(minutes=10)


@pytest.fixture(scope="module")
def web(new_web: NewWeb, live_broker: str) -> ScoredWeb:
    web = new_web(broker=live_broker, changes={"topic_prefix": "wall"})
    web.play_sample(CALM, "calm", ago=HALF, until=8)
    web.play_sample(BAD, "bad", ago=HALF, until=14)
    web.play_sample("peer-support-02", "middling", ago=HALF, until=10)
    web.play_sample("counselling-10", "over", ago=timedelta(hours=2))
    web.start_live()
    return web


def sessions(page: Page) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        "#cards > .card", "cards => cards.map(card => card.dataset.session)"
    )
    return found


def risks(page: Page) -> list[float]:
    found: list[float] = page.eval_on_selector_all(
        "#cards > .card", "cards => cards.map(card => Number(card.dataset.risk))"
    )
    return found


def test_the_most_urgent_session_is_first_and_ended_ones_are_absent(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web).page
    assert sessions(page)[0] == "bad"
    assert "over" not in sessions(page)
    assert risks(page)[1:] == sorted(risks(page)[1:], reverse=True)


def test_a_card_shows_risk_as_number_shape_and_text(web: ScoredWeb, open_tab: OpenTab) -> None:
    card = open_tab(web).page.locator("[data-session=bad]")
    expect(card.locator(".value")).to_have_text(re.compile(r"^0\.\d\d$"))
    expect(card.locator(".triangle")).to_be_visible()
    expect(card.locator(".ring")).to_be_hidden()
    expect(card.locator(".standing")).to_have_text(re.compile(r"above the threshold for\s+\d+ min"))
    expect(card.locator(".alert-badge")).to_have_text(re.compile("firing: low-empathy,"))
    label = card.locator(".sparkline").get_attribute("aria-label")
    assert re.match(r"Risk after \d counsellor turns: began at 0\.\d\d", label or "")


def test_filters_work_without_javascript(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, java_script_enabled=False).page
    page.select_option("[name=domain]", "peer-support")
    page.click("text=Show")
    page.wait_for_url("**/?*domain=peer-support*")
    assert sessions(page) == ["middling"]
    page.select_option("[name=domain]", "")
    page.select_option("[name=team]", "help-desk-b")
    page.click("button:has-text('Show')")
    page.wait_for_url("**/?*team=help-desk-b*")
    assert sessions(page) == ["bad"]


def test_a_team_without_live_sessions_has_an_empty_wall(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web).open("/?team=nobody")
    expect(page.get_by_text("No live sessions")).to_be_visible()
    assert sessions(page) == []


def test_new_scores_update_a_card_and_the_order(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web)
    tab.wait_until_live()
    page = tab.page
    before = page.locator("[data-session=middling] .turns").inner_text()
    web.commit_and_publish(turn("middling", 11, "ok."), turn("middling", 12, "i feel so alone"))
    expect(page.locator("[data-session=middling] .turns")).not_to_have_text(before)
    for seq in range(13, 19):
        words = "Hm." if seq % 2 else "please, i cannot go on like this"
        web.commit_and_publish(turn("middling", seq, words))
    expect(page.locator("[data-session=middling] .turns")).to_have_text("19")
    page.wait_for_function(
        """() => {
          const risks = [...document.querySelectorAll("#cards > .card:not(.unanswered)")].map(
            (card) => Number(card.dataset.risk));
          return risks.every((risk, place) => !place || risk <= risks[place - 1]);
        }""",
        timeout=UNTIL_SORTED_MS,
    )
    points = page.locator("[data-session=middling] polyline").get_attribute("points") or ""
    assert len(points.split()) == 8, "one point for each counsellor turn from the second answer on"


def test_a_live_card_equals_what_a_reload_shows(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web)
    tab.wait_until_live()
    page = tab.page
    web.commit_and_publish(turn("calm", 9, "What would help you most tonight?"))
    expect(page.locator("[data-session=calm] .turns")).to_have_text("10")
    read = """card => [card.className, card.querySelector(".value").textContent,
      card.querySelector("polyline").getAttribute("points"),
      card.querySelector(".sparkline").getAttribute("aria-label")]"""
    moved = page.locator("[data-session=calm]").evaluate(read)
    page.reload()
    assert page.locator("[data-session=calm]").evaluate(read) == moved


def test_a_card_appears_when_a_session_begins_and_disappears_when_it_ends(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    tab = open_tab(web)
    tab.wait_until_live()
    page = tab.page
    events = sample_session_events("counselling-03", "fresh", web.now() - HALF)
    count = int(page.locator("#count").inner_text())
    web.commit_and_publish(*events[:3])
    expect(page.locator("[data-session=fresh]")).to_be_visible()
    expect(page.locator("#count")).to_have_text(str(count + 1))
    web.commit_and_publish(*events[3:])
    expect(page.locator("#count")).to_have_text(str(count))
    expect(page.locator("[data-session=fresh] .place")).to_contain_text("no longer live")
    expect(page.locator("[data-session=fresh]")).to_have_count(0, timeout=UNTIL_SORTED_MS)
    expect(page.locator("#count")).to_have_text(str(count))


def test_a_card_shows_the_counsellor_after_their_first_turn(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    tab = open_tab(web)
    tab.wait_until_live()
    page = tab.page
    events = sample_session_events("counselling-03", "nameless", web.now() - HALF)
    web.commit_and_publish(events[0])
    who = page.locator("[data-session=nameless] .who")
    expect(who).to_have_text("–")
    web.commit_and_publish(*events[1:3])
    expect(who.locator("a")).to_have_text(re.compile(r"^[a-z]{5}-[a-z]{5}$"))
    moved = who.inner_html()
    page.reload()
    assert who.inner_html() == moved


def test_an_alert_of_an_ended_session_causes_no_console_error(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    tab = open_tab(web)
    tab.wait_until_live()
    page = tab.page
    with page.expect_response(re.compile("/sessions/gone/card$")) as asked:
        web.commit_and_publish(*sample_session_events(BAD, "gone", web.now() - HALF))
        web.commit_and_publish(turn("calm", 11, "and then?"))
    assert asked.value.status == 204
    expect(page.locator("[data-session=gone]")).to_have_count(0)


def test_an_alert_is_announced_and_marks_its_card(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web)
    tab.wait_until_live()
    page = tab.page
    events = sample_session_events(BAD, "second", web.now() - HALF)
    web.commit_and_publish(*events[:3])
    expect(page.locator("[data-session=second]")).to_be_visible()
    assert page.locator("#announcer").inner_text() == ""
    web.commit_and_publish(*events[3:15])
    expect(page.locator("[data-session=second].unanswered")).to_be_visible()
    expect(page.locator("#announcer")).to_have_text(
        re.compile("^Alert: low-empathy is firing in session second")
    )
    expect(page).to_have_title(re.compile(r"^\(\d\) Live sessions"))


def test_the_order_is_kept_under_the_pointer_and_a_button_offers_to_sort(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    tab = open_tab(web)
    tab.wait_until_live()
    page = tab.page
    page.locator("#cards > .card").first.hover()
    before = sessions(page)
    page.evaluate("""() => {
      [...document.querySelectorAll("#cards > .card")].forEach((card, place) => {
        card.dataset.risk = String(place / 100);
        card.classList.remove("unanswered");
      });
    }""")
    web.commit_and_publish(turn("calm", 10, "i do not know"))
    expect(page.locator("#resort")).to_be_visible()
    assert sessions(page) == before
    page.click("#resort")
    page.wait_for_function("() => document.querySelector('#resort').hidden")
    assert sessions(page) != before


def test_an_idle_pointer_does_not_prevent_sorting(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web)
    tab.wait_until_live()
    page = tab.page
    page.locator("#cards > .card").first.hover()
    last = page.locator("#cards > .card").last
    session = last.get_attribute("data-session")
    last.evaluate("card => { card.dataset.risk = '1'; card.classList.add('unanswered'); }")
    web.commit_and_publish(turn("calm", 12, "i do not know"))
    expect(page.locator("#resort")).to_be_visible()
    front = page.locator("#cards > .card").first
    expect(front).to_have_attribute("data-session", session or "", timeout=UNTIL_SORTED_MS)
    expect(page.locator("#resort")).to_be_hidden()


def test_a_broken_stream_is_shown_as_stale_and_reconnects(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    tab = open_tab(web)
    tab.wait_until_live()
    page = tab.page
    web.kill()
    expect(page.locator("#stream-words")).to_have_text(re.compile(r"^Stale since \d\d:\d\d:\d\d$"))
    web.commit(*sample_session_events("counselling-07", "meanwhile", web.now() - HALF)[:4])
    web.start()
    expect(page.locator("#stream-words")).to_have_text("Live", timeout=40_000)
    expect(page.locator("[data-session=meanwhile]")).to_be_visible(timeout=20_000)
    tab.console_errors.clear()  # the browser notes each refused connection


def test_a_hung_server_is_detected(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web, None)
    page = tab.page
    page.clock.install()
    tab.sign_in("sue")
    tab.wait_until_live()
    web.pause()
    try:
        page.clock.run_for(27_000)
        expect(page.locator("#stream-words")).to_have_text(re.compile("^Stale since "))
    finally:
        web.resume()
    page.clock.resume()
    expect(page.locator("#stream-words")).to_have_text("Live", timeout=40_000)
    tab.console_errors.clear()


def test_a_wall_that_is_full_loads_no_cards_of_sessions_with_a_lower_risk(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    """They are many, and each of their turns would be a request."""
    shown = sample_session_events("counselling-03", "shown", web.now() - HALF)
    web.commit_and_publish(*shown[:3])
    tab = open_tab(web)
    page = tab.page
    page.route(re.compile(r"/$"), _as_full)
    page.reload()
    tab.wait_until_live()
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    count = page.locator("#count").inner_text()
    turns = page.locator("[data-session=shown] .turns")
    before = turns.inner_text()
    events = sample_session_events("counselling-03", "below", web.now() - HALF)
    web.commit_and_publish(events[0])  # without a risk
    web.commit_and_publish(*shown[3:5])
    expect(turns).not_to_have_text(before)
    assert not [url for url in loaded if "below" in url]
    expect(page.locator("#count")).to_have_text(count)
    page.unroute(re.compile(r"/$"))


def _as_full(route: Route) -> None:
    """The wall as it is when there are more sessions than it shows."""
    answer = route.fetch()
    body = answer.text()
    most = body.count('<li class="card')
    route.fulfill(
        response=answer, body=body.replace('id="cards"', f'id="cards" data-most="{most}"')
    )
