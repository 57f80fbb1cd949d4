"""The report: one file that needs nothing else, with the same hidden cells as the page."""

import re
from datetime import date
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stream_app.analytics.questions import shown_curves
from stream_app.analytics.questions.marked_days import MarkedDay
from stream_app.analytics.views.shown import ALL
from stream_app.cli import app
from stream_app.web.console.analytics import report
from stream_app.web.console.analytics.report import Wanted
from stream_app.web.console.pseudonym_words import short_form
from tests.web.people.client import without_line_breaks
from tests.web.people.longitudinal import Platform, platform

__all__ = ["platform"]

FIRST, LAST = date(2026, 1, 1), date(2026, 7, 31)
TRAINING = MarkedDay(date(2026, 4, 15), "training", "Listening", "south")


_made: list[str] = []
"""The report of team south: every test has a copy of the same database."""


@pytest.fixture
def page(platform: Platform) -> str:
    if not _made:
        wanted = Wanted("south", FIRST, LAST, fewest_days=30, days=[TRAINING])
        _made.append(without_line_breaks(report.html(platform.store, wanted)))
    return _made[0]


def test_it_needs_nothing_but_itself(page: str) -> None:
    assert page.lstrip().startswith("<!doctype html>")
    assert "<script" not in page
    assert not re.findall(r"""(?:src|href)=|url\(|@import""", page)
    assert "columns: 2" in page, "the styles for paper"


def test_every_figure_has_a_table_n_interval_model_and_agreement(page: str) -> None:
    figures = [part.split("</figure>")[0] for part in page.split("<figure")[1:]]
    assert len(figures) >= 15
    for figure in figures:
        assert figure.count("<table>") == 1
        assert "<details" not in figure, "tables are open on paper"
        assert re.search(r"n = \d+ ", figure)
        assert "95 % interval" in figure
        assert "Model: synthetic-1" in figure
        title = re.search(r"<figcaption>(.*?) <", figure)
        assert title
    agreement = page.split("<h2>Agreement of people and model</h2>")[1]
    assert re.search(r"synthetic-1, emotional reactions: κ 0\.\d\d \[0\.", agreement)
    assert page.count("emotional reactions: κ 0") == agreement.count("emotional reactions: κ 0")


def test_trainings_and_releases_are_marked_on_every_curve_by_date(page: str) -> None:
    figures = [part.split("</figure>")[0] for part in page.split("<figure")[1:]]
    by_date = [
        figure
        for figure in figures
        if re.search(r"by (calendar week|reporting month)</span>", figure)
    ]
    drawn = [figure for figure in by_date if "<svg" in figure]
    assert len(drawn) >= 10
    for figure in drawn:
        assert "2026-04-15: training “Listening” (team south)" in figure


def test_it_hides_what_the_views_hide(platform: Platform, page: str) -> None:
    curves = shown_curves.weekly(platform.store, "empathy_index", "south", FIRST, LAST)
    points = [(point.label, curve.bundle, point) for curve in curves for point in curve.points]
    figure = next(part for part in page.split("<figure") if "<figcaption>Empathy index" in part)
    rows = re.findall(r'<th scope="row">([\d-]+)</th>(.*?)</tr>', figure)
    assert len(rows) == len(points)
    hidden = {(week, "hidden" in cells) for week, cells in rows}
    assert hidden == {(week, point.value is None) for week, _, point in points}
    assert {True, False} <= {gone for _, gone in hidden}


def test_it_is_about_one_team_and_names_nobody(platform: Platform, page: str) -> None:
    assert "<h1>Team south, 2026-01-01 to 2026-07-31</h1>" in page
    assert "north" not in page
    assert "Cohorts, month by month" in page
    for number in range(14):
        assert platform.pseudonym(f"counsellor-{number:04}")[:8] not in page
        assert short_form(platform.pseudonym(f"counsellor-{number:04}")) not in page
    assert "simulated; nobody said these things" in page


def test_all_teams_have_cohorts_and_estimates(platform: Platform) -> None:
    page = report.html(platform.store, Wanted(None, FIRST, LAST, fewest_days=30))
    assert "Cohorts, month by month" in page
    assert "change per month within counsellors" in page
    assert shown_curves.weekly(platform.store, "empathy_index", ALL, FIRST, LAST)


@pytest.mark.parametrize("full", [True, False])
def test_the_command_writes_the_file(
    platform: Platform,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log_settings_kept: object,
    full: bool,
) -> None:
    monkeypatch.setenv("RAPPORT_DATABASE_URL", platform.url)
    file = tmp_path / "report.html"
    more = ["--full"] if full else ["--at", "2026-04-01"]
    dates = ["--from", "2026-01-01", "--to", "2026-07-31", *more]
    done = CliRunner().invoke(app, ["report", "--team", "south", *dates, "-o", str(file)])
    assert done.exit_code == 0, done.output
    page = without_line_breaks(file.read_text("utf-8"))
    assert "Team south" in page
    assert ("What to look at" in page) is not full
    assert not re.findall(r"""(?:src|href)=|url\(|@import|<script""", page)
    assert "north" not in page
    wrong = CliRunner().invoke(app, ["report", "--from", "2026-02-01", "--to", "2026-01-01"])
    assert wrong.exit_code == 2


def test_a_team_without_sessions_gets_a_report_that_says_so(platform: Platform) -> None:
    page = report.html(platform.store, Wanted("nowhere", FIRST, LAST))
    assert "No finished reporting month with sessions" in page
