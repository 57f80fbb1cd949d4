"""The live wall, in a browser before a real web process and a real broker."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser.conftest import NewStage, Sit
from tests.web.browser.stage import Stage, sample_turns, turn

BAD = "customer-service-02"
CALM = "counselling-05"
HALF = timedelta(minutes=10)


@pytest.fixture(scope="module")
def stage(new_stage: NewStage, live_broker: str) -> Stage:
    stage = new_stage(broker=live_broker, changes={"topic_prefix": "wall"})
    stage.play(CALM, "calm", ago=HALF, until=8)
    stage.play(BAD, "bad", ago=HALF, until=12)
    stage.play("peer-support-05", "middling", ago=HALF, until=10)
    stage.play("counselling-10", "over", ago=timedelta(hours=2))
    stage.go_live()
    return stage


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


def test_the_worst_session_comes_first_and_one_that_is_over_is_not_there(
    stage: Stage, sit: Sit
) -> None:
    page = sit(stage).page
    assert sessions(page)[0] == "bad"
    assert "over" not in sessions(page)
    assert risks(page)[1:] == sorted(risks(page)[1:], reverse=True)


def test_a_card_says_risk_in_number_shape_and_words(stage: Stage, sit: Sit) -> None:
    card = sit(stage).page.locator("[data-session=bad]")
    expect(card.locator(".value")).to_have_text(re.compile(r"^0\.\d\d$"))
    expect(card.locator(".triangle")).to_be_visible()
    expect(card.locator(".ring")).to_be_hidden()
    expect(card.locator(".standing")).to_have_text(re.compile(r"above the threshold for \d+ min"))
    expect(card.locator(".alert-badge")).to_have_text(re.compile("firing: low-empathy, "))
    said = card.locator(".sparkline").get_attribute("aria-label")
    assert re.match(r"Risk after \d counsellor turns: began at 0\.\d\d", said or "")


def test_filters_work_without_javascript(stage: Stage, sit: Sit) -> None:
    page = sit(stage, java_script_enabled=False).page
    page.select_option("[name=domain]", "peer-support")
    page.click("text=Show")
    page.wait_for_url("**/?*domain=peer-support")
    assert sessions(page) == ["middling"]
    page.select_option("[name=domain]", "")
    page.select_option("[name=team]", "help-desk-b")
    page.click("button:has-text('Show')")
    page.wait_for_url("**/?*team=help-desk-b*")
    assert sessions(page) == ["bad"]


def test_a_team_without_live_sessions_is_all_quiet(stage: Stage, sit: Sit) -> None:
    page = sit(stage).open("/?team=nobody")
    expect(page.get_by_text("All quiet")).to_be_visible()
    assert sessions(page) == []


def test_scores_move_a_card_and_the_order_follows(stage: Stage, sit: Sit) -> None:
    sitting = sit(stage)
    sitting.is_live()
    page = sitting.page
    before = page.locator("[data-session=middling] .turns").inner_text()
    stage.commit_and_tell(turn("middling", 11, "ok."), turn("middling", 12, "i feel so alone"))
    expect(page.locator("[data-session=middling] .turns")).not_to_have_text(before)
    for seq in range(13, 19):
        words = "Hm." if seq % 2 else "please, i cannot go on like this"
        stage.commit_and_tell(turn("middling", seq, words))
    expect(page.locator("[data-session=middling] .turns")).to_have_text("19")
    page.wait_for_function(
        """() => {
          const risks = [...document.querySelectorAll("#cards > .card:not(.calls)")].map(
            (card) => Number(card.dataset.risk));
          return risks.every((risk, place) => !place || risk <= risks[place - 1]);
        }"""
    )
    points = page.locator("[data-session=middling] polyline").get_attribute("points") or ""
    assert len(points.split()) == 8, "one point for each counsellor turn from the second answer on"


def test_a_live_card_equals_what_a_reload_shows(stage: Stage, sit: Sit) -> None:
    sitting = sit(stage)
    sitting.is_live()
    page = sitting.page
    stage.commit_and_tell(turn("calm", 9, "What would help you most tonight?"))
    expect(page.locator("[data-session=calm] .turns")).to_have_text("10")
    read = """card => [card.className, card.querySelector(".value").textContent,
      card.querySelector("polyline").getAttribute("points"),
      card.querySelector(".sparkline").getAttribute("aria-label")]"""
    moved = page.locator("[data-session=calm]").evaluate(read)
    page.reload()
    assert page.locator("[data-session=calm]").evaluate(read) == moved


def test_a_session_appears_when_it_begins_and_leaves_when_it_ends(stage: Stage, sit: Sit) -> None:
    sitting = sit(stage)
    sitting.is_live()
    page = sitting.page
    events = sample_turns("counselling-03", "fresh", stage.now() - HALF)
    count = int(page.locator("#count").inner_text())
    stage.commit_and_tell(*events[:3])
    expect(page.locator("[data-session=fresh]")).to_be_visible()
    expect(page.locator("#count")).to_have_text(str(count + 1))
    stage.commit_and_tell(*events[3:])
    expect(page.locator("[data-session=fresh]")).to_have_count(0)
    expect(page.locator("#count")).to_have_text(str(count))


def test_a_card_drawn_before_the_counsellor_spoke_names_the_counsellor_afterwards(
    stage: Stage, sit: Sit
) -> None:
    sitting = sit(stage)
    sitting.is_live()
    page = sitting.page
    events = sample_turns("counselling-03", "nameless", stage.now() - HALF)
    stage.commit_and_tell(events[0])
    who = page.locator("[data-session=nameless] .who")
    expect(who).to_have_text("–")
    stage.commit_and_tell(*events[1:3])
    expect(who.locator("abbr")).to_have_text(re.compile(r"^[0-9a-f]{8}$"))
    moved = who.inner_html()
    page.reload()
    assert who.inner_html() == moved


def test_an_alert_of_a_session_that_is_over_leaves_no_error_on_the_console(
    stage: Stage, sit: Sit
) -> None:
    sitting = sit(stage)
    sitting.is_live()
    page = sitting.page
    with page.expect_response(re.compile("/sessions/gone/card$")) as asked:
        stage.commit_and_tell(*sample_turns(BAD, "gone", stage.now() - HALF))
        stage.commit_and_tell(turn("calm", 11, "and then?"))
    assert asked.value.status == 204
    expect(page.locator("[data-session=gone]")).to_have_count(0)


def test_an_alert_is_read_out_and_marks_its_card(stage: Stage, sit: Sit) -> None:
    sitting = sit(stage)
    sitting.is_live()
    page = sitting.page
    events = sample_turns(BAD, "second", stage.now() - HALF)
    stage.commit_and_tell(*events[:3])
    expect(page.locator("[data-session=second]")).to_be_visible()
    assert page.locator("#announcer").inner_text() == ""
    stage.commit_and_tell(*events[3:13])
    expect(page.locator("[data-session=second].calls")).to_be_visible()
    expect(page.locator("#announcer")).to_have_text(
        re.compile("^Alert: low-empathy fires in session second")
    )
    expect(page).to_have_title(re.compile(r"^\(\d\) Live sessions"))


def test_the_order_stands_still_under_the_pointer_and_offers_to_sort(
    stage: Stage, sit: Sit
) -> None:
    sitting = sit(stage)
    sitting.is_live()
    page = sitting.page
    page.locator("#cards > .card").first.hover()
    before = sessions(page)
    page.evaluate("""() => {
      [...document.querySelectorAll("#cards > .card")].forEach((card, place) => {
        card.dataset.risk = String(place / 100);
        card.classList.remove("calls");
      });
    }""")
    stage.commit_and_tell(turn("calm", 10, "i do not know"))
    expect(page.locator("#resort")).to_be_visible()
    assert sessions(page) == before
    page.click("#resort")
    page.wait_for_function("() => document.querySelector('#resort').hidden")
    assert sessions(page) != before


def test_a_pointer_that_lies_still_does_not_hold_the_order(stage: Stage, sit: Sit) -> None:
    sitting = sit(stage)
    sitting.is_live()
    page = sitting.page
    page.locator("#cards > .card").first.hover()
    last = page.locator("#cards > .card").last
    session = last.get_attribute("data-session")
    last.evaluate("card => { card.dataset.risk = '1'; card.classList.add('calls'); }")
    stage.commit_and_tell(turn("calm", 12, "i do not know"))
    expect(page.locator("#resort")).to_be_visible()
    expect(page.locator("#cards > .card").first).to_have_attribute("data-session", session or "")
    expect(page.locator("#resort")).to_be_hidden()


def test_a_broken_stream_is_said_and_mended(stage: Stage, sit: Sit) -> None:
    sitting = sit(stage)
    sitting.is_live()
    page = sitting.page
    stage.break_off()
    expect(page.locator("#stream-words")).to_have_text(re.compile(r"^Stale since \d\d:\d\d:\d\d$"))
    stage.commit(*sample_turns("counselling-07", "meanwhile", stage.now() - HALF)[:4])
    stage.start()
    expect(page.locator("#stream-words")).to_have_text("Live", timeout=40_000)
    expect(page.locator("[data-session=meanwhile]")).to_be_visible(timeout=20_000)
    sitting.complaints.clear()  # the browser notes each refused connection


def test_silence_is_told_from_quiet(stage: Stage, sit: Sit) -> None:
    sitting = sit(stage, None)
    page = sitting.page
    page.clock.install()
    sitting.sign_in("sue")
    sitting.is_live()
    stage.hold()
    try:
        page.clock.run_for(27_000)
        expect(page.locator("#stream-words")).to_have_text(re.compile("^Stale since "))
    finally:
        stage.go_on()
    page.clock.resume()
    expect(page.locator("#stream-words")).to_have_text("Live", timeout=40_000)
    sitting.complaints.clear()
