"""Finishes erasures: withdraws dead letters, and stores the receipts.

The rows are erased before; what remains is read from the database, so that a worker finishes what
any process began.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from stream_app.core.session.ports import Message
from stream_app.errors import RapportError
from stream_app.settings import Settings
from stream_app.store.database.tables import session_keys
from stream_app.store.lifecycle import erasure_receipts
from stream_app.store.lifecycle.erasure_receipts import Lines, Removed, Unfinished
from stream_app.store.stream import claims
from stream_app.store.stream.repository import Store
from stream_app.worker.kafka import dead_letters
from stream_app.worker.kafka.publishing import publish

log = structlog.get_logger(__name__)

GRACE: Final = timedelta(seconds=5)
"""Time for batches that were in progress during the erasure to publish their dead letters."""
INTERVAL: Final = timedelta(seconds=30)
NO_ARCHIVED_ROWS: Final = "archive: no file has rows of these sessions"
_TASK: Final = "erasures"


async def finish_due(
    settings: Settings, store: Store, sweep: Callable[[], str | None], client: Any, now: datetime
) -> None:
    """Finish erasures that no other process has finished; one worker at a time does so.

    Args:
        settings: topics and brokers.
        store: has the unfinished receipts.
        sweep: removes rows of erased sessions from the archive; returns the receipt's line, or
            None if there is no archive here.
        client: a started producer.
        now: the time.

    Raises:
        BrokerUnavailable: the topic of dead letters cannot be read; the next call tries again.
    """
    found = await asyncio.to_thread(_claim, store, now)
    if not found:
        return
    line, problem = None, "RAPPORT_ARCHIVE is not set to the archive's folder"
    if any(item.archived for item in found):
        try:
            line = await asyncio.to_thread(sweep)
        except RapportError as refused:
            problem = str(refused)
    if line is None and (waiting := [item for item in found if item.archived]):
        log.warning("erasure.unfinished", sessions=len(waiting), reason=problem)
        found = [item for item in found if not item.archived]
    if found:
        letters = await withdraw_letters(settings, found, client)
        await asyncio.to_thread(
            store_receipts, settings, store, found, line or NO_ARCHIVED_ROWS, letters
        )
        log.info("erasure.finished", sessions=len(found), letters=sum(letters.values()))


async def withdraw_letters(
    settings: Settings, found: Sequence[Unfinished], client: Any
) -> dict[str, int]:
    """Withdraw the sessions' dead letters; return their number by session.

    Raises:
        BrokerUnavailable: the topic cannot be read.
        aiokafka.errors.KafkaError: the brokers refuse messages.
    """
    letters = await dead_letters.ids_about(settings, {item.session_id for item in found})
    ids = sorted(set().union(*letters.values()))
    topic = settings.dead_letter_topic
    await publish(client, [Message(topic, letter.encode(), None) for letter in ids])
    return {session_id: len(about) for session_id, about in letters.items()}


def store_receipts(
    settings: Settings,
    store: Store,
    found: Sequence[Unfinished],
    archive: str,
    letters: dict[str, int],
) -> None:
    """Store the receipts, then rewrite the database's file, which has named their sessions.

    ``archive``: their line about it, ``letters``: numbers by session.
    """

    def lines(item: Unfinished, *, scrubbed: bool) -> Lines:
        archived = archive if item.archived else NO_ARCHIVED_ROWS
        count = letters[item.session_id]
        return compose(settings, store, item.removed, archived, count, scrubbed=scrubbed)

    for item in found:
        erasure_receipts.finish(store, item.id, lines(item, scrubbed=False))
    if store.scrub():
        for item in found:
            erasure_receipts.amend(store, item.id, lines(item, scrubbed=True))


def compose(
    settings: Settings,
    store: Store,
    removed: Removed,
    archive: str,
    letters: int | None,
    *,
    scrubbed: bool,
) -> Lines:
    """Say what was done and what could not be reached.

    Args:
        settings: names of the topics.
        store: decides what the database's own log keeps.
        removed: what the database contained.
        archive: what happened to the archive's files.
        letters: number of withdrawn dead letters; None if no broker answered.
        scrubbed: whether SQLite's file was rewritten.
    """
    retention = f"retention.ms ({settings.topic_days} days if Rapport created the topic)"
    done = [
        f"keys: {removed.rows.get(session_keys.name, 0)} destroyed; remaining copies of what they "
        "encrypted cannot be decrypted with this database",
        f"audit trail: {removed.audited} entries have a digest instead of the session's id",
        archive,
        f"mutes of a rule or team: {removed.reasons} reasons deleted, as they may quote it",
    ]
    not_reached = [
        f"{settings.turns_topic}: the original events, with their text, until {retention}",
        _letters_not_reached(settings, retention, answered=letters is not None),
        f"{settings.turn_score_topic}, {settings.session_score_topic}, "
        f"{settings.alert_topic}, {settings.alert_action_topic}: scores and alerts without "
        f"text, until {retention}; their consumers' own copies",
        "backups and archived logs of the database from before now: text in them is encrypted, "
        "and its keys can be unwrapped only with the master key of that time; destroy that one "
        "to make them unreadable (`rapport keys rotate --destroy-old`)",
        "text that an earlier release stored without encryption, in such backups and logs",
        "copies of the archive's files in other engines, backups or snapshots",
        "files that were exported; notifications that were sent (without text)",
    ]
    if letters is not None:
        done.append(
            f"topics: consumers and consoles were notified; {letters} dead letters withdrawn"
        )
    if store.engine.dialect.name != "sqlite":
        not_reached.append(
            "PostgreSQL's deleted rows and its log, until their space is reused: ids, "
            "pseudonyms and scores; encrypted text and wrapped keys, as in backups"
        )
    elif scrubbed:
        done.append("database file: rewritten without the deleted rows, log truncated")
    else:
        not_reached.append(
            "SQLite's file and log: others kept using them, or the disk was full; copies of "
            "deleted rows may remain until the daily purge rewrites the file"
        )
    return Lines(done, not_reached)


def _letters_not_reached(settings: Settings, retention: str, *, answered: bool) -> str:
    if answered:
        return (
            f"{settings.dead_letter_topic}: withdrawn dead letters until Kafka compacts them, "
            f"within two days; those without a legible session id, until {retention}"
        )
    return (
        f"{settings.dead_letter_topic}: no broker answered. A worker withdraws the dead letters, "
        "and notifies consumers and consoles, once it has one"
    )


def _claim(store: Store, now: datetime) -> list[Unfinished]:
    found = erasure_receipts.unfinished(store, before=now - GRACE)
    return found if found and claims.claim(store, _TASK, INTERVAL, now) else []
