"""Rating a turn and a session in the transcript: clicks, keys, comments, without JavaScript."""

from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.accounts.people import People
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.work import disputes, ratings
from tests.web.browser.conftest import NewWeb, OpenTab
from tests.web.browser.scored_web import ScoredWeb

COUNTED = """() => {
  window.clicks = 0;
  addEventListener("click", (event) => { if (event.isTrusted) window.clicks += 1; }, true);
}"""


@pytest.fixture(scope="module")
def web(new_web: NewWeb) -> ScoredWeb:
    web = new_web()
    web.play_sample(
        "counselling-04", "rated", ago=timedelta(hours=1), counsellor="cleo@example.org"
    )
    web.start()
    return web


def given(web: ScoredWeb, person: str, seq: int | None) -> dict[str, int]:
    reader = People(web.store).find(person)
    assert reader is not None
    found = ratings.of_session(web.store, reader, "rated")
    return {one.head: one.value for one in found if one.seq == seq and one.person == person}


def card(page: Page, seq: int) -> str:
    return f"#turn-{seq} .rating-card"


def test_four_clicks_rate_all_mechanisms_and_the_neighbours_stay_in_view(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, to="/sessions/rated").page
    page.locator("#turn-5").scroll_into_view_if_needed()
    page.evaluate(COUNTED)
    page.locator("#turn-5 button.rate").click()
    form = page.locator(card(page, 5))
    expect(form).to_be_visible()
    for seq in (4, 6):
        expect(page.locator(f"#turn-{seq} .text")).to_be_in_viewport()
    for head, level in zip(MECHANISMS, (0, 1, 2), strict=True):
        form.locator(f"input[name={head}][value='{level}']").click()
    expect(form.locator(".rate-form .rating-status")).to_have_text(
        "Saved. The model's score does not change."
    )
    assert page.evaluate("clicks") == 4
    assert given(web, "sue", 5) == dict(zip(MECHANISMS, (0, 1, 2), strict=True))
    expect(page.locator("#turn-5 .human").first).to_have_text("sue: none")


def test_keys_choose_levels_and_a_comment_is_kept(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/rated").page
    page.locator("#turn-9 button.rate").focus()
    page.keyboard.press("Enter")
    for key in "210":
        page.keyboard.press(key)
    form = page.locator(card(page, 9))
    expect(form.locator(".rate-form .rating-status")).to_contain_text("Saved")
    assert given(web, "sue", 9) == dict(zip(MECHANISMS, (2, 1, 0), strict=True))
    form.get_by_label("Comment").fill("The <b>second</b> question came 1 turn too early.")
    form.get_by_role("button", name="Save rating").click()
    expect(form).to_be_hidden()
    expect(page.locator("#turn-9 button.rate")).to_be_focused()
    expect(page.locator("#turn-9 .comments .noted")).to_have_text(
        "The <b>second</b> question came 1 turn too early."
    )
    page.locator("#turn-9 button.rate").click()
    page.keyboard.press("Escape")
    expect(form).to_be_hidden()
    theirs = open_tab(web, "cleo", to="/sessions/rated").page
    expect(theirs.locator("#turn-9 .comments")).to_contain_text("came 1 turn too early")


def test_a_turn_is_rated_with_four_clicks_without_javascript(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, to="/sessions/rated", java_script_enabled=False).page
    form = page.locator(card(page, 7))
    expect(form).to_be_visible()
    for head in MECHANISMS:
        form.locator(f"input[name={head}][value='1']").check()
    form.get_by_role("button", name="Save rating").click()
    assert page.url.endswith("#turn-7")
    assert given(web, "sue", 7) == dict.fromkeys(MECHANISMS, 1)
    expect(page.locator(f"{card(page, 7)} input:checked")).to_have_count(3)


def test_the_session_is_rated_with_a_comment(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/rated").page
    rating = page.get_by_role("region", name="Rate the session")
    rating.locator("input[value='4']").click()
    rating.get_by_label("Comment").fill("Warm from the beginning.")
    rating.get_by_role("button", name="Save rating").click()
    expect(rating.locator(".comments")).to_contain_text("sue rated it 4 of 5")
    expect(rating.locator(".comments .noted")).to_have_text("Warm from the beginning.")
    assert given(web, "sue", None) == {"rating": 4}


def test_a_counsellor_disputes_a_score_in_the_card_and_sees_a_refusal(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    tab = open_tab(web, "cleo", to="/sessions/rated")
    page = tab.page
    page.locator("#turn-5 button.rate").click()
    form = page.locator("#turn-5 .rating-card")
    form.locator("summary").click()
    form.get_by_label("Reason").fill("I named her fear.")
    form.get_by_role("button", name="Send dispute").click()
    status = form.locator(".dispute-form .rating-status")
    expect(status).to_contain_text("a supervisor will answer")
    [made] = disputes.find(web.store, ALL_SESSIONS)
    assert (made.seq, made.note) == (5, "I named her fear.")
    form.get_by_role("button", name="Send dispute").click()
    expect(status).to_contain_text("you have already disputed this score")
    tab.console_errors.clear()  # the browser notes the 409
