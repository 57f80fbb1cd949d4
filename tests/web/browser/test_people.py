"""Counsellor, dispute and calibration pages: keyboard, no JavaScript, phone, accessibility."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS
from stream_app.core.rules.scorecards import parse
from stream_app.settings import DEFAULT_SCORECARDS
from stream_app.store.accounts.people import People, Person
from stream_app.store.sessions import transcripts
from stream_app.store.sessions.scope import ALL_SESSIONS, Scope
from stream_app.store.sessions.scored_turns import InvalidJudgement
from stream_app.store.work import calibration_samples, disputes, reviews
from stream_app.store.work.calibration_samples import NewCalibrationSample
from stream_app.store.work.ratings import Judgement
from stream_app.store.work.reviews import NewReview
from tests.web.browser.accessibility import grave_violations
from tests.web.browser.conftest import PHONE, WIDE, NewWeb, OpenTab
from tests.web.browser.scored_web import ScoredWeb, scorer

SIZE = 6
CLEO = "cleo@example.org"
OVER = tuple(f"evening-{number}" for number in range(4))


@pytest.fixture(scope="module")
def web(new_web: NewWeb) -> ScoredWeb:
    """Four sessions of Cleo's in one week, one with a dispute; no broker."""
    web = new_web()
    for number, name in enumerate(OVER):
        ago = timedelta(hours=4 + number)
        web.play_sample(f"counselling-0{number + 1}", name, ago=ago, team="north", counsellor=CLEO)
        over = (datetime.now(UTC) - ago + timedelta(hours=3)).isoformat()
        end = {"type": "session_end", "session_id": name, "occurred_at": over}
        web.commit(json.dumps(end).encode())
    _dispute(web)
    web.start()
    return web


@pytest.fixture
def sample(web: ScoredWeb) -> str:
    """The address of a new calibration sample."""
    new = NewCalibrationSample("Autumn", scorer().bundle_id, "north", SIZE, 3)
    return (
        f"/calibration/{calibration_samples.draw(web.store, _person(web, 'nora'), new).sample_id}"
    )


def _person(web: ScoredWeb, name: str) -> Person:
    found = People(web.store).find(name)
    assert found is not None
    return found


def _dispute(web: ScoredWeb) -> None:
    """Dispute the first of Cleo's scores that can be disputed."""
    for seq in range(40):
        for head in MECHANISMS:
            try:
                disputes.contest(
                    web.store, _person(web, "cleo"), OVER[0], seq, head, None, "I did say so."
                )
            except InvalidJudgement:
                continue
            return
    raise AssertionError("the model abstained everywhere")


def _rate(web: ScoredWeb, sample: str, name: str) -> None:
    person, sample_id = _person(web, name), sample.rpartition("/")[2]
    found = calibration_samples.one(web.store, person.scope, sample_id)
    for turn in calibration_samples.collect_ratings(web.store, found).turns:
        level = turn.place % 3
        given = [Judgement(turn.session_id, turn.seq, head, level) for head in MECHANISMS]
        calibration_samples.rate(web.store, person, sample_id, given)


def _review(web: ScoredWeb) -> str:
    """The address of an open review of Nora's."""
    mine = reviews.find(web.store, Scope(team="north"), reviewer="nora", signed=False)
    if mine:
        return f"/reviews/{mine[0].review_id}"
    card = parse(DEFAULT_SCORECARDS.read_bytes(), "scorecards.yaml")["empathy"]
    new = NewReview(OVER[1], "nora", "sue", card, datetime.now(UTC))
    return f"/reviews/{reviews.assign(web.store, [new])[0]}"


def fits(page: Page) -> bool:
    return bool(
        page.evaluate(
            "document.scrollingElement.scrollWidth <= document.documentElement.clientWidth"
        )
    )


def test_a_sample_can_be_rated_with_only_the_keyboard(
    web: ScoredWeb, open_tab: OpenTab, sample: str
) -> None:
    page = open_tab(web, "nora", sample).page
    page.get_by_role("link", name="Begin with turn 1").press("Enter")
    for place in range(1, SIZE + 1):
        page.wait_for_url(f"**{sample}/turns/{place}")
        expect(page.locator("#keys")).to_be_visible()
        for key in ("0", "1", "2", "Enter"):
            page.keyboard.press(key)
    page.wait_for_url(f"**{sample}")
    expect(page.get_by_text("Your ratings are final")).to_be_visible()
    done = calibration_samples.collect_ratings(
        web.store, calibration_samples.find(web.store, _person(web, "nora").scope)[0]
    )
    levels = dict(zip(MECHANISMS, (0, 1, 2), strict=True))
    assert done.values["nora"] == dict.fromkeys(range(1, SIZE + 1), levels)


def test_a_sample_can_be_rated_without_javascript(
    web: ScoredWeb, open_tab: OpenTab, sample: str
) -> None:
    page = open_tab(web, "nora", f"{sample}/turns/1", java_script_enabled=False).page
    for head in MECHANISMS:
        page.locator(f"input[name={head}][value='1']").check()
    page.get_by_role("button", name="Save and continue").click()
    page.wait_for_url(f"**{sample}/turns/2")
    expect(page.get_by_text("1 of 6", exact=False).last).to_be_visible()


def test_a_supervisor_answers_a_dispute_and_the_counsellor_reads_it(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, "nora", "/disputes").page
    page.get_by_label("Answer", exact=True).fill("You did; the sentence before it belongs to it.")
    page.get_by_role("button", name="Uphold").click()
    expect(page.locator("#waiting-title ~ .note")).to_have_text("None.")
    mine = open_tab(web, "cleo", "/me").page
    expect(mine.get_by_text("the sentence before it belongs")).to_be_visible()


def _practice(web: ScoredWeb) -> str:
    """The address of a practice page."""
    said = transcripts.read(web.store, ALL_SESSIONS, OVER[0])
    seq = next(turn.seq for turn in said if turn.role is Role.COUNSELLOR)
    return f"/sessions/{OVER[0]}/turns/{seq}/practice"


def test_a_counsellor_rewrites_a_turn_without_javascript(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, "cleo", "/me", java_script_enabled=False).page
    page.get_by_role("link", name=f"the feedback on {OVER[0]}").click()
    page.get_by_role("link", name="Rewrite this turn").nth(2).click()
    page.get_by_label("Rewritten turn").fill(
        "That sounds really painful, I'm sorry you're going through this. How are you now?"
    )
    page.get_by_role("button", name="Check this wording").click()
    fits_here = page.get_by_role("region", name="Does it fit this conversation?")
    expect(fits_here.locator("p.fit, p.note").first).to_contain_text("fit")
    page.get_by_text("Levels of the three mechanisms").click()
    levels = page.get_by_role("region", name="Levels of both wordings")
    for title in ("Emotional reactions", "Explorations"):
        expect(levels.get_by_role("row", name=title)).to_contain_text("higher")
    expect(page.locator("#levels mark.er").first).to_contain_text("painful")
    expect(page.get_by_label("Rewritten turn")).to_have_value(re.compile("really painful"))


def test_only_heads_with_a_score_can_be_disputed(web: ScoredWeb, open_tab: OpenTab) -> None:
    page = open_tab(web, "cleo", f"/sessions/{OVER[1]}").page
    turn = page.locator(".turn:has(.level.lx):has(.level:not(.lx))").first
    abstained = turn.locator(".level.lx").evaluate_all("all => all.map(one => one.dataset.head)")
    turn.get_by_role("button", name="Rate or dispute").click()
    turn.locator(".dispute summary").click()
    offered = turn.locator(".dispute-form [name=head] option").evaluate_all(
        "all => all.map(one => one.value)"
    )
    assert set(offered) == set(MECHANISMS) - set(abstained)
    turn.get_by_label("Reason").fill("I did say so.")
    turn.get_by_role("button", name="Send dispute").click()
    expect(turn.locator(".dispute-form .rating-status")).to_have_text(re.compile("^Sent"))


def test_a_session_is_assigned_reviewed_and_signed_off_without_javascript(
    web: ScoredWeb, open_tab: OpenTab
) -> None:
    page = open_tab(web, "nora", f"/sessions/{OVER[2]}", java_script_enabled=False).page
    page.get_by_role("link", name="Assign for review").click()
    page.get_by_role("button", name="Assign", exact=True).click()
    page.get_by_role("link", name=re.compile("^My queue")).click()
    mine = page.get_by_role("region", name="Reviews assigned to me")
    mine.get_by_role("link", name=OVER[2]).click()
    turn = page.locator("#turn-1")
    turn.get_by_text("Comment on turn 1", exact=True).click()
    turn.get_by_role("textbox", name="Comment").fill("What did she say then?")
    turn.get_by_role("button", name="Save comment").click()
    expect(page.locator("#turn-1 blockquote")).to_contain_text("What did she say then?")
    for fields in page.get_by_role("form", name="Scorecard").get_by_role("group").all():
        fields.get_by_role("radio").last.check()
    page.get_by_role("button", name="Sign off").click()
    signed = page.get_by_role("region", name="Reviews that are signed off")
    signed.get_by_role("link", name=OVER[2]).click()
    expect(page.get_by_text("100 of 100")).to_be_visible()
    expect(page.locator("#turn-1 blockquote")).to_contain_text("What did she say then?")


@pytest.mark.parametrize("window", [WIDE, PHONE], ids=["wide", "phone"])
def test_pages_have_no_serious_axe_violation_and_fit_the_width(
    web: ScoredWeb, open_tab: OpenTab, sample: str, window: dict[str, int]
) -> None:
    for name in ("nora", "sue"):
        _rate(web, sample, name)
    opened = {
        "cleo": ("/me", f"/sessions/{OVER[0]}/feedback", _practice(web), "/calibration"),
        "nora": (
            *("/calibration", sample, f"{sample}/turns/1", "/disputes"),
            *("/reviews", _review(web), f"/sessions/{OVER[1]}/reviews", "/reviews/agreement"),
        ),
        "ana": (sample,),
    }
    for name, paths in opened.items():
        tab = open_tab(web, name, "/calibration", viewport=window)
        for path in paths:
            page = tab.open(path)
            assert grave_violations(page) == [], path
            assert fits(page), path
