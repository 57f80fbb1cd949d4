"""Coaching goals: private to a supervisor and a counsellor, with the measure before and since."""

import re
from datetime import UTC, date, datetime, timedelta
from statistics import fmean

import pytest
import sqlalchemy as sa
from scipy.stats import ttest_ind

from stream_app.findings.trends import interval
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure, retention
from stream_app.store.work.coaching_goals import Goal, GoalState
from stream_app.store.work.development import MeasuredSession
from stream_app.work.goal_progress import FEWEST_DAYS, Reached, Sessions, baselines, progress
from tests.store.reading import rows, stored_rows
from tests.web.people.longitudinal import LINKED, Platform, platform

__all__ = ["platform"]

STARTS, ENDS = date(2026, 3, 16), date(2026, 4, 26)
FIRST = date(2026, 2, 3)
"""As many days before the goal as it lasts."""
NOW = datetime(2026, 3, 16, tzinfo=UTC)
FORM = {
    "goal": "Ask what it was like, then wait.",
    "measure": "explorations",
    "starts_on": str(STARTS),
    "ends_on": str(ENDS),
}


def set_goal(platform: Platform, **changes: str) -> str:
    """Sid sets Cleo a goal; returns its address."""
    page = f"/counsellors/{platform.pseudonym(LINKED)}"
    sid = platform.as_("sid")
    answer = sid.post(f"{page}/goals", data={**FORM, **changes})
    assert answer.headers["location"] == f"{page}/development#goals"
    shown = sid.get(f"{page}/development").text
    [address] = re.findall(r'href="(/goals/[0-9a-f-]{36})"', shown)
    return str(address)


def values(platform: Platform, since: date, until: date) -> dict[str, list[float]]:
    """The measure of Cleo's sessions by model, from one day to before another."""
    rolled, who = tables.rollup_sessions.c, tables.session_speakers.c
    query = (
        sa.select(rolled.bundle, rolled.explorations)
        .join(tables.session_speakers, who.session_id == rolled.session_id)
        .where(
            who.speaker == platform.pseudonym(LINKED),
            who.role == "counsellor",
            rolled.day >= since,
            rolled.day < until,
        )
    )
    found: dict[str, list[float]] = {}
    with platform.store.reading() as connection:
        for bundle, value in connection.execute(query):
            found.setdefault(bundle, []).append(value / 10_000)
    return found


def test_the_page_compares_as_many_days_before_the_goal_as_since(platform: Platform) -> None:
    page = platform.as_("cleo").get(set_goal(platform)).text
    assert "Ask what it was like, then wait." in page
    assert (ENDS - STARTS).days > FEWEST_DAYS
    shown = re.findall(
        r'<tr><th scope="row">(Before|Since)</th><td>([\d.]+)</td><td>(.*?)</td><td>(\d+)</td>',
        page,
    )
    expected = []
    for label, since, until in (
        ("Before", FIRST, STARTS),
        ("Since", STARTS, date.fromordinal(ENDS.toordinal() + 1)),
    ):
        found = values(platform, since, until)
        assert found, "the simulated half-year covers both times"
        for _, some in sorted(found.items()):
            low, high = interval(some)
            band = f"{low:.3f} to {high:.3f}"
            expected.append((label, f"{fmean(some):.3f}", band, str(len(some))))
    assert shown == expected
    assert "before the goal" in page
    assert "since the goal" in page
    assert "<polygon" in page, "the curve has a band"


def change(page: str) -> str:
    """What the page says about a change."""
    [said] = re.findall(r'id="change-title">.*?</section>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", said.partition("</h2>")[2]).split())


def test_after_four_weeks_the_page_says_whether_anything_changed(platform: Platform) -> None:
    address = set_goal(platform, target="1.9")
    told = platform.as_("cleo").get(f"/api/v1{address}").json()
    assert told["due"] == "2026-04-13"
    before = values(platform, FIRST, STARTS)
    since = values(platform, STARTS, date.fromordinal(ENDS.toordinal() + 1))
    both = [name for name in since if min(len(since[name]), len(before.get(name, ()))) >= 3]
    assert both
    assert [each["bundle"] for each in told["changes"]] == sorted(both)
    for each in told["changes"]:
        expected = ttest_ind(since[each["bundle"]], before[each["bundle"]], equal_var=False)
        band = expected.confidence_interval(0.95)
        assert (each["low"], each["high"]) == pytest.approx((band.low, band.high))
        assert each["target"] == "no"
        words = "Yes: the mean is" if band.low > 0 or band.high < 0 else "Not clearly"
        page = change(platform.as_("cleo").get(address).text)
        assert words in page
        assert f"Baseline {each['baseline']:.3f}" in page
        assert "the target is not reached" in page


def test_before_four_weeks_nothing_is_said(platform: Platform) -> None:
    today = datetime.now(UTC).date()
    starts, ends = today - timedelta(days=20), today + timedelta(days=20)
    address = set_goal(platform, starts_on=str(starts), ends_on=str(ends))
    page = change(platform.as_("cleo").get(address).text)
    assert page == (
        f"Nothing is said before {starts + timedelta(days=28)}, "
        "four weeks after the goal's first day."
    )


@pytest.mark.parametrize(
    ("before", "since", "target", "reached", "clear"),
    [
        ([0.2, 0.21, 0.19], [0.5, 0.51, 0.49], 0.4, Reached.YES, True),
        ([0.2, 0.21, 0.19], [0.3, 0.31, 0.29], 0.4, Reached.NO, True),
        ([0.2, 0.3, 0.1], [0.2, 0.6, 0.4], 0.4, Reached.UNCLEAR, False),
        ([0.8, 0.81, 0.79], [0.5, 0.51, 0.49], 0.6, Reached.YES, True),
        ([0.8, 0.81, 0.79], [0.7, 0.71, 0.69], 0.6, Reached.NO, True),
        ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5], None, None, False),
    ],
)
def test_a_target_may_lie_above_the_baseline_or_below(
    before: list[float],
    since: list[float],
    target: float | None,
    reached: Reached | None,
    clear: bool,
) -> None:
    goal = Goal("g", "c", "p", "talk_share", "", STARTS, ENDS, GoalState.OPEN, NOW, target)
    around = Sessions(FIRST, STARTS, measured(before), measured(since))
    [found] = progress(goal, around, ENDS).changes
    assert (found.target, found.clear) == (reached, clear)
    assert progress(goal, around, STARTS + timedelta(days=27)).changes == []
    assert progress(goal, Sessions(FIRST, STARTS, [], measured(since)), ENDS).changes == []


def measured(shares: list[float]) -> list[MeasuredSession]:
    return [
        MeasuredSession(STARTS, STARTS, STARTS, "b", "", {"talk_share": round(share * 10_000)})
        for share in shares
    ]


def test_the_form_shows_where_a_goal_would_start(platform: Platform) -> None:
    found = baselines(measured([0.2, 0.3, 0.4]))
    assert found == {"talk_share": pytest.approx(0.3)}
    assert baselines(measured([0.2, 0.3])) == {}
    page = platform.as_("sid").get(f"/counsellors/{platform.pseudonym(LINKED)}/development")
    assert "too few sessions in the last four weeks" in page.text
    assert 'name="target" required' in page.text


def test_nobody_but_the_two_can_see_it(platform: Platform) -> None:
    address = set_goal(platform)
    statuses = {
        (name, prefix): platform.as_(name).get(f"{prefix}{address}").status_code
        for name in ("sid", "cleo", "sue", "nia", "ana", "ada")
        for prefix in ("", "/api/v1")
    }
    assert {name for (name, _), status in statuses.items() if status == 200} == {"sid", "cleo"}
    assert set(statuses.values()) == {200, 404}
    page = f"/counsellors/{platform.pseudonym(LINKED)}/development"
    assert "Ask what it was like" in platform.as_("cleo").get("/me/development").text
    assert "Ask what it was like" not in platform.as_("sue").get(page).text
    for name, count in (("sid", 1), ("cleo", 1), ("sue", 0), ("nia", 0)):
        assert len(platform.as_(name).get("/api/v1/goals").json()) == count, name
    for name in ("sue", "cleo", "ada"):
        assert platform.as_(name).post(address, data={"state": "reached"}).status_code == 404, name
    assert platform.as_("sid").post(address, data={"state": "reached"}).status_code == 303
    assert platform.as_("sid").post(address, data={"state": "closed"}).status_code == 409
    assert '<span class="tag">reached</span>' in platform.as_("cleo").get(address).text


def test_only_supervisors_of_the_sessions_set_goals_that_make_sense(platform: Platform) -> None:
    page = f"/counsellors/{platform.pseudonym(LINKED)}/goals"
    assert platform.as_("nia").post(page, data=FORM).status_code == 404
    for name in ("cleo", "ana", "ada"):
        assert platform.as_(name).post(page, data=FORM).status_code == 403
    sid = platform.as_("sid")
    for wrong in (
        {"measure": "salary"},
        {"ends_on": FORM["starts_on"]},
        {"goal": " "},
        {"target": "nan"},
    ):
        assert sid.post(page, data={**FORM, **wrong}).status_code == 422, wrong
    assert rows(platform.store, tables.coaching_goals) == []


def test_the_text_is_redacted_encrypted_audited_and_erased(platform: Platform) -> None:
    address = set_goal(platform, goal="Call 020 7946 0958 less, ask more.")
    shown = platform.as_("cleo").get(address).text
    assert "ask more." in shown
    assert "7946" not in shown
    [row] = stored_rows(platform.store, tables.coaching_goals)
    assert "ask" not in row["goal"]
    entries = platform.as_("ada").get("/api/v1/audit?action=read counsellor").json()["items"]
    assert {entry["person"] for entry in entries} == {"sid"}
    assert all("ask more" not in str(entry) for entry in entries)
    removed = erasure.forget_counsellor(platform.store, LINKED)
    assert (removed["coaching_goals"], removed["session_keys"]) == (1, 1)
    assert platform.as_("sid").get(address).status_code == 404


def test_goals_expire_with_the_sessions_of_their_last_day(platform: Platform) -> None:
    set_goal(platform)
    keys = len(rows(platform.store, tables.session_keys))
    never = datetime(2020, 1, 1, tzinfo=UTC)
    for before, left in (
        (datetime(2026, 4, 26, tzinfo=UTC), 1),
        (datetime(2026, 4, 27, tzinfo=UTC), 0),
    ):
        with platform.store.transaction() as connection:
            connection.execute(tables.sessions.update().values(stored_at=before))
        list(retention.purge(platform.store, never, before, before))
        assert len(rows(platform.store, tables.coaching_goals)) == left
    assert len(rows(platform.store, tables.session_keys)) == keys - 1
