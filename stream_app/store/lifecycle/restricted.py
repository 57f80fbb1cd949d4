"""Removes outputs that are restricted now from the rows that were stored before.

Of alerts whose values came from such outputs remains that there was one, and what people did about
it; the sessions' roll-ups are computed again. Runs once for each value of the setting, in small
transactions.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Severity
from stream_app.core.measures.heads import PERCEIVED, Dimension
from stream_app.core.session.restrictions import (
    NO_RESTRICTIONS,
    Outputs,
    Restrictions,
    variables_of,
)
from stream_app.store.database import head_columns
from stream_app.store.database.tables import (
    alerts,
    installation,
    rollup_marks,
    rollup_means,
    rollup_sessions,
    rollup_turn_days,
    rollup_turns,
    session_scores,
    sessions,
    shadow_scores,
    turn_scores,
)
from stream_app.store.stream.repository import Store

SESSIONS_PER_BATCH: Final = 50
DONE: Final = "restrictions"
RULE: Final = "restricted"
"""Replaces the name of the rule: `crisis-language` would say what was detected."""
REASON: Final = "A policy restricts what this alert rested on."


def remove(store: Store, restrictions: Restrictions) -> Iterator[int]:
    """Remove restricted outputs; yields the number of sessions after each step.

    Yields nothing if it has been done for this value of the setting.
    """
    digest = hashlib.blake2b(msgspec.json.encode(_plain(restrictions)), digest_size=16).hexdigest()
    if restrictions == NO_RESTRICTIONS or _done(store) == digest:
        return
    if Dimension.PERCEIVED in restrictions.everywhere:
        _remove_from_roll_ups(store)
    last = ""
    while True:
        with store.transaction() as connection:
            some = _sessions_after(connection, last)
            for row in some:
                restricted = restrictions.of(row.domain, row.channel, row.team)
                if restricted:
                    _remove(connection, row.session_id, restricted)
        if not some:
            break
        last = some[-1].session_id
        yield len(some)
    with store.transaction() as connection:
        store.upsert(connection, installation, [{"name": DONE, "value": digest}], keep=False)


def _remove_from_roll_ups(store: Store) -> None:
    """Perceived measures, also of archived sessions, whose roll-ups are not computed again."""
    with store.transaction() as connection:
        measured = [rollup_sessions.c[name] for name in PERCEIVED]
        some = sa.or_(*(column.is_not(None) for column in measured))
        nothing = dict.fromkeys(PERCEIVED)
        connection.execute(sa.update(rollup_sessions).where(some).values(nothing))
    for table in (rollup_turns, rollup_turn_days):
        sums = [f"{head}_{part}" for head in PERCEIVED for part in ("n", "total", "abstained")]
        with store.transaction() as connection:
            some = sa.or_(*(table.c[name] != 0 for name in sums))
            connection.execute(sa.update(table).where(some).values(dict.fromkeys(sums, 0)))
    with store.transaction() as connection:
        of_them = rollup_means.c.measure.in_(PERCEIVED)
        connection.execute(sa.delete(rollup_means).where(of_them))


def _plain(restrictions: Restrictions) -> Any:
    def names(outputs: Outputs) -> list[str]:
        return sorted(output.value for output in outputs)

    return [
        names(restrictions.everywhere),
        *(
            sorted((key, names(outputs)) for key, outputs in part.items())
            for part in (restrictions.by_team, restrictions.by_domain, restrictions.by_channel)
        ),
    ]


def _done(store: Store) -> str | None:
    query = sa.select(installation.c.value).where(installation.c.name == DONE)
    with store.reading() as connection:
        return connection.scalar(query)


def _sessions_after(connection: Connection, last: str) -> list[sa.Row[Any]]:
    columns = (sessions.c[name] for name in ("session_id", "domain", "channel", "team"))
    query = sa.select(*columns).where(sessions.c.session_id > last)
    return list(connection.execute(query.order_by(sessions.c.session_id).limit(SESSIONS_PER_BATCH)))


def _remove(connection: Connection, session_id: str, restricted: Outputs) -> None:
    _remove_from_turns(connection, session_id, restricted)
    connection.execute(sa.delete(shadow_scores).where(shadow_scores.c.session_id == session_id))
    of_session = session_scores.c.session_id == session_id
    connection.execute(sa.update(session_scores).where(of_session).values(outcome_risks={}))
    _remove_from_alerts(connection, session_id, restricted)
    connection.execute(sa.insert(rollup_marks).values(session_id=session_id))


def _remove_from_turns(connection: Connection, session_id: str, restricted: Outputs) -> None:
    score = turn_scores
    wanted = [c for c in (score.c.client, score.c.perceived) if Dimension(c.name) in restricted]
    query = sa.select(score).where(score.c.session_id == session_id)
    for row in connection.execute(query).mappings().all():
        names = {name for column in wanted for name in row[column.name]}
        restricts_client = Dimension.CLIENT in restricted and row["role"] == Role.CLIENT.value
        intents = {} if restricts_client else row["intents"]
        if names or intents != row["intents"]:
            same = (score.c[column.name] == row[column.name] for column in score.primary_key)
            connection.execute(
                sa.update(score)
                .where(*same)
                .values(
                    abstained=[name for name in row["abstained"] if name not in names],
                    intents=intents,
                    **{column.name: {} for column in wanted},
                    **{name: None for column in wanted for name in head_columns.NAMES[column.name]},
                )
            )


def _remove_from_alerts(connection: Connection, session_id: str, restricted: Outputs) -> None:
    """All transitions of an alert: the last one often has no values of its own."""
    prefixes = variables_of(restricted)
    query = sa.select(alerts.c.episode_id, alerts.c["values"]).where(
        alerts.c.session_id == session_id
    )
    episodes = {
        episode_id
        for episode_id, values in connection.execute(query).all()
        if any(name.startswith(prefixes) for name in values)
    }
    for episode_id in sorted(episodes):
        connection.execute(
            sa.update(alerts)
            .where(alerts.c.episode_id == episode_id)
            .values(
                rule=RULE,
                severity=Severity.INFO.value,
                labels={},
                seq=None,
                turns=[],
                reason=REASON,
                values={},
                value=None,
                threshold=None,
                protocol=None,
            )
        )
