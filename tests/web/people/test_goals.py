"""Coaching goals: private to a supervisor and a counsellor, with the measure before and since."""

import re
from datetime import UTC, date, datetime
from statistics import fmean

import sqlalchemy as sa

from stream_app.store import erasure, retention, tables
from stream_app.web.goal_progress import FEWEST_DAYS
from stream_app.web.trends import interval
from tests.store.reading import rows, stored_rows
from tests.web.people.longitudinal import LINKED, Platform, platform

__all__ = ["platform"]

STARTS, ENDS = date(2026, 3, 16), date(2026, 4, 26)
FIRST = date(2026, 2, 3)
"""As many days before the goal as it lasts."""
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
    for wrong in ({"measure": "salary"}, {"ends_on": FORM["starts_on"]}, {"goal": " "}):
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
