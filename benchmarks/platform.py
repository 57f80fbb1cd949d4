"""Writes a synthetic platform of any size to PostgreSQL, with the rows that ended sessions have.

The server makes the rows itself (INSERT … SELECT over generate_series), because a platform of 10⁷
turns is too large to be sent row by row. Scores are drawn from a pool of random ones that have all
heads of a bundle. Texts are purged, as in sessions of this age. Two connections write at once, into
tables without indexes and without a write-ahead log; the indexes are created at the end. One
probability of each score is varied: PostgreSQL would unpack equal scores once and remember them
(Memoize), and live turns hardly ever have equal ones.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, Expressed, Level
from stream_app.core.measures.heads import Dimension, Head, HeadKind
from stream_app.inference.bundles.bundle import Manifest
from stream_app.store.database import head_columns, tables
from stream_app.store.stream.repository import Store

TURNS_A_SESSION: Final = 20
MONTHS: Final = 12
DAYS: Final = 365
TEAMS: Final = 10
TURNS_A_COUNSELLOR: Final = 5_000
POOL: Final = 256
"""Different scores of each role."""
ALERT_EVERY: Final = 10
OPEN_EVERY: Final = 1_000
SESSIONS_AT_A_TIME: Final = 12_500
WRITERS: Final = 2
"""Connections that write, or create indexes, at once."""
END: Final = datetime(2026, 7, 1, tzinfo=UTC)
TABLES: Final = (
    "sessions",
    "session_speakers",
    "turns",
    "turn_scores",
    "session_scores",
    "alerts",
    "outcomes",
)

_SCORES: Final = (*head_columns.row(Expressed(), {}, {}), "abstained", "confidence")


def write(store: Store, manifest: Manifest, turns: int, say: Callable[[str], None]) -> int:
    """Fill an empty database that has the newest schema; returns the number of sessions."""
    sessions = max(1, turns // TURNS_A_SESSION)
    counsellors = max(20, turns // TURNS_A_COUNSELLOR)
    numbers = {
        "turns": TURNS_A_SESSION,
        "counsellors": counsellors,
        "teams": TEAMS,
        "clients": max(1, sessions // 3),
        "pool": POOL,
        "alert": ALERT_EVERY,
        "open": OPEN_EVERY,
        "first": END - timedelta(days=DAYS),
        "span": DAYS * 86400.0 / sessions,
        "bundle": manifest.bundle_id,
    }
    with store.transaction() as connection:
        _register(connection, manifest)
        _fill_pool(connection, manifest.heads)
    with _without_indexes(store), ThreadPoolExecutor(WRITERS) as writers:
        begins = range(0, sessions, SESSIONS_AT_A_TIME)
        parts = [(begin, min(sessions, begin + SESSIONS_AT_A_TIME)) for begin in begins]
        for end in writers.map(partial(_write_part, store, numbers), parts):
            say(f"{end * TURNS_A_SESSION:,} turns written")
    with store.transaction() as connection:
        connection.exec_driver_sql("DROP TABLE score_pool")
        for table in TABLES:
            connection.exec_driver_sql(f"ANALYZE {table}")
    return sessions


def _write_part(store: Store, numbers: Mapping[str, Any], part: tuple[int, int]) -> int:
    """Write the sessions from a number on; returns the number that follows the last."""
    begin, end = part
    values = {**numbers, "begin": begin, "end": end - 1}
    with store.transaction() as connection:
        for statement in _STATEMENTS:
            named = {name: value for name, value in values.items() if f":{name}" in statement}
            connection.execute(sa.text(statement), named)
    return end


@contextmanager
def _without_indexes(store: Store) -> Iterator[None]:
    """Drop the indexes of the empty tables, and create the same ones at the end."""
    create = []
    with store.transaction() as connection:
        for table in TABLES:
            of_table = {"table": table}
            keys = connection.execute(sa.text(_PRIMARY_KEY), of_table).all()
            for name, definition in keys:
                create.append(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")
                connection.exec_driver_sql(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
            for name, definition in connection.execute(sa.text(_INDEXES), of_table).all():
                create.append(definition)
                connection.exec_driver_sql(f"DROP INDEX {name}")
            connection.exec_driver_sql(f"ALTER TABLE {table} SET UNLOGGED")
    yield
    with ThreadPoolExecutor(WRITERS) as workers:
        list(workers.map(partial(_run, store), create))


def _run(store: Store, statement: str) -> None:
    with store.transaction() as connection:
        connection.exec_driver_sql(statement)


def _register(connection: Connection, manifest: Manifest) -> None:
    connection.execute(
        sa.text(
            "INSERT INTO bundles (bundle, digest, manifest, first_used_at) "
            "VALUES (:bundle, '', CAST(:manifest AS jsonb), :at)"
        ),
        {
            "bundle": manifest.bundle_id,
            "manifest": msgspec.json.encode(manifest).decode(),
            "at": END - timedelta(days=DAYS),
        },
    )


def _fill_pool(connection: Connection, heads: Sequence[Head]) -> None:
    """The pool has scores as the worker stores them."""
    scores = tables.turn_scores.c
    pool = sa.Table(
        "score_pool",
        sa.MetaData(),
        sa.Column("role", sa.Text, primary_key=True),
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("levels", sa.ARRAY(sa.Integer)),
        *(sa.Column(name, scores[name].type) for name in _SCORES),
    )
    pool.create(connection)
    connection.execute(sa.insert(pool), list(_pool(heads, random.Random(1))))


def _pool(heads: Sequence[Head], chance: random.Random) -> Iterator[Mapping[str, Any]]:
    for role in (Role.CLIENT, Role.COUNSELLOR):
        own = [head for head in heads if role in head.roles]
        for number in range(POOL):
            parts: dict[str, dict[str, Any]] = {name: {} for name in head_columns.NAMES}
            levels: list[int | None] = [None, None, None]
            for head in own:
                if head.dimension is Dimension.OUTCOME:
                    continue
                spread = _spread(chance, len(head.labels))
                scored: Any = dict(zip(head.labels, spread, strict=True))
                if head.kind is HeadKind.LEVEL:
                    level = max(range(len(spread)), key=spread.__getitem__)
                    spans = [(0, 24)] if level else []
                    scored = Level(level, spread, spans)
                    if head.name in MECHANISMS:
                        levels[MECHANISMS.index(head.name)] = level
                elif head.dimension is Dimension.PERCEIVED:
                    scored = spread[-1]
                parts[head.dimension.value][head.name] = scored
            abstained = [head.name for head in own if chance.random() < 0.03]
            yield {
                "role": role.value,
                "n": number,
                "levels": levels,
                "abstained": abstained,
                "confidence": chance.uniform(0.5, 1.0),
                **head_columns.row(
                    Expressed(parts["expressed"]), parts["perceived"], parts["client"]
                ),
            }


def _spread(chance: random.Random, count: int) -> list[float]:
    weights = [chance.random() ** 2 for _ in range(count)]
    return [round(weight / sum(weights), 4) for weight in weights]


_PRIMARY_KEY: Final = (
    "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint "
    "WHERE conrelid = CAST(:table AS regclass) AND contype = 'p'"
)
_INDEXES: Final = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = :table"
_ROLE: Final = "CASE WHEN t.seq % 2 = 0 THEN 'client' ELSE 'counsellor' END"
_AT: Final = "CAST(:first AS timestamptz) + make_interval(secs => i * :span)"
_X: Final = (
    "FROM (SELECT i, 's' || i AS id, md5('c' || i % :counsellors) AS counsellor, "
    "md5('k' || i % :clients) AS client, 'team ' || i % :teams AS team, "
    f"{_AT} AS began, (i * 7919 % 1000) / 1000.0 AS u, (i * 104729 % 997) / 997.0 AS v "
    "FROM generate_series(CAST(:begin AS bigint), CAST(:end AS bigint)) AS i) AS x"
)


_VARIED: Final = ("engagement", "distress_yes")
"""Columns that get another probability, if they have one: few turns have equal scores."""
_POOLED: Final = {
    name: f"CASE WHEN p.{name} IS NOT NULL THEN ((x.i * :turns + t.seq) % 10000) / 10000.0 END"
    if name in _VARIED
    else f"p.{name}"
    for name in _SCORES
}
_STATEMENTS: Final = (
    "INSERT INTO sessions (session_id, domain, channel, team, lang, consent, started_at, "
    "last_activity_at, ended_at, stored_at, withdrawn, hidden) SELECT x.id, "
    "(ARRAY['counselling', 'peer-support', 'customer-service'])[CAST(1 + x.i % 3 AS integer)], "
    "(ARRAY['chat', 'mail'])[CAST(1 + x.i % 2 AS integer)], x.team, 'en', true, x.began, "
    "x.began + interval '20 minutes', "
    "CASE WHEN x.i % :open <> 0 THEN x.began + interval '20 minutes' END, "
    f"x.began + interval '20 minutes', false, false {_X}",
    "INSERT INTO session_speakers (session_id, speaker, role, reads) "
    f"SELECT x.id, x.counsellor, 'counsellor', true {_X}",
    "INSERT INTO session_speakers (session_id, speaker, role, reads) "
    f"SELECT x.id, x.client, 'client', true {_X}",
    "INSERT INTO turns (session_id, seq, speaker, role, chars, words, occurred_at, late, "
    f"produced_at, stored_at) SELECT x.id, t.seq, "
    f"CASE WHEN t.seq % 2 = 0 THEN x.client ELSE x.counsellor END, {_ROLE}, "
    "20 + (x.i * 7 + t.seq * 13) % 200, 4 + (x.i * 7 + t.seq * 13) % 40, "
    "x.began + make_interval(secs => t.seq * 60), false, x.began, x.began "
    f"{_X}, "
    "generate_series(0, CAST(:turns AS integer) - 1) AS t(seq)",
    "INSERT INTO turn_scores (session_id, seq, stage, bundle, role, occurred_at, late, truncated, "
    "emotional_reactions, interpretations, explorations, empathy_total, low_empathy_risk, "
    f"{', '.join(_POOLED)}) "
    "SELECT x.id, t.seq, 'final', :bundle, p.role, x.began + make_interval(secs => t.seq * 60), "
    "false, false, p.levels[1], p.levels[2], p.levels[3], "
    "p.levels[1] + p.levels[2] + p.levels[3], "
    f"CASE WHEN p.role = 'counsellor' THEN p.confidence / 2 END, {', '.join(_POOLED.values())} "
    f"{_X} "
    "CROSS JOIN generate_series(0, CAST(:turns AS integer) - 1) AS t(seq) "
    f"JOIN score_pool AS p ON p.role = {_ROLE} AND p.n = (x.i * 31 + t.seq * 17) % :pool",
    "INSERT INTO session_scores (session_id, bundle, status, started_at, last_activity_at, turns, "
    "counsellor_turns, late_turns, withheld_turns, low_empathy_risk, empathy_index, empathy_low, "
    "empathy_high, answered_share, missed_opportunities, mechanisms, empathy_total_mean, "
    "talk_share, reflection_to_question, complex_reflection_share, open_question_share, "
    "activity_hour) SELECT x.id, :bundle, "
    "CASE WHEN x.i % :open <> 0 THEN 'closed' ELSE 'open' END, x.began, "
    "x.began + interval '20 minutes', :turns, :turns / 2, 0, 0, x.u, x.v, x.v - 0.05, x.v + 0.05, "
    "x.u, '[]', ARRAY["
    + ", ".join(f"{part}, {part}, {part} / 2" for part in ("x.u", "x.v", "(x.u + x.v)"))
    + "], x.u + x.v, 0.5, 1 + x.u, x.v, x.u, "
    "CAST(floor(extract(epoch FROM x.began + interval '20 minutes') / 3600) AS integer) "
    f"{_X}",
    "INSERT INTO alerts (alert_id, episode_id, rule, severity, labels, session_id, bundle, state, "
    'previous, episode, seq, occurred_at, reason, value, threshold, "values", turns, '
    "rules_digest) SELECT 'a' || x.i || r.state, 'e' || x.i, "
    "(ARRAY['low empathy', 'no answer', 'distress'])[CAST(1 + x.i % 3 AS integer)], "
    "'warning', '{}', x.id, :bundle, "
    "r.state, 'inactive', 1, 9, x.began + r.after, '', 0.8, 0.7, '{}', '[]', 'synthetic' "
    f"{_X}, "
    "(VALUES ('firing', interval '9 minutes'), ('resolved', interval '19 minutes')) "
    "AS r(state, after) WHERE x.i % :alert = 0",
    "INSERT INTO outcomes (outcome_id, session_id, seq, kind, value, occurred_at) "
    "SELECT 'o' || x.i, x.id, NULL, 'rating', 1 + x.i % 5, x.began + interval '21 minutes' "
    f"{_X}",
)
