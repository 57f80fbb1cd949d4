"""A counsellor's development: private to the counsellor and supervisors of the sessions."""

import re
from datetime import date
from pathlib import Path
from statistics import fmean

import sqlalchemy as sa

from stream_app.analytics.questions import marked_days
from stream_app.analytics.questions.marked_days import MarkedDay
from stream_app.findings.trends import MIN_SESSIONS, interval
from stream_app.store.database import tables
from stream_app.store.sessions import counsellors
from stream_app.store.sessions.scope import Scope
from stream_app.web.console.pseudonym_words import short_form
from tests.analytics import archiving
from tests.web.people.longitudinal import LINKED, Platform, platform

__all__ = ["platform"]

RANGE = "from=2026-01-01&to=2026-07-01"
UNLINKED = "counsellor-0000"


def address(platform: Platform, counsellor: str) -> str:
    return f"/counsellors/{platform.pseudonym(counsellor)}/development"


def by_month(platform: Platform) -> dict[tuple[str, str], list[float]]:
    """The linked counsellor's indices by reporting month and model."""
    rolled, who = tables.rollup_sessions.c, tables.session_speakers.c
    query = (
        sa.select(rolled.month, rolled.bundle, rolled.empathy_index)
        .join(tables.session_speakers, who.session_id == rolled.session_id)
        .where(who.speaker == platform.pseudonym(LINKED))
    )
    found: dict[tuple[str, str], list[float]] = {}
    with platform.store.reading() as connection:
        for month, bundle, index in connection.execute(query):
            found.setdefault((str(month), bundle), []).append(index / 10_000)
    return found


def test_the_curves_are_the_means_of_the_counsellors_own_sessions(platform: Platform) -> None:
    page = (
        platform.as_("cleo")
        .get("/me/development?from=2026-01-01&to=2026-08-31&measure=empathy_index")
        .text
    )
    expected = by_month(platform)
    assert len(expected) >= 6
    rows = re.findall(
        r'<th scope="row">([\d-]+)</th><td>(.*?)</td><td>(.*?)</td><td>(\d+)</td>'
        r"<td>(synthetic-\d)</td>",
        page,
    )
    assert len(rows) == sum(len(values) >= MIN_SESSIONS for values in expected.values())
    for month, mean, band, n, bundle in rows:
        values = expected[month, bundle]
        low, high = interval(values)
        assert (mean, n) == (f"{fmean(values):.3f}", str(len(values)))
        assert band == f"{low:.3f} to {high:.3f}"
    assert page.count("<polyline") == 2, "one line for each model"


def test_months_with_too_few_sessions_have_no_mean(platform: Platform) -> None:
    page = platform.as_("cleo").get(f"/me/development?{RANGE}&measure=empathy_index&by=week").text
    assert re.search(r'<td colspan="2">too few sessions</td><td>[12]</td>', page)
    assert ">hidden<" not in page


def test_supervisors_of_the_sessions_reach_it_by_clicks(platform: Platform) -> None:
    sid = platform.as_("sid")
    speaker = platform.pseudonym(LINKED)
    link = rf'<a href="/counsellors/{speaker}"[^>]*>cleo</a>'
    assert re.search(link, sid.get("/sessions").text)
    page = sid.get(f"/counsellors/{speaker}").text
    assert "<h1>cleo</h1>" in page
    assert f'href="/counsellors/{speaker}/development"' in page
    shown = sid.get(f"/counsellors/{speaker}/development?{RANGE}").text
    assert "<h1>Development of cleo</h1>" in shown
    assert "<polygon" in shown
    session = re.search(r'href="(/sessions/[^"]+)"><bdi>', sid.get("/sessions").text)
    assert session
    assert 'href="/counsellors/' in sid.get(session[1]).text


def test_a_counsellor_without_an_account_has_a_pseudonym(platform: Platform) -> None:
    page = platform.as_("nia").get(f"{address(platform, UNLINKED)}?{RANGE}").text
    assert f"<h1>Development of {short_form(platform.pseudonym(UNLINKED))}</h1>" in page


def test_it_is_private_to_the_counsellor_and_their_supervisors(platform: Platform) -> None:
    statuses = {
        name: platform.as_(name).get(address(platform, LINKED)).status_code
        for name in ("sue", "sid", "nia", "ana", "ada", "cleo")
    }
    assert statuses == {"sue": 200, "sid": 200, "nia": 404, "ana": 403, "ada": 403, "cleo": 403}
    for name in ("sue", "ana", "ada"):
        assert platform.as_(name).get("/me/development").status_code == 403
    assert platform.as_("sue").get("/counsellors/nobody/development").status_code == 404


def test_reads_by_supervisors_are_audited(platform: Platform) -> None:
    platform.as_("sid").get(address(platform, LINKED))
    platform.as_("cleo").get("/me/development")
    entries = platform.as_("ada").get("/api/v1/audit?action=read counsellor").json()["items"]
    detail = f"counsellor {platform.pseudonym(LINKED)}"
    assert [(entry["person"], entry["detail"]) for entry in entries] == [("sid", detail)]


def test_values_that_make_no_sense_are_refused(platform: Platform) -> None:
    cleo = platform.as_("cleo")
    assert cleo.get("/me/development?measure=salary").status_code == 404
    assert cleo.get("/me/development?by=year").status_code in (404, 422)
    assert cleo.get("/me/development?from=2026-02-31").status_code == 422
    assert cleo.get("/me/development?to=9999-12-31").status_code == 200


def test_archived_sessions_stay_for_the_supervisor_of_their_team(
    platform: Platform, tmp_path: Path
) -> None:
    """A session's team is then known to the archive's index alone."""
    path, shown = f"{address(platform, LINKED)}?{RANGE}&measure=empathy_index", {}
    for name in ("sid", "sue", "nia"):
        answer = platform.as_(name).get(path)
        shown[name] = answer.status_code, figures_of(answer.text)
    assert shown["nia"][0] == 404
    assert shown["sid"] == shown["sue"]
    assert shown["sid"][1]
    before = counsellors.find(platform.store, Scope(team="south")).items
    archiving.purge_texts(platform.store)
    assert sum(month.sessions for month in archiving.move(platform.store, tmp_path / "archive"))
    for name, (status, figures) in shown.items():
        answer = platform.as_(name).get(path)
        assert (answer.status_code, figures_of(answer.text)) == (status, figures)
    after = counsellors.find(platform.store, Scope(team="south")).items
    assert [(each.speaker, each.sessions) for each in after] == [
        (each.speaker, each.sessions) for each in before
    ]


def figures_of(page: str) -> list[str]:
    return re.findall(r'<th scope="row">[\d-]+</th><td>.*?</tr>', page)


def test_days_of_the_counsellors_teams_are_marked(platform: Platform, tmp_path: Path) -> None:
    file = tmp_path / "days.csv"
    with platform.store.reading() as connection:
        rolled, who = tables.rollup_sessions.c, tables.session_speakers.c
        query = (
            sa.select(rolled.team)
            .join(tables.session_speakers, who.session_id == rolled.session_id)
            .where(who.speaker == platform.pseudonym(LINKED))
        )
        team = connection.scalars(query).first()
    other = "south" if team == "north" else "north"
    marked_days.write(
        file,
        [
            MarkedDay(date(2026, 3, 2), "training", "Listening", team or ""),
            MarkedDay(date(2026, 3, 9), "release", "New desk"),
            MarkedDay(date(2026, 3, 16), "training", "Elsewhere", other),
        ],
    )
    client = platform.as_("cleo", marked_days=file)
    page = client.get(f"/me/development?{RANGE}").text
    assert f"2026-03-02: training “Listening” (team {team})" in page
    assert "release “New desk”" in page
    assert "Elsewhere" not in page, "days of other teams concern others"
    file.write_text("when\n", "utf-8")
    assert "are not marked: days.csv" in client.get(f"/me/development?{RANGE}").text
