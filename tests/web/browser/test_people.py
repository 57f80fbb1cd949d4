"""The pages about people in a browser: keyboard, no script, phone, accessibility."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from stream_app.contracts.scores import MECHANISMS
from stream_app.store import disputes, samples
from stream_app.store.judged import DoesNotFit
from stream_app.store.people import People, Person
from stream_app.store.ratings import Judgement
from stream_app.store.samples import NewSample
from tests.web.browser.conftest import PHONE, NewStage, Sit
from tests.web.browser.stage import Stage, scorer

SIZE = 6
CLEO = "cleo@example.org"
OVER = tuple(f"evening-{number}" for number in range(4))


@pytest.fixture(scope="module")
def stage(new_stage: NewStage) -> Stage:
    """Four sessions of Cleo's in one week, one of them disputed; no broker."""
    stage = new_stage()
    for number, name in enumerate(OVER):
        ago = timedelta(hours=4 + number)
        stage.play(f"counselling-0{number + 1}", name, ago=ago, team="north", counsellor=CLEO)
        over = (datetime.now(UTC) - ago + timedelta(hours=3)).isoformat()
        end = {"type": "session_end", "session_id": name, "occurred_at": over}
        stage.commit(json.dumps(end).encode())
    _dispute(stage)
    stage.start()
    return stage


@pytest.fixture
def sample(stage: Stage) -> str:
    """The address of a fresh sample."""
    new = NewSample("Autumn", scorer().bundle_id, "north", SIZE, 3)
    return f"/calibration/{samples.draw(stage.store, _person(stage, 'nora'), new).sample_id}"


def _person(stage: Stage, name: str) -> Person:
    found = People(stage.store).find(name)
    assert found is not None
    return found


def _dispute(stage: Stage) -> None:
    """The first score of Cleo's that can be disputed."""
    for seq in range(40):
        for head in MECHANISMS:
            try:
                disputes.contest(
                    stage.store, _person(stage, "cleo"), OVER[0], seq, head, None, "I did say so."
                )
            except DoesNotFit:
                continue
            return
    raise AssertionError("the model abstained everywhere")


def _rate(stage: Stage, sample: str, name: str) -> None:
    person, sample_id = _person(stage, name), sample.rpartition("/")[2]
    found = samples.one(stage.store, person.scope, sample_id)
    for turn in samples.work(stage.store, found).turns:
        level = turn.place % 3
        given = [Judgement(turn.session_id, turn.seq, head, level) for head in MECHANISMS]
        samples.rate(stage.store, person, sample_id, given)


def fits(page: Page) -> bool:
    return bool(
        page.evaluate(
            "document.scrollingElement.scrollWidth <= document.documentElement.clientWidth"
        )
    )


def test_a_sample_is_rated_by_the_keys_0_1_2_and_enter_alone(
    stage: Stage, sit: Sit, sample: str
) -> None:
    page = sit(stage, "nora", sample).page
    page.get_by_role("link", name="Begin with turn 1").press("Enter")
    for place in range(1, SIZE + 1):
        page.wait_for_url(f"**{sample}/turns/{place}")
        expect(page.locator("#keys")).to_be_visible()
        for key in ("0", "1", "2", "Enter"):
            page.keyboard.press(key)
    page.wait_for_url(f"**{sample}")
    expect(page.get_by_text("your ratings are closed")).to_be_visible()
    done = samples.work(stage.store, samples.find(stage.store, _person(stage, "nora").scope)[0])
    levels = dict(zip(MECHANISMS, (0, 1, 2), strict=True))
    assert done.values["nora"] == dict.fromkeys(range(1, SIZE + 1), levels)


def test_a_sample_is_rated_without_javascript(stage: Stage, sit: Sit, sample: str) -> None:
    page = sit(stage, "nora", f"{sample}/turns/1", java_script_enabled=False).page
    for head in MECHANISMS:
        page.locator(f"input[name={head}][value='1']").check()
    page.get_by_role("button", name="Save and go on").click()
    page.wait_for_url(f"**{sample}/turns/2")
    expect(page.get_by_text("1 of 6", exact=False).last).to_be_visible()


def test_a_supervisor_answers_a_dispute_and_the_counsellor_reads_it(stage: Stage, sit: Sit) -> None:
    page = sit(stage, "nora", "/disputes").page
    page.get_by_label("Answer", exact=True).fill("You did; the sentence before it belongs to it.")
    page.get_by_role("button", name="Uphold").click()
    expect(page.locator("#waiting-title ~ .note")).to_have_text("None.")
    mine = sit(stage, "cleo", "/me").page
    expect(mine.get_by_text("the sentence before it belongs")).to_be_visible()


def test_only_heads_that_did_not_abstain_are_offered_for_a_dispute(stage: Stage, sit: Sit) -> None:
    page = sit(stage, "cleo", f"/sessions/{OVER[1]}").page
    turn = page.locator(".turn:has(.level.lx):has(.level:not(.lx))").first
    abstained = turn.locator(".level.lx").evaluate_all("all => all.map(one => one.dataset.head)")
    turn.get_by_role("button", name="Rate or dispute").click()
    heads = page.locator("#dispute [name=head]")
    disabled = heads.locator("option:disabled").evaluate_all("all => all.map(one => one.value)")
    assert disabled == abstained
    page.get_by_label("Why").fill("I did say so.")
    page.get_by_role("button", name="Send dispute").click()
    expect(page.locator("#judge-said")).to_have_text(re.compile("^Sent"))


@pytest.mark.parametrize("appearance", ["light", "dark", "phone"])
def test_the_pages_have_no_serious_violation_and_fit_the_width(
    stage: Stage, sit: Sit, sample: str, appearance: str
) -> None:
    options = {"viewport": PHONE} if appearance == "phone" else {"color_scheme": appearance}
    for name in ("nora", "sue"):
        _rate(stage, sample, name)
    opened = {
        "cleo": ("/me", f"/sessions/{OVER[0]}/feedback", "/calibration"),
        "nora": ("/calibration", sample, f"{sample}/turns/1", "/disputes"),
        "ana": (sample,),
    }
    for name, paths in opened.items():
        sitting = sit(stage, name, "/calibration", **options)
        for path in paths:
            page = sitting.open(path)
            found = Axe().run(page).response["violations"]
            grave = [(v["id"], v["nodes"]) for v in found if v["impact"] in ("serious", "critical")]
            assert grave == [], path
            assert fits(page), path
