"""Removes outputs that are restricted now from the rows that were stored before.

Alerts whose values came from such outputs lose values and reason; the sessions' roll-ups are
computed again. Runs once for each value of the setting, in small transactions.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from stream_app.contracts.events import Role
from stream_app.core.measures.heads import Dimension
from stream_app.core.session.restrictions import NO_RESTRICTIONS, Outputs, Restrictions
from stream_app.store.database.tables import (
    alerts,
    installation,
    rollup_marks,
    session_scores,
    sessions,
    shadow_scores,
    turn_scores,
)
from stream_app.store.stream.repository import Store

SESSIONS_PER_BATCH: Final = 50
DONE: Final = "restrictions"
REASON: Final = "A policy restricts what this alert rested on."
_PREFIXES: Final = {
    Dimension.CLIENT: (
        *("client.", "outcome.", "waiting_distress"),
        *("crisis_language", "client_turns_since_crisis", "intent."),
    ),
    Dimension.PERCEIVED: ("perceived.", "outcome."),
}
"""How the names of rule variables begin that are computed from an output."""


def remove(store: Store, restrictions: Restrictions) -> Iterator[int]:
    """Remove restricted outputs; yields the number of sessions after each step.

    Yields nothing if it has been done for this value of the setting.
    """
    digest = hashlib.blake2b(msgspec.json.encode(_plain(restrictions)), digest_size=16).hexdigest()
    if restrictions == NO_RESTRICTIONS or _done(store) == digest:
        return
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
                )
            )


def _remove_from_alerts(connection: Connection, session_id: str, restricted: Outputs) -> None:
    prefixes = tuple(p for each in restricted for p in _PREFIXES.get(each, ()))
    query = sa.select(alerts.c.alert_id, alerts.c["values"]).where(
        alerts.c.session_id == session_id
    )
    for alert_id, values in connection.execute(query).all():
        if any(name.startswith(prefixes) for name in values):
            connection.execute(
                sa.update(alerts)
                .where(alerts.c.alert_id == alert_id)
                .values(values={}, value=None, threshold=None, reason=REASON)
            )
