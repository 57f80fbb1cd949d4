"""The roll-ups' rows of ended sessions, computed in the database from scores and facts."""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.analytics.dialects import DIALECTS, Dialect
from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, SessionStatus, Stage
from stream_app.core.heads import PERCEIVED
from stream_app.store.tables import ROLLED_UP, archived_sessions, rollup_sessions

SCALE: Final = 10_000
MOST: Final = 100
"""Larger values count as this: a ratio has no bound, and a sum of squares has one."""

_RENAMED: Final = {"empathy_total": "s.empathy_total_mean"}


def insert_all(connection: Connection) -> None:
    """Every ended session."""
    connection.execute(sa.text(_statement(DIALECTS[connection.dialect.name], "")))


def insert_some(connection: Connection, session_ids: Sequence[str]) -> None:
    """Those of these sessions that have ended."""
    text = sa.text(_statement(DIALECTS[connection.dialect.name], "{}.session_id IN :ids"))
    some = text.bindparams(sa.bindparam("ids", expanding=True))
    if session_ids:
        connection.execute(some, {"ids": list(session_ids)})


def _statement(dialect: Dialect, condition: str) -> str:
    """INSERT … SELECT; the condition takes a table's name."""
    date = dialect.date("s.started_at")
    monday = dialect.monday(date)
    columns = {
        "session_id": "s.session_id",
        "bundle": "s.bundle",
        "day": date,
        "week": monday,
        "month": dialect.month_of_week(monday),
        "team": "coalesce(x.team, '')",
        "domain": "coalesce(x.domain, '')",
        "turns": "s.turns",
        "counsellor_turns": "s.counsellor_turns",
        **{name: _measure(dialect, name) for name in ROLLED_UP},
    }
    turns = ", ".join(
        f"{_mean(dialect.number('t.perceived', name))} AS {name}" for name in PERCEIVED
    )
    archived = f"SELECT a.session_id FROM {archived_sessions.name} AS a"
    return (
        f"INSERT INTO {rollup_sessions.name} ({', '.join(columns)})\n"
        f"SELECT {', '.join(columns.values())}\n"
        "FROM session_scores AS s\n"
        "JOIN sessions AS x ON x.session_id = s.session_id AND NOT x.hidden\n"
        f"LEFT JOIN (SELECT t.session_id, t.bundle, {turns} FROM turn_scores AS t\n"
        f"  WHERE t.stage = '{Stage.FINAL.value}' AND t.role = '{Role.COUNSELLOR.value}'"
        f"{_and(condition, 't')}\n"
        "  GROUP BY t.session_id, t.bundle) AS p\n"
        "  ON p.session_id = s.session_id AND p.bundle = s.bundle\n"
        f"WHERE s.status <> '{SessionStatus.OPEN.value}' AND s.started_at IS NOT NULL\n"
        f"AND s.session_id NOT IN ({archived})"
        f"{_and(condition, 's')}"
    )


def _and(condition: str, table: str) -> str:
    return f" AND {condition.format(table)}" if condition else ""


def _measure(dialect: Dialect, name: str) -> str:
    if name in PERCEIVED:
        return f"p.{name}"
    if name in MECHANISMS:
        return _scaled(dialect.number("s.mechanisms", name, "mean"))
    return _scaled(_RENAMED.get(name, f"s.{name}"))


def _scaled(value: str) -> str:
    return (
        f"CAST(round(CASE WHEN {value} > {MOST} THEN {MOST} ELSE {value} END * {SCALE}) AS bigint)"
    )


def _mean(value: str) -> str:
    """The mean of whole numbers, rounded: the same in any order of the rows."""
    return f"CAST(round(1.0 * sum({_scaled(value)}) / count({value})) AS bigint)"
