"""Roll-ups of turns: the sums of single turns, by day, whatever happens to their sessions."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from stream_app.analytics.archive import archive
from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import schema
from stream_app.store.database import tables
from stream_app.store.database.tables import WORDS_FROM
from stream_app.store.lifecycle import erasure
from stream_app.store.stream.repository import Store
from tests.analytics import archiving
from tests.analytics.test_rollups import DAYS, session
from tests.store import batches

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SINGLE = """
SELECT s.date, t.bundle, t.team, t.role, count(*) AS turns, sum(t.words) AS words,
  sum(t.confidence) AS confidence,
  coalesce(sum(t.emotional_reactions_expected), 0) AS expected,
  count(t.emotional_reactions_expected) AS scored,
  count(CASE WHEN t.emotional_reactions_abstained THEN 1 END) AS abstained,
  count(CASE WHEN t.explorations = 1 THEN 1 END) AS weak,
  count(CASE WHEN t.late THEN 1 END) AS late,
  count(DISTINCT t.session_id) AS sessions
FROM fact_turn t JOIN fact_session s ON s.session_id = t.session_id AND s.bundle = t.bundle
WHERE t.stage = 'final' AND s.status <> 'open'
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""
SUMS = """
SELECT date, bundle, team, role, sum(turns) AS turns, sum(words_sum) AS words,
  sum(confidence_sum) AS confidence,
  sum(emotional_reactions_sum) AS expected,
  sum(emotional_reactions_turns) AS scored,
  sum(emotional_reactions_abstained) AS abstained,
  sum(explorations_level_1) AS weak,
  sum(late_turns) AS late,
  sum(sessions) AS sessions
FROM fact_turn_day GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""


def found(store: Store, query: str) -> list[dict[str, Any]]:
    with store.reading() as connection:
        rows = connection.execute(sa.text(query)).mappings()
        return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    """Sums have other types in PostgreSQL."""
    return value if value is None or isinstance(value, str | date) else float(value)


def single(store: Store) -> list[Any]:
    """The sums of the turns themselves; stored ones are rounded to ten-thousandths."""
    return [
        {n: pytest.approx(v, abs=0.01) if isinstance(v, float) else v for n, v in row.items()}
        for row in found(store, SINGLE)
    ]


@pytest.fixture
def filled(store: Store) -> Store:
    """Sessions of several days and teams, one reopened by a later turn."""
    for number in range(12):
        store.commit(batches.process(session(number, DAYS[number % len(DAYS)])))
    again = batches.turn(9, session_id="s4", occurred_at=f"{DAYS[4]}T12:00:00Z")
    store.commit(batches.process([again], store.load_states(["s4"], batches.BUNDLE)))
    list(rollups.update(store))
    schema.create_views(store)
    return store


def test_days_are_the_sums_of_the_ended_sessions_turns(filled: Store) -> None:
    sums = found(filled, SUMS)
    assert len(sums) > 10
    assert sums == single(filled)
    bins = found(
        filled, "SELECT words_from, sum(turns) AS turns FROM fact_turn_day_words GROUP BY 1"
    )
    assert {row["words_from"] for row in bins} == set(WORDS_FROM)
    assert sum(row["turns"] for row in bins) == sum(row["turns"] for row in sums)


def test_erased_and_hidden_sessions_leave_the_days(filled: Store) -> None:
    before = sum(row["sessions"] for row in found(filled, SUMS))
    erasure.erase(filled, ["s1"], NOW)
    with filled.transaction() as connection:
        hide = sa.update(tables.sessions).where(tables.sessions.c.session_id == "s2")
        connection.execute(hide.values(hidden=True))
        connection.execute(sa.insert(tables.rollup_marks).values(session_id="s2"))
    list(rollups.update(filled))
    sums = found(filled, SUMS)
    assert sums == single(filled)
    assert sum(row["sessions"] for row in sums) == before - 4


def test_archived_sessions_stay_in_the_days(filled: Store, tmp_path: Path) -> None:
    archiving.purge_texts(filled)
    before = found(filled, SUMS)
    moved = sum(each.sessions for each in archive.archive(filled, tmp_path, date(2026, 2, 1), NOW))
    assert moved
    assert found(filled, SUMS) == before
    rollups.rebuild(filled)
    assert found(filled, SUMS) == before
    assert len(found(filled, SINGLE)) < len(before)


def test_days_that_are_too_small_are_not_shown(filled: Store) -> None:
    assert not found(filled, "SELECT * FROM shown_day_turn")
    with filled.transaction() as connection:
        connection.execute(sa.update(tables.rollup_cells).values(hidden=False))
        connection.execute(sa.update(tables.rollup_turn_days).values(sessions=11))
    shown = found(filled, "SELECT * FROM shown_day_turn ORDER BY date, role")
    assert {(row["date"], row["role"]) for row in shown} == {
        (row["date"], row["role"]) for row in found(filled, SUMS)
    }
    assert all(row["confidence"] is None for row in shown), "fewer than 11 turns"
