"""The analytics and teams pages: the same hidden cells in every load, within the own scope."""

import csv
import io
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from stream_app.analytics.rollups import rollups
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.web.console.analytics import analytics
from stream_app.web.console.pseudonym_words import short_form
from tests.store import batches
from tests.web.people.longitudinal import LINKED, Platform, platform

__all__ = ["platform"]

RANGE = "from=2026-01-01&to=2026-07-01"


def table(platform: Platform, name: str, query: str) -> list[dict[str, Any]]:
    answer = platform.as_(name).get(f"/analytics/table?{query}")
    assert answer.status_code == 200, answer.text
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))


def by_cell(rows: list[dict[str, Any]]) -> dict[tuple[str, ...], tuple[str, str]]:
    keys = ("measure", "group", "bundle", "period")
    return {tuple(row[key] for key in keys): (row["hidden"], row["mean"]) for row in rows}


def cells(page: str) -> list[str]:
    return re.findall(r"<td>.*?</td>", page)


def test_curves_have_bands_n_models_and_agreement(platform: Platform) -> None:
    page = platform.as_("ana").get(f"/analytics?{RANGE}&measure=emotional_reactions").text
    assert page.count("<figure") == 2, "the number of sessions and the measure"
    assert "<polygon" in page
    assert re.search(
        r"n = \d[\d,]{2,} sessions\. \d+ of \d+ weeks are not shown: too few people", page
    )
    assert not re.search(r"\d+ hidden", page), "weeks, not sessions"
    assert re.search(r"synthetic-1, emotional reactions: κ 0", page)
    assert "synthetic</span>" in page
    assert "style=" not in page, "the content security policy forbids inline styles"
    assert "<script>" not in page
    assert "counsellor-0" not in page
    assert platform.pseudonym("counsellor-0001")[:8] not in page
    assert short_form(platform.pseudonym("counsellor-0001")) not in page


def test_the_table_has_what_the_figures_show(platform: Platform) -> None:
    rows = table(platform, "sue", f"{RANGE}&measure=explorations")
    shown = [row for row in rows if row["measure"] == "explorations" and row["hidden"] == "false"]
    assert shown
    page = platform.as_("sue").get(f"/analytics?{RANGE}&measure=explorations").text
    for row in shown:
        assert float(row["low"]) < float(row["mean"]) < float(row["high"])
        assert int(row["n"]) >= 11
        assert f"{float(row['low']):.3f} to {float(row['high']):.3f}" in page


def test_every_figure_has_its_own_download(platform: Platform) -> None:
    page = platform.as_("sue").get(f"/analytics?{RANGE}&team=south&measure=explorations").text
    addresses = re.findall(r'href="/analytics/table\?([^"]*)"', page)
    assert len(addresses) == 2
    for query, measure in zip(addresses, ("sessions", "explorations"), strict=True):
        rows = table(platform, "sue", query.replace("&amp;", "&"))
        assert {(row["measure"], row["group"]) for row in rows} == {(measure, "south")}


def test_lines_break_where_the_model_changes(platform: Platform) -> None:
    page = platform.as_("sue").get(f"/analytics?{RANGE}&measure=explorations").text
    figure = page.split("<figure")[2]
    assert figure.count("<polyline") >= 2
    assert re.search(r"<b>A</b> [\d-]{10}: model synthetic-2 begins to score", figure)


def test_the_same_cells_are_hidden_in_every_load(platform: Platform) -> None:
    """Neither new sessions nor another range of dates change what a finished month shows."""
    first = by_cell(table(platform, "sue", f"{RANGE}&team=south"))
    assert {hidden for hidden, _ in first.values()} == {"true", "false"}
    teams = platform.as_("sue").get("/teams?month=2026-04-01").text
    assert "<td>hidden</td>" not in teams  # weeks and cohorts are; totals are the last to go
    assert re.search(r"<b>\d+</b> session", teams)
    now = datetime.now(UTC)
    for number in range(3):
        at = (now - timedelta(minutes=9 - number)).isoformat()
        facts = {"session_id": f"new-{number}", "team": "south", "occurred_at": at}
        events = [batches.turn(seq, **facts) for seq in range(2)]
        end = batches.end(session_id=f"new-{number}", occurred_at=at)
        platform.store.prepare(batches.BUNDLE, "0" * 64, {"name": "fake"}, redact=True)
        platform.store.commit(batches.process([*events, end]))
    assert list(rollups.update(platform.store))
    assert by_cell(table(platform, "sue", f"{RANGE}&team=south")) == first
    assert cells(platform.as_("sue").get("/teams?month=2026-04-01").text) == cells(teams)
    part = by_cell(table(platform, "sue", "from=2026-02-16&to=2026-04-19&team=south"))
    assert part
    assert part == {key: cell for key, cell in first.items() if key in part}


def test_the_current_month_is_not_shown(platform: Platform) -> None:
    rows = table(platform, "sue", "from=2026-01-01&to=2099-01-01&measure=explorations")
    today = datetime.now(UTC).date()
    first = (today - timedelta(days=today.weekday())).isoformat()
    assert all(row["period"] < first for row in rows)


def test_supervisors_of_a_team_see_only_their_team(platform: Platform) -> None:
    assert {row["group"] for row in table(platform, "nia", RANGE)} == {"north"}
    page = platform.as_("nia").get(f"/analytics?{RANGE}").text
    assert "south" not in page
    cohorts = table(platform, "nia", f"{RANGE}&cohort=every&measure=empathy_index")
    assert cohorts == table(
        platform, "sue", f"{RANGE}&cohort=2026&team=north&measure=empathy_index"
    )
    assert cohorts != table(platform, "sue", f"{RANGE}&cohort=2026&measure=empathy_index")
    for query in ("team=south", "team=all", "team=south&cohort=every"):
        assert platform.as_("nia").get(f"/analytics?{query}").status_code == 403
        assert platform.as_("nia").get(f"/analytics/table?{query}").status_code == 403
    teams = platform.as_("nia").get("/teams?month=2026-03-01").text
    assert ">north</a></th>" in teams
    assert "south" not in teams
    assert ">all</th><td>" not in teams.replace("\n", "")


def test_teams_are_compared_as_lines_of_one_chart(platform: Platform) -> None:
    query = f"{RANGE}&team=north&compare=south&compare=north&measure=explorations"
    both = table(platform, "sue", query)
    assert {row["group"] for row in both} == {"north", "south"}
    for team in ("north", "south"):
        alone = table(platform, "sue", f"{RANGE}&team={team}&measure=explorations")
        assert [row for row in both if row["group"] == team] == alone
    page = platform.as_("sue").get(f"/analytics?{query}").text
    figure = page.split("<figure")[2]
    assert '<ul class="legend">' in figure
    [address] = re.findall(r'href="/analytics/table\?([^"]*)"', figure)
    assert table(platform, "sue", address.replace("&amp;", "&")) == both
    [quarter] = re.findall(r'href="/analytics\?([^"]*)">Teams in the last quarter', page)
    assert "team=north&amp;compare=south" in quarter
    assert platform.as_("nia").get("/analytics?compare=south").status_code == 403
    assert "last quarter" not in platform.as_("nia").get("/analytics").text
    too_many = "".join(f"&compare=t{number}" for number in range(7))
    assert platform.as_("sue").get(f"/analytics?{too_many}").status_code == 422


@pytest.mark.parametrize(
    ("today", "first", "last"),
    [
        (date(2026, 1, 1), "2025-10-01", "2025-12-31"),
        (date(2026, 3, 31), "2025-10-01", "2025-12-31"),
        (date(2026, 4, 1), "2026-01-01", "2026-03-31"),
        (date(2026, 11, 23), "2026-07-01", "2026-09-30"),
    ],
)
def test_the_last_finished_quarter(today: date, first: str, last: str) -> None:
    assert analytics.last_quarter(today, []) == f"from={first}&to={last}"
    teams = [f"t{number}" for number in range(7)]
    assert "team" not in analytics.last_quarter(today, teams), "more lines than styles"
    assert analytics.last_quarter(today, teams[:2]).endswith("&team=t0&compare=t1")


@pytest.mark.parametrize(("name", "status"), [("ana", 200), ("ada", 403), ("cleo", 403)])
def test_roles(platform: Platform, name: str, status: int) -> None:
    for path in ("/analytics", "/analytics/table", "/teams"):
        assert platform.as_(name).get(path).status_code == status


def test_cohorts_are_lines_by_month(platform: Platform) -> None:
    rows = table(platform, "ana", f"{RANGE}&cohort=every&measure=empathy_index")
    assert {row["axis"] for row in rows} == {"reporting month"}
    assert {row["group"] for row in rows} == {"2026"}
    only = table(platform, "ana", f"{RANGE}&cohort=2026&measure=empathy_index")
    assert only == rows
    assert not table(platform, "ana", f"{RANGE}&cohort=2019&measure=empathy_index")


def test_downloads_are_audited_and_nonsense_is_refused(platform: Platform) -> None:
    table(platform, "ana", RANGE)
    entries = platform.as_("ada").get("/api/v1/audit?action=export").json()["items"]
    assert [(entry["person"], entry["detail"]) for entry in entries] == [("ana", "curves")]
    client = platform.as_("ana")
    assert client.get("/analytics?measure=salary").status_code == 404
    for query in ("from=2026-13-45", "from=yesterday", "cohort=all"):
        assert client.get(f"/analytics?{query}").status_code in (404, 422), query
    assert client.get("/analytics?to=9999-12-31").status_code == 200
    assert client.get("/teams?month=nonsense&bundle=nonsense").status_code == 200


def test_supervisors_without_a_team_see_nothing(platform: Platform) -> None:
    """Unless their account says that they read all teams."""
    People(platform.store).add(Person("nobody", PersonRole.SUPERVISOR), None)
    client = platform.as_("nobody")
    for path in ("/analytics", "/analytics?team=south", "/analytics/table", "/teams"):
        assert client.get(path).status_code == 403, path
    assert "<bdi>" not in client.get("/sessions").text
    assert client.get(f"/counsellors/{platform.pseudonym(LINKED)}/development").status_code == 404
