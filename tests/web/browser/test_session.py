"""The session page: evidence, context windows, the curve, live turns, hostile text."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from tests.web.browser.conftest import NewWeb, OpenTab
from tests.web.browser.scored_web import ScoredWeb, scorer, turn

HALF = timedelta(minutes=10)
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)> & \"quotes\" 'too'"
ARABIC = "لا أعرف ماذا أفعل الآن "


@pytest.fixture(scope="module")
def web(new_web: NewWeb, live_broker: str) -> ScoredWeb:
    web = new_web(broker=live_broker, changes={"topic_prefix": "session"})
    web.play_sample("counselling-04", "warm", ago=HALF, until=20)
    web.play_sample("peer-support-03", "bad", ago=HALF, until=12)
    web.play_sample("peer-support-06", "over", ago=timedelta(hours=1))
    long = (ARABIC * 3000)[:25_000]
    assert len(long.encode()) > 40_000
    web.commit(
        turn("hostile", 0, SCRIPT),
        turn("hostile", 1, f"I am sorry. {SCRIPT}"),
        turn("hostile", 2, long),
        turn("hostile", 3, "W" * 3000),
        turn("hostile", 4, "first line\n\n    indented <b>third</b>"),
    )
    web.commit(*[turn("endless", seq, f"This is what I say at {seq}.") for seq in range(450)])
    web.start_live()
    return web


def open_scores(page: Page) -> None:
    """Unfold how the session and all turns of the page were scored."""
    page.locator("#scored, .how").evaluate_all("all => all.forEach(one => { one.open = true; })")


def text_of(page: Page, seq: int) -> str:
    """A turn's text as shown, without the badges of its marks."""
    found: str = page.locator(f"#turn-{seq} .text").evaluate(
        """text => { const copy = text.cloneNode(true);
          copy.querySelectorAll(".badge").forEach(badge => badge.remove());
          return copy.textContent; }"""
    )
    return found


def test_a_rationale_is_marked_by_line_style_and_letters(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/warm").page
    marked = page.locator(".text mark.ex").first
    assert marked.evaluate("mark => getComputedStyle(mark).textDecorationLine") == "none"
    open_scores(page)
    style = marked.evaluate("mark => getComputedStyle(mark).textDecorationStyle")
    assert style == "dotted"
    styles = page.eval_on_selector_all(
        ".legend mark", "marks => marks.map(mark => getComputedStyle(mark).textDecorationStyle)"
    )
    assert styles == ["solid", "dashed", "dotted"]
    level = page.locator(".turn:has(.text mark.ex) .level[data-head=explorations] .word").first
    expect(level).to_have_text(re.compile("weak|strong"))
    expect(page.locator(".text:has(mark.ex) .badge.ex").first).to_have_text("EX")


def test_a_head_that_abstained_shows_no_number(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/warm").page
    abstained = page.locator(".level:has(.abstained) dd")
    assert abstained.count() > 0
    for words in abstained.all_text_contents():
        assert words.strip() == "abstained"


def test_expressed_and_perceived_scores_are_separate(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/warm").page
    open_scores(page)
    scored = page.locator("#turn-9")
    scored.scroll_into_view_if_needed()  # content-visibility: text off screen has no innerText
    expect(scored.get_by_role("group", name="Expressed")).to_be_visible()
    perceived = scored.get_by_role("group", name="Perceived")
    # Of the bundle's three groups, the one that agrees with every rating it was compared with.
    expect(perceived.locator("dt")).to_have_text(["Engagement"], use_inner_text=True)
    for words in perceived.locator(".validity").all_inner_texts():
        assert re.fullmatch(r"r = -?0\.\d\d with .+", words)
    assert perceived.locator(".validity").count() == 1
    for words in perceived.locator(".p").all_inner_texts():
        assert re.fullmatch(r"[01]\.\d\d", words)


def test_the_window_is_highlighted_on_hover_and_focus(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/warm").page
    page.locator("#turn-9").hover()
    assert page.locator(".in-window").count() == 0, "windows are part of the scores"
    open_scores(page)
    expect(page.locator("#window-9")).to_have_text("turns 6, 7, 8 before; 10, 11, 12 after")
    page.locator("#turn-9 .window").hover()
    lit = "turns => turns.map(turn => Number(turn.dataset.seq))"
    assert page.eval_on_selector_all(".in-window", lit) == [6, 7, 8, 10, 11, 12]
    page.mouse.move(0, 0)
    assert page.eval_on_selector_all(".in-window", lit) == []
    page.locator("#turn-11 .window").focus()
    assert page.eval_on_selector_all(".in-window", lit) == [8, 9, 10, 12, 13, 14]


def test_a_provisional_score_has_no_following_turns_in_its_window(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, to="/sessions/warm").page
    newest = page.locator(".turn.counsellor").last
    expect(newest.locator(".stage")).to_have_text("provisional")
    expect(newest.locator(".window-words")).not_to_have_text(re.compile("after"))


def test_a_point_of_the_curve_links_to_its_turn(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/warm").page
    open_scores(page)
    page.locator(".curve a[data-seq='13']").click()
    expect(page).to_have_url(re.compile("#turn-13$"))
    expect(page.locator("#turn-13")).to_be_in_viewport()


def test_the_curve_is_one_tab_stop_with_arrow_keys(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/warm").page
    open_scores(page)
    assert page.locator(".curve a[data-seq][tabindex='0']").count() == 1
    page.locator(".curve a[data-seq][tabindex='0']").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Turn 5:")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#turn-5$"))
    expect(page.locator("#turn-5")).to_be_in_viewport()


def test_alerts_share_the_curves_axis(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/bad").page
    open_scores(page)
    span = page.locator(".alert-span[aria-label^='low-empathy,']")
    assert "low-empathy, firing: from turn" in (span.get_attribute("aria-label") or "")
    began = int(re.findall(r"from turn (\d+)", span.get_attribute("aria-label") or "")[0])
    begins = float((span.locator("rect").get_attribute("x") or "0").rstrip("%"))
    point = page.locator(f".curve a[data-seq='{began}'] circle")
    assert begins == pytest.approx(float((point.get_attribute("cx") or "0").rstrip("%")))


def test_new_turns_appear_and_final_scores_replace_provisional_ones(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    tab = open_tab(web, to="/sessions/bad")
    tab.wait_until_live()
    page = tab.page
    web.commit_and_publish(turn("bad", 13, "I hear how upsetting this is."))
    expect(page.locator("#turn-13 .stage")).to_have_text("provisional")
    expect(page.locator("#turns > li")).to_have_count(14)
    for seq in (14, 15, 16):
        web.commit_and_publish(turn("bad", seq, "Thank you."))
    expect(page.locator("#turn-13 .stage")).to_have_text("final")
    expect(page.locator("#turn-16")).to_have_count(1)
    seqs = page.eval_on_selector_all(
        "#turns > li", "turns => turns.map(turn => Number(turn.dataset.seq))"
    )
    assert seqs == list(range(17)), "each turn is shown once, in order"
    expect(page.locator(".curve a[data-seq='15']")).to_have_count(1)
    live = page.locator("#turn-13").evaluate("turn => turn.innerText")
    page.reload()
    assert page.locator("#turn-13").evaluate("turn => turn.innerText") == live


def test_focus_is_kept_when_a_turn_is_replaced(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web, to="/sessions/bad")
    tab.wait_until_live()
    page = tab.page
    open_scores(page)
    page.locator("#turn-15 .window").focus()
    for seq in (17, 18):
        web.commit_and_publish(turn("bad", seq, "And then?"))
    expect(page.locator("#turn-15 .stage")).to_have_text("final")
    assert page.evaluate("document.activeElement.closest('.turn').id") == "turn-15"


def test_a_script_in_a_turn_is_escaped(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web, to="/sessions/hostile")
    page = tab.page
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message) or dialog.dismiss())  # type: ignore[func-returns-value]
    assert text_of(page, 0) == SCRIPT
    assert text_of(page, 1).endswith(SCRIPT)
    assert text_of(page, 4) == "first line\n\n    indented <b>third</b>"
    tab.wait_until_live()
    web.commit_and_publish(turn("hostile", 5, f"Sorry. {SCRIPT}"))
    expect(page.locator("#turn-5")).to_be_visible()
    assert text_of(page, 5) == f"Sorry. {SCRIPT}"
    assert dialogs == []


def test_a_very_long_right_to_left_text_is_collapsed(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/hostile").page
    text = page.locator("#turn-2 .text")
    assert text.evaluate("text => getComputedStyle(text).direction") == "rtl"
    folded = page.locator("#turn-2").evaluate("turn => turn.offsetHeight")
    assert folded < 420
    page.locator("#turn-2 .all summary").click()
    assert page.locator("#turn-2").evaluate("turn => turn.offsetHeight") > 3 * folded
    assert len(text_of(page, 2)) == 25_000
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        wide = page.evaluate("""() => [...document.querySelectorAll("main *")].filter(
          (one) => one.getBoundingClientRect().right > innerWidth + 1 &&
            !one.closest(".scrolls table")).map((one) => one.outerHTML.slice(0, 60))""")
        assert wide == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_long_session_is_paged(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/endless").page
    assert page.locator("#turns > li").count() == 50, "an open session is shown at its last page"
    page.locator(".pages a", has_text="turns 0–199").first.click()
    expect(page.locator("#turns > li")).to_have_count(200)
    page.locator(".curve a[data-seq='449']").dispatch_event("click")
    expect(page).to_have_url(re.compile(r"\?page=2#turn-449$"))
    expect(page.locator("#turn-449")).to_be_in_viewport()
    expect(page.locator("#window-401")).to_have_text(
        "turns 398, 399, 400 before; 402, 403, 404 after"
    )


def test_opening_a_session_is_audited(web: ScoredWeb, open_tab: OpenTab) -> None:
    open_tab(web, "nora", to="/sessions/warm")
    newest = audit.latest(web.store, "warm")[0]
    assert (newest.person, newest.action) == ("nora", AuditAction.READ_TRANSCRIPT.value)


def test_a_session_of_another_team_is_not_found(web: ScoredWeb, open_tab: OpenTab) -> None:
    tab = open_tab(web, "nora")
    page = tab.open("/sessions/bad")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    tab.console_errors.clear()  # the browser notes the 404


def test_the_page_has_the_disclaimer_and_the_model(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, to="/sessions/warm").page
    expect(page.locator("footer")).to_contain_text(
        "not a diagnosis, risk assessment or performance rating"
    )
    expect(page.locator(".model")).to_have_text(f"scored by {scorer().bundle_id}")


def test_the_new_turns_button_is_shown_until_they_are_in_view(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    web.play_sample("counselling-05", "growing", ago=HALF, until=8)
    tab = open_tab(web, to="/sessions/growing")
    tab.wait_until_live()
    page = tab.page
    page.locator("#turns").evaluate("turns => { turns.scrollTop = 0; }")
    expect(page.locator("#turn-0")).to_be_in_viewport()
    web.commit_and_publish(turn("growing", 9, "What would help you most tonight?"))
    expect(page.locator("#new-below")).to_be_visible()
    page.locator("#turns > li").last.scroll_into_view_if_needed()
    expect(page.locator("#new-below")).to_be_hidden()
    web.commit_and_publish(turn("growing", 10, "i do not know"))
    expect(page.locator("#turn-10")).to_be_in_viewport()
    expect(page.locator("#new-below")).to_be_hidden()


def test_a_note_is_sent_and_its_receipt_appears_without_a_reload(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    """Words for the next note stay while the list is renewed; the wall shows the take-over."""
    tab = open_tab(web, to="/sessions/warm")
    page = tab.page
    tab.wait_until_live()
    wall = open_tab(web, "nora").page
    page.get_by_label("Note to the counsellor’s desk").fill("Ask about the weekend")
    page.get_by_role("button", name="Send note").click()
    entry = page.locator(".interventions li").last
    expect(entry).to_contain_text("Ask about the weekend")
    expect(entry.locator(".receipt")).to_have_text("sent")
    tab.wait_until_live()
    page.get_by_label("Note to the counsellor’s desk").fill("The next")
    with web.client("sue") as sue, web.client("pump") as desk:
        [stored] = sue.get("/sessions/warm/interventions").json()
        receipt = f"/interventions/{stored['intervention_id']}/receipt"
        assert desk.post(receipt).status_code == 200
    expect(entry.locator(".receipt")).to_contain_text("received")
    expect(page.get_by_label("Note to the counsellor’s desk")).to_have_value("The next")
    page.get_by_role("button", name="Take over…").click()
    page.get_by_role("button", name="Take over", exact=True).click()
    expect(page.get_by_role("button", name="Hand back")).to_be_visible()
    expect(wall.locator("[data-session=warm] .taken-over")).to_contain_text("by sue")
    page.get_by_role("button", name="Hand back").click()
    expect(page.get_by_role("button", name="Take over…")).to_be_visible()
    expect(wall.locator("[data-session=warm] .taken-over")).to_have_count(0)
