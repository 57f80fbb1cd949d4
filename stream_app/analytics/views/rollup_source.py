"""The roll-ups' rows of ended sessions, computed in the database from scores and facts.

Sums over a session's turns come first (``rollup_turns``): they unpack each turn's scores once. The
session's own row (``rollup_sessions``) takes its means of perceived empathy from them.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.analytics.views import heads
from stream_app.analytics.views.dialects import DIALECTS, Dialect
from stream_app.analytics.views.facts import of_session
from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, SessionStatus, Stage
from stream_app.core.measures.catalogue import Measure, Use, used
from stream_app.core.measures.heads import LEVELS, PERCEIVED
from stream_app.store.database.tables import (
    TURN_SUMS,
    WORDS_FROM,
    archived_sessions,
    rollup_sessions,
    rollup_turns,
)

SESSIONS_AT_A_TIME: Final = 1000
SCALE: Final = 10_000
MOST: Final = 100
"""Larger values count as this: a ratio has no bound, and a sum of squares has one."""

_ENDED: Final = (
    f"s.status <> '{SessionStatus.OPEN.value}' AND s.started_at IS NOT NULL AND NOT EXISTS "
    f"(SELECT 1 FROM {archived_sessions.name} AS a WHERE a.session_id = s.session_id)"
)


def insert_all(connection: Connection) -> None:
    """Every ended session, in the order of time: rows of the same time lie close together."""
    query = sa.text(
        f"SELECT DISTINCT s.started_at, s.session_id FROM session_scores AS s WHERE {_ENDED} "
        "ORDER BY s.started_at, s.session_id"
    )
    found = list(dict.fromkeys(row.session_id for row in connection.execute(query)))
    for first in range(0, len(found), SESSIONS_AT_A_TIME):
        insert_some(connection, found[first : first + SESSIONS_AT_A_TIME])


def insert_some(connection: Connection, session_ids: Sequence[str]) -> None:
    """Insert those of these sessions that have ended."""
    dialect = DIALECTS[connection.dialect.name]
    if not session_ids:
        return
    for statement in (_turns_statement(dialect), _sessions_statement(dialect)):
        some = sa.text(statement).bindparams(sa.bindparam("ids", expanding=True))
        connection.execute(some, {"ids": list(session_ids)})


def _sessions_statement(dialect: Dialect) -> str:
    """INSERT … SELECT of the sessions ``:ids``."""
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
        **{each.short: _measure(dialect, each) for each in used(Use.ROLL_UPS)},
    }
    return (
        f"INSERT INTO {rollup_sessions.name} ({', '.join(columns)})\n"
        f"SELECT {', '.join(columns.values())}\n"
        "FROM session_scores AS s\n"
        "JOIN sessions AS x ON x.session_id = s.session_id AND x.session_id IN :ids\n"
        "  AND NOT x.hidden\n"
        f"LEFT JOIN {rollup_turns.name} AS p ON p.session_id = s.session_id\n"
        f"  AND p.bundle = s.bundle AND p.role = '{Role.COUNSELLOR.value}'\n"
        f"WHERE {_ENDED} AND s.session_id IN :ids"
    )


def _turns_statement(dialect: Dialect) -> str:
    """Sum the final scores of a session, bundle and role, as ``_sessions_statement`` does."""
    date = dialect.date("s.started_at")
    sums = dict(_sums(dialect))
    columns = {
        "session_id": "s.session_id",
        "bundle": "s.bundle",
        "role": "g.role",
        "day": date,
        "month": dialect.month_of_week(dialect.monday(date)),
        **{name: f"coalesce(x.{name}, '')" for name in ("team", "domain", "channel", "lang")},
        **{name: f"g.{name}" for name in TURN_SUMS},
    }
    return (
        f"INSERT INTO {rollup_turns.name} ({', '.join(columns)})\n"
        f"SELECT {', '.join(columns.values())}\n"
        "FROM (SELECT t.session_id, t.bundle, t.role, "
        + ", ".join(f"{sums[name]} AS {name}" for name in TURN_SUMS)
        + f"\n  FROM turn_scores AS t LEFT JOIN "
        "(SELECT session_id, seq, words FROM turns WHERE session_id IN :ids) AS w "
        "ON w.session_id = t.session_id AND w.seq = t.seq\n"
        f"  WHERE t.stage = '{Stage.FINAL.value}' AND t.session_id IN :ids\n"
        "  GROUP BY t.session_id, t.bundle, t.role) AS g\n"
        "JOIN session_scores AS s ON s.session_id = g.session_id AND s.bundle = g.bundle\n"
        "JOIN sessions AS x ON x.session_id = s.session_id AND NOT x.hidden\n"
        f"WHERE {_ENDED} AND s.session_id IN :ids"
    )


def _sums(dialect: Dialect) -> Iterator[tuple[str, str]]:
    """Aggregates of the columns that ``TURN_SUMS`` names."""
    yield "turns", "count(*)"
    yield "late", _count("t.late")
    yield "truncated", _count("t.truncated")
    yield "confidence", f"sum({_scaled('t.confidence')})"
    yield "words_n", "count(w.words)"
    yield "words", "coalesce(sum(w.words), 0)"
    for number, (first, next_one) in enumerate(pairwise((*WORDS_FROM, None))):
        below = "" if next_one is None else f" AND w.words < {next_one}"
        yield f"words_{number}", _count(f"w.words >= {first}{below}")
    for mechanism in MECHANISMS:
        abstained = dialect.contains("t.abstained", mechanism)
        expected = " + ".join(
            f"{place} * {heads.level_number(dialect, 't', mechanism, place)}"
            for place in range(1, len(LEVELS))
        )
        yield from _head(mechanism, expected, abstained)
        for level in range(len(LEVELS)):
            known = f"t.{mechanism} = {level} AND NOT {abstained}"
            yield f"{mechanism}_level_{level}", _count(known)
    for name in PERCEIVED:
        said = heads.number(dialect, "t", "perceived", name)
        yield from _head(name, said, dialect.contains("t.abstained", name))


def _head(name: str, value: str, abstained: str) -> Iterator[tuple[str, str]]:
    yield f"{name}_n", f"count({value})"
    yield f"{name}_total", f"coalesce(sum({_scaled(value)}), 0)"
    yield f"{name}_abstained", _count(f"({value}) IS NOT NULL AND {abstained}")


def _count(condition: str) -> str:
    return f"count(CASE WHEN {condition} THEN 1 END)"


def _measure(dialect: Dialect, measure: Measure) -> str:
    if measure.name in PERCEIVED:
        name = measure.name
        return f"CAST(round(1.0 * p.{name}_total / nullif(p.{name}_n, 0)) AS bigint)"
    return _scaled(of_session(dialect, measure))


def _scaled(value: str) -> str:
    return (
        f"CAST(round(CASE WHEN {value} > {MOST} THEN {MOST} ELSE {value} END * {SCALE}) AS bigint)"
    )
