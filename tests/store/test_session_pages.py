"""Pages of sessions on PostgreSQL: however many there are, a page visits few rows."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from servers.postgres import Server
from stream_app.store.sessions import filter_choices, sessions
from stream_app.store.sessions.scope import ALL_SESSIONS, Scope
from stream_app.store.sessions.sessions import Order, SessionFilter
from stream_app.store.stream.repository import Store
from tests.store import databases

SESSIONS = 20_000
PAGE = 50
VISITED = 60 * PAGE
"""Rows of all tables for one page; a tenth of the sessions passes some filters."""
ROWS = (
    "INSERT INTO sessions (session_id, team, domain, started_at, withdrawn, hidden) SELECT "
    "'s' || i, 'team ' || i % 10, 'counselling', {at}, false, false {source}",
    "INSERT INTO session_scores (session_id, bundle, status, started_at, last_activity_at, turns, "
    "counsellor_turns, late_turns, withheld_turns, low_empathy_risk, mechanisms, "
    "activity_hour) SELECT 's' || i, b, 'closed', {at}, {at} + b * interval '1 second', "
    "2, 1, 0, 0, (i % 100) / 100.0, "
    "'{{}}', floor(extract(epoch FROM {at}) / 3600) {source}, generate_series(1, 2) AS b",
    "INSERT INTO session_speakers (session_id, speaker, role, reads) SELECT "
    "'s' || i, 'c' || i % 500, 'counsellor', true {source}",
    "INSERT INTO session_speakers (session_id, speaker, role, reads) SELECT "
    "'s' || i, 'k' || i, 'client', true {source}",
    "INSERT INTO alerts (alert_id, episode_id, rule, severity, labels, session_id, bundle, state, "
    'previous, episode, occurred_at, reason, "values", turns, rules_digest) SELECT '
    "'a' || i, 'e' || i, 'rare', 'warning', '{{}}', 's' || i, '2', 'firing', 'inactive', 1, {at}, "
    "'', '{{}}', '[]', '' {source} WHERE i % 400 = 0",
)
AT = "timestamptz '2026-01-01 00:00:00Z' + i / 2 * interval '1 minute'"
"""Two sessions begin at the same time."""


@pytest.fixture(scope="module")
def many(server: Server) -> Iterator[Store]:
    url = databases.postgresql(server)
    store = databases.open_store(url)
    source = f"FROM generate_series(1, {SESSIONS}) AS i"
    with store.transaction() as connection:
        for statement in ROWS:
            connection.execute(sa.text(statement.format(at=AT, source=source).replace(":", r"\:")))
        connection.exec_driver_sql("ANALYZE")
    yield store
    store.close()
    server.drop(url)


class Visited:
    """Counts the rows that the plans of statements visit."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.rows = 0
        self._inside = False

    def __enter__(self) -> "Visited":
        event.listen(self._store.engine, "before_cursor_execute", self._explain)
        return self

    def __exit__(self, *_: object) -> None:
        event.remove(self._store.engine, "before_cursor_execute", self._explain)

    def _explain(self, connection: Any, _: Any, statement: str, given: Any, *more: Any) -> None:
        assert more
        if self._inside or not statement.lstrip().startswith(("SELECT", "WITH")):
            return
        self._inside = True
        plan = connection.exec_driver_sql(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", given
        ).scalar()
        self._inside = False
        self.rows += visited(plan[0]["Plan"])


def visited(node: dict[str, Any]) -> int:
    """Rows that scans of tables return or discard."""
    below = sum(visited(part) for part in node.get("Plans", ()))
    if "Relation Name" not in node:
        return below
    gone = sum(value for name, value in node.items() if name.startswith("Rows Removed by"))
    return below + int((node["Actual Rows"] + gone) * node["Actual Loops"])


BY_TEAM = SessionFilter(team="team 3")
LIST = {
    "all": (ALL_SESSIONS, SessionFilter(), Order.START),
    "by activity": (ALL_SESSIONS, SessionFilter(), Order.ACTIVITY),
    "by id": (ALL_SESSIONS, SessionFilter(), Order.ID),
    "a team": (ALL_SESSIONS, BY_TEAM, Order.START),
    "the scope of a team": (Scope(team="team 3"), SessionFilter(), Order.START),
    "a counsellor": (ALL_SESSIONS, SessionFilter(counsellor="c77"), Order.START),
    "before a day": (
        ALL_SESSIONS,
        SessionFilter(started_before=datetime(2026, 1, 3, tzinfo=UTC)),
        Order.START,
    ),
    "a risk": (ALL_SESSIONS, SessionFilter(risk_from=0.9), Order.START),
    "a rare rule": (ALL_SESSIONS, SessionFilter(rule="rare"), Order.START),
}


@pytest.mark.parametrize("name", LIST)
def test_first_and_later_pages_visit_few_rows(many: Store, name: str) -> None:
    scope, chosen, order = LIST[name]
    cursor, seen = None, []
    for number in range(4):
        with Visited(many) as counted:
            page = sessions.find(many, scope, chosen, order, cursor, PAGE)
        assert counted.rows < VISITED, f"page {number + 1}"
        assert page.items
        seen += [card.session_id for card in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen))
    assert {card.bundle for card in page.items} == {"2"}, "the bundle that scored last"


def test_pages_have_every_session_once_in_the_order_of_time(many: Store) -> None:
    cursor, seen = None, []
    while True:
        page = sessions.find(many, ALL_SESSIONS, BY_TEAM, Order.START, cursor, 500)
        seen += [(card.started_at, card.session_id) for card in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == SESSIONS // 10
    assert seen == sorted(seen, reverse=True)


@pytest.mark.parametrize("scope", [ALL_SESSIONS, Scope(team="team 3")])
def test_choices_of_filters_visit_few_rows(many: Store, scope: Scope) -> None:
    with Visited(many) as counted:
        teams = filter_choices.teams(many, scope)
        rules = filter_choices.alert_rules(many, scope)
    assert teams == ([scope.team] if scope.team else [f"team {n}" for n in range(10)])
    assert rules == (["rare"] if scope.team is None else [])
    assert counted.rows < VISITED
    with Visited(many) as counted:
        found = filter_choices.counsellors(many, scope, 1000)
    with many.reading() as connection:
        query = sa.text(
            "SELECT DISTINCT speaker FROM session_speakers JOIN sessions USING (session_id) "
            "WHERE role = 'counsellor' AND team = coalesce(:team, team) ORDER BY 1"
        )
        assert found == list(connection.scalars(query, {"team": scope.team}))
    if scope.team is None:
        assert counted.rows < 60 * len(found)
