"""Curves read from the views: means of sessions, hidden points, months, on both databases."""

from collections import defaultdict
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from statistics import fmean

import pytest
import sqlalchemy as sa

from stream_app.analytics.questions import shown_curves
from stream_app.analytics.questions.shown_curves import SESSIONS
from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import schema
from stream_app.analytics.views.shown import ALL
from stream_app.demo import simulated_store
from stream_app.demo.simulator import simulate
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from tests.web.people.longitudinal import WORLD

FIRST, LAST = date(2026, 1, 1), date(2026, 8, 1)


def test_curves_and_tables_from_the_views(store: Store) -> None:
    store.load_privacy(redact=True)
    world = replace(WORLD, counsellors=24, sessions_a_month=12, months=4, new_model=2.5)
    simulated_store.write(simulate(world), store)
    rollups.rebuild(store)
    schema.create_views(store)
    rolled = tables.rollup_sessions.c
    indices: dict[tuple[str, str], list[float]] = defaultdict(list)
    with store.reading() as connection:
        query = sa.select(rolled.week, rolled.bundle, rolled.empathy_index)
        for week, bundle, index in connection.execute(query.where(rolled.team == "south")):
            indices[str(week), bundle].append(index / 10_000)

    curves = shown_curves.weekly(store, "empathy_index", "south", FIRST, LAST)
    assert [curve.bundle for curve in curves] == ["synthetic-1", "synthetic-2"]
    shown = [(c.bundle, p) for c in curves for p in c.points if p.value is not None]
    assert 5 < len(shown) < len(indices)
    for bundle, point in shown:
        values = indices[point.label, bundle]
        assert (point.value, point.n) == (pytest.approx(fmean(values)), len(values))
        assert point.low is not None
        assert point.high is not None
        assert point.low < fmean(values) < point.high
    assert all(a.x < b.x for curve in curves for a, b in pairwise(curve.points))

    counts = shown_curves.weekly(store, SESSIONS, "south", FIRST, LAST)
    assert {p.label: p.value for p in counts[0].points if p.value is not None} == {
        point.label: point.n for bundle, point in shown if bundle == "synthetic-1"
    }
    assert shown_curves.weekly(store, SESSIONS, "south", LAST, LAST + timedelta(days=7)) == []

    [one, two] = shown_curves.cohorts(store, "empathy_index", FIRST, LAST)
    assert (one.group, one.axis, one.points[0].label[-3:]) == ("2026", "reporting month", "-01")
    assert shown_curves.cohorts(store, "empathy_index", FIRST, LAST, 2026) == [one, two]
    assert shown_curves.teams(store) == ["north", "south"]
    assert shown_curves.joining_years(store) == [2026]
    of_team = shown_curves.cohorts(store, SESSIONS, FIRST, LAST, team="south")
    assert {curve.group for curve in of_team} == {"2026"}
    monthly = {p.label: p.value for curve in of_team for p in curve.points if p.value is not None}
    assert monthly

    months = shown_curves.months(store)
    assert list(months) == sorted(months, reverse=True)
    month = date(2026, 2, 1)
    assert months[month] == ["synthetic-1"]
    cells = shown_curves.month_cells(store, month, "synthetic-1", ["explorations"])
    total = cells[ALL, ALL]
    parts = [cells[team, ALL].sessions or 0 for team in ("north", "south")]
    assert total.sessions == sum(parts)
    assert list(total.means) == ["explorations"]
    assert total.means["explorations"].n == total.sessions
    south = cells["south", ALL].sessions
    assert monthly[month.isoformat()] == south, "one cohort has all sessions"
