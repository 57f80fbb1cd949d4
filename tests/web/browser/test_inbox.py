"""The alert inbox: reasons and actions, with and without JavaScript."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from tests.web.browser.conftest import NewWeb, OpenTab
from tests.web.browser.scored_web import ScoredWeb, sample_session_events

BAD = "customer-service-02"
HALF = timedelta(minutes=10)


@pytest.fixture(scope="module")
def web(new_web: NewWeb, live_broker: str) -> ScoredWeb:
    web = new_web(broker=live_broker, changes={"topic_prefix": "inbox"})
    for name in ("first", "second", "third", "fourth", "fifth"):
        web.play_sample(BAD, name, ago=HALF, until=20)
    web.play_sample("peer-support-08", "over", ago=timedelta(hours=1))
    web.start_live()
    return web


def alert_of(session: str) -> str:
    return f".alert:has(.where bdi:text-is('{session}'))"


def test_an_alert_shows_its_reason_and_the_exchanges_it_is_about(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, to="/alerts?state=firing").page
    alert = page.locator(alert_of("first"))
    expect(alert.locator(".reason")).to_have_text(
        re.compile(r"^Little empathy lately \(risk 0\.\d\d\): .*usual")
    )
    names = alert.locator(".numbers dt").all_inner_texts()
    assert "threshold" in names
    assert "low-empathy risk" in names
    assert "risk" not in names, "values under names of earlier releases are for programs"
    assert not re.search(r"[._]", "".join(names)), "names of variables are not for people"
    exchange = alert.locator(".exchanges li").first
    words = exchange.locator(".client q").inner_text()
    expect(exchange.locator(".counsellor q").first).not_to_be_empty()
    expect(alert.locator(".expected")).to_contain_text("words that acknowledge the trouble")
    exchange.locator(".client a").click()
    expect(page).to_have_url(re.compile(r"/sessions/first\?page=0#turn-\d+$"))
    turn = page.locator(f"#turn-{page.url.rpartition('-')[2]}")
    expect(turn).to_be_in_viewport()
    expect(turn.locator(".text")).to_contain_text(words[:60])


def test_each_state_has_a_list_and_a_count(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/alerts?state=firing").page
    count = int(page.locator(".tabs a[aria-current] .count").inner_text())
    assert page.locator(".alert").count() == count
    page.locator(".tabs a", has_text="Resolved").click()
    expect(page.locator(alert_of("over"))).to_be_visible()
    expect(page.locator(alert_of("over")).locator("summary", has_text="Acknowledge")).to_have_count(
        0
    )


def test_acknowledging_works_without_javascript_and_needs_a_reason(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, to="/alerts?state=firing", java_script_enabled=False).page
    alert = page.locator(alert_of("first"))
    alert.locator("summary", has_text="Acknowledge").click()
    answers = alert.locator("details[open] fieldset button").all_inner_texts()
    assert [each.strip() for each in answers] == [
        "Right",
        "False alarm",
        "Unclear",
    ]
    buttons = alert.locator("details[open] fieldset button")
    looks = {
        buttons.nth(n).evaluate("each => getComputedStyle(each).backgroundColor")
        for n in range(buttons.count())
    }
    assert len(looks) == 1, "no answer is suggested"
    expect(page.locator("main")).not_to_contain_text("Precision")
    alert.get_by_label("Note, for colleagues").first.fill("called <b>the desk</b>")
    alert.get_by_role("button", name="Right").click()
    expect(page).to_have_url(re.compile(r"/alerts\?state=firing$"))
    expect(page.locator(alert_of("first"))).to_have_count(0)
    page.locator(".tabs a", has_text="Acknowledged").click()
    acted = page.locator(alert_of("first")).locator(".actions")
    expect(acted).to_contain_text("sue acknowledged it, right")
    expect(acted.locator(".noted")).to_have_text("called <b>the desk</b>")


def test_precision_is_computed_from_reasons_with_n_and_interval(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, to="/alerts?state=firing").page
    alert = page.locator(alert_of("second"))
    alert.locator("summary", has_text="Resolve").click()
    alert.locator("details[open] [value=false-alarm]").check()
    alert.get_by_role("button", name="Resolve", exact=True).click()
    expect(page.locator(alert_of("second"))).to_have_count(0)
    page.goto(f"{web.url}/rules")
    row = page.get_by_role("row", name=re.compile("^low-empathy [0-9]"))
    expect(row).to_contain_text("50 %")
    expect(row).to_contain_text("n = 2")
    expect(row).to_contain_text("9–91 %")


def test_an_alert_that_resolved_by_itself_is_judged_with_one_click(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, to="/alerts?state=review").page
    alert = page.locator(alert_of("over")).first
    expect(alert.locator("header .state.resolved")).to_be_visible()
    before = page.locator(".alert").count()
    alert.get_by_role("button", name="False alarm", exact=True).first.click()
    expect(page.locator(".alert")).to_have_count(before - 1)
    page.locator(".tabs a", has_text="Resolved").click()
    judged = page.locator(f"{alert_of('over')}:has(.state.judged)")
    expect(judged.locator(".state.judged")).to_have_text("false alarm")
    expect(judged.locator(".actions")).to_contain_text("sue judged it, false alarm")
    expect(judged.locator("summary", has_text="Change the judgement")).to_be_visible()
    page.goto(f"{web.url}/rules")
    row = page.get_by_role("row", name=re.compile("^low-empathy [0-9]"))
    expect(row).to_contain_text("n = 3")


def test_conditions_that_never_fired_are_not_alerts(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/alerts?state=unfired").page
    rule = page.get_by_role("region", name="silence-after-distress")
    expect(rule).to_be_visible()
    expect(page.locator(".alert")).to_have_count(0)
    lapsed = rule.locator("details li").first
    expect(lapsed).to_be_hidden()
    rule.locator("summary", has_text="lapsed").click()
    expect(lapsed).to_be_visible()
    lapsed.get_by_role("link").first.click()
    expect(page.locator(".reason")).to_contain_text("ended before the rule fired")
    expect(page.locator("main")).not_to_contain_text("has waited")
    expect(page.locator(".numbers")).not_to_contain_text("has waited")
    for button in ("Acknowledge", "Resolve", "Right"):
        expect(page.get_by_role("button", name=button)).to_have_count(0)


def test_numbers_on_other_scales_than_probabilities_are_labelled(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, to="/alerts?state=resolved").page
    numbers = page.locator(".alert .numbers > div")
    values = numbers.locator("dd").all_inner_texts()
    for label, value in zip(numbers.locator("dt").all_inner_texts(), values, strict=True):
        on_scale = re.fullmatch(r"[01]\.\d\d", value) or label in ("turns", "threshold")
        assert on_scale or re.search(r"\d (s|0–100|−?\d to \d|0–\d)$", value), (label, value)


def test_a_mute_is_shown_and_can_be_ended(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/alerts?state=firing").page
    alert = page.locator(alert_of("third"))
    alert.locator("summary", has_text="Mute").click()
    alert.locator("details[open] [name=minutes]").select_option("60")
    alert.locator("details[open] [name=reason]").fill("known caller")
    alert.get_by_role("button", name="Mute", exact=True).click()
    muted = page.get_by_role("region", name="Muted")
    expect(muted).to_contain_text("low-empathy in third, until")
    expect(muted).to_contain_text("known caller")
    expect(page.locator(alert_of("third")).locator(".state.muted")).to_be_visible()
    muted.get_by_role("button").click()
    expect(page.get_by_role("region", name="Muted")).to_contain_text("Nothing is muted")


def test_a_note_is_shown_with_its_author(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/alerts?state=firing").page
    alert = page.locator(alert_of("fourth"))
    alert.locator("summary", has_text="Note").click()
    alert.locator("details[open] textarea").fill("second time this week")
    alert.get_by_role("button", name="Save note").click()
    expect(page.locator(alert_of("fourth")).locator(".actions")).to_contain_text("sue added a note")


def test_a_new_alert_appears_and_is_announced(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web, to="/alerts?state=firing")
    tab.wait_until_live()
    page = tab.page
    web.commit_and_publish(*sample_session_events(BAD, "newest", web.now() - HALF)[:21])
    expect(page.locator(alert_of("newest"))).to_be_visible()
    expect(page.locator("#announcer")).to_contain_text("is firing in session newest")


def test_an_open_form_is_not_replaced(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web, to="/alerts?state=firing")
    tab.wait_until_live()
    page = tab.page
    alert = page.locator(alert_of("fifth"))
    alert.locator("summary", has_text="Note").click()
    alert.locator("details[open] textarea").fill("half a sentence")
    web.commit_and_publish(*sample_session_events(BAD, "later", web.now() - HALF)[:21])
    expect(page.locator("#changed")).to_be_visible()
    expect(alert.locator("details[open] textarea")).to_have_value("half a sentence")
    page.click("#changed")
    expect(page.locator(alert_of("later"))).to_be_visible()


def test_a_colleagues_action_appears_immediately(web: ScoredWeb, open_tab: OpenTab) -> None:
    mine = open_tab(web, to="/alerts?state=firing")
    mine.wait_until_live()
    web.commit_and_publish(*sample_session_events(BAD, "shared", web.now() - HALF)[:21])
    expect(mine.page.locator(alert_of("shared"))).to_be_visible()
    theirs = open_tab(web, to="/alerts?state=firing").page
    alert = theirs.locator(alert_of("shared"))
    alert.locator("summary", has_text="Acknowledge").click()
    alert.locator("details[open] [value=not-now]").click()
    expect(mine.page.locator(alert_of("shared"))).to_have_count(0)


def test_counsellors_may_not_open_the_inbox(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web, "cleo")
    page = tab.open("/alerts")
    expect(page.get_by_role("heading", level=1)).to_have_text("You do not have access")
    tab.console_errors.clear()  # the browser notes the 403


def test_a_draft_of_the_rules_is_checked_while_typing_and_tried(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, to="/rules/draft").page
    text, checked = page.locator("#text"), page.locator("#checked")
    before = text.input_value()
    text.fill(before.replace("when: low_empathy_risk", "when: riks", 1))
    problem = checked.locator("li button")
    expect(problem).to_contain_text("is `low_empathy_risk` meant?")
    problem.click()
    place = text.evaluate("area => area.selectionStart")
    assert text.input_value()[place:].startswith("riks")
    text.fill(before)
    expect(checked).to_have_text(re.compile(r"No errors; \d rules\."))
    page.get_by_role("button", name="Try", exact=True).click()
    row = page.locator("#trial tbody tr", has_text="low-empathy").first
    expect(row).to_contain_text("not enough answers")
    assert text.input_value() == before
