"""Cohort tables suppress cells about too few people."""

import re
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from stream_app.store import tables
from stream_app.store.queries.cohorts import CohortSession
from stream_app.store.repository import Store
from stream_app.web.cohorts import ALL, Cell, CohortTable, build_table
from tests.store.batches import BUNDLE
from tests.web.people.conftest import As


def sessions(
    team: str, domain: str, clients: int, counsellors: int, mean: float = 1.0
) -> list[CohortSession]:
    return [
        CohortSession(
            team,
            domain,
            frozenset({f"{team}-{domain}-client-{i}"}),
            frozenset({f"{team}-{domain}-{i % counsellors}"}),
            {"explorations": mean},
        )
        for i in range(clients)
    ]


def cell(found: CohortTable, team: str, domain: str) -> Cell:
    return found.cells[found.teams.index(team)][found.domains.index(domain)]


def test_large_cells_are_shown_with_n_mean_and_interval() -> None:
    found = build_table(sessions("a", "x", 12, 5, 0.5) + sessions("b", "x", 12, 6, 1.5))
    assert (found.teams, found.domains) == (["a", "b", ALL], ["x", ALL])
    assert cell(found, "a", "x").sessions == 12
    both = cell(found, ALL, ALL).means["explorations"]
    assert both.mean == pytest.approx(1.0)
    assert both.low < 1.0 < both.high


@pytest.mark.parametrize(("clients", "counsellors"), [(10, 5), (30, 4)])
def test_a_small_cell_causes_further_suppression(clients: int, counsellors: int) -> None:
    """a/x is small: further cells are suppressed, or subtraction would give its value."""
    found = build_table(
        sessions("a", "x", clients, counsellors)
        + sessions("a", "y", 40, 6)
        + sessions("b", "x", 40, 6)
        + sessions("b", "y", 40, 6)
    )
    gone = {
        (team, domain)
        for team in found.teams
        for domain in found.domains
        if cell(found, team, domain).sessions is None
    }
    assert ("a", "x") in gone
    assert len(gone) == 4
    assert cell(found, ALL, ALL).sessions == 120 + clients


def test_no_sessions_give_an_empty_table() -> None:
    assert build_table([]).cells == [[Cell(0, {})]]


def test_the_page_hides_small_teams_and_names_no_one(as_: As, filled: Store) -> None:
    with filled.transaction() as connection:
        connection.execute(sa.update(tables.session_scores).values(started_at=datetime.now(UTC)))
    page = as_("ana").get("/teams").text
    assert "<td>hidden</td>" in page
    assert not re.search(r"<b>\d+</b> session", page)
    assert filled.privacy.pseudonym("olu@example.org")[:8] not in page
    assert as_("ana").get(f"/teams?bundle={BUNDLE}").status_code == 200
    assert "south" not in as_("sue").get("/teams").text, "outside the scope"
    for name in ("noor", "ada"):
        assert as_(name).get("/teams").status_code == 403
