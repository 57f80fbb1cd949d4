"""``rapport erase``: erases sessions permanently, and prints a receipt."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from aiokafka.errors import KafkaError
from msgspec import Struct

from stream_app import bootstrap
from stream_app.analytics import extra
from stream_app.commands import dead_letters
from stream_app.commands.replay import producer
from stream_app.core.ports import Message
from stream_app.errors import BrokerUnavailable, RapportError
from stream_app.settings import Settings
from stream_app.store import archived, audit, erasure, tables
from stream_app.store.archived import ArchiveError
from stream_app.store.audit import AuditAction
from stream_app.store.erasure import Erased, StoredCounts
from stream_app.store.repository import Store
from stream_app.worker.publishing import publish


class Plan(Struct, frozen=True):
    """The sessions and speakers to erase, with the numbers of stored and archived ones."""

    sessions: list[str]
    speakers: list[str]
    extent: StoredCounts
    archived: int = 0


class Receipt(Struct, frozen=True):
    """What an erasure did and what it could not reach; contains no names."""

    removed: Counter[str]
    done: list[str]
    not_reached: list[str]


class TopicResult(Struct, frozen=True):
    """What was published; ``letters``: number of withdrawn dead letters."""

    letters: int


class Erasure:
    """One run of the command: first ``plan``, then ``carry_out``."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def plan(self, sessions: Sequence[str], speakers: Sequence[str]) -> Plan:
        """Look up the named sessions and all sessions of the speakers.

        Raises:
            RapportError: a speaker has no stored session.
        """
        chosen = dict.fromkeys(sessions)
        for speaker in speakers:
            found = erasure.sessions_of(self._store, speaker)
            if not found:
                raise RapportError(
                    "one of these speakers has no stored session: check the speaker_id in events "
                    "(the database only contains pseudonyms)"
                )
            chosen.update(dict.fromkeys(found))
        keys = list(chosen)
        moved = archived.count(self._store, keys)
        self._check_archive(needed=moved > 0)
        return Plan(keys, list(speakers), erasure.count_stored(self._store, keys), moved)

    def _check_archive(self, *, needed: bool) -> None:
        """Check that archived sessions can be erased.

        Raises:
            ArchiveError: the archive is not configured, or is another database's.
            AnalyticsMissing: its files cannot be written here.
        """
        folder = self._settings.archive
        if folder is not None and folder.is_dir():
            extra.require()
            archived.check_owner(self._store, folder)
        elif needed:
            raise ArchiveError(
                "some of these sessions are archived: set RAPPORT_ARCHIVE to the archive's folder; "
                "nothing was erased"
            )

    def _sweep_archive(self) -> str:
        """Remove the sessions' rows from the archive's files; the receipt's line."""
        folder = self._settings.archive
        if folder is None or not folder.is_dir():
            return "archive: none is configured, and none of these sessions was archived"
        from stream_app.analytics import archive  # noqa: PLC0415  # needs the extra

        swept = archive.sweep(self._store, folder)
        return f"archive: {swept.rows} rows removed, {swept.files} files rewritten or deleted"

    def carry_out(self, plan: Plan) -> Receipt:
        """Erase, and notify consumers. The audit trail records only numbers.

        Raises:
            SessionHeld: a session is on legal hold; nothing was erased.
        """
        settings = self._settings
        told = settings.session_topics
        erased = erasure.erase(self._store, plan.sessions, datetime.now(UTC), told)
        swept = self._sweep_archive()
        removed = erased.removed
        for speaker in plan.speakers:
            removed += erasure.forget_counsellor(self._store, speaker)
        detail = f"{plan.extent.sessions} sessions, {plan.extent.turns} turns"
        audit.record(self._store, audit.COMMAND_LINE, AuditAction.ERASE, detail=detail)
        try:
            topics = asyncio.run(self._notify_consumers(plan.sessions, erased))
        except (BrokerUnavailable, KafkaError):
            topics = None
        return self._receipt(removed, erased, swept, topics)

    async def _notify_consumers(self, sessions: Sequence[str], erased: Erased) -> TopicResult:
        """Publish the erasure's outbox rows, and withdraw the sessions' dead letters."""
        entries = self._store.outbox_entries(erased.outbox_ids)
        letters = [
            Message(self._settings.dead_letter_topic, letter.encode(), None)
            for letter in await dead_letters.ids_about(self._settings, sessions)
        ]
        async with producer(self._settings) as client:
            messages = [message for entry in entries for message in entry.messages]
            await publish(client, [*messages, *letters])
        self._store.delete_outbox_entries(erased.outbox_ids)
        self._store.scrub()
        return TopicResult(len(letters))

    def _receipt(
        self, removed: Counter[str], erased: Erased, swept: str, topics: TopicResult | None
    ) -> Receipt:
        settings = self._settings
        retention = f"retention.ms ({settings.topic_days} days if Rapport created the topic)"
        done = [
            f"keys: {removed[tables.session_keys.name]} destroyed; remaining copies of what they "
            "encrypted cannot be decrypted with this database",
            f"audit trail: {erased.audited} entries have a digest instead of the session's id",
            swept,
            f"mutes of a rule or team: {erased.reasons} reasons deleted, as they may quote it",
        ]
        not_reached = [
            f"{settings.turns_topic}: the original events, with their text, until {retention}",
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
        if topics is None:
            not_reached.insert(
                1,
                f"{settings.dead_letter_topic}: no broker answered. Repeat the command to withdraw "
                "dead letters; workers will notify consumers and consoles",
            )
        else:
            done.append(
                "topics: consumers and consoles were notified; "
                f"{topics.letters} dead letters withdrawn"
            )
            not_reached.insert(
                1,
                f"{settings.dead_letter_topic}: withdrawn dead letters until Kafka compacts them, "
                f"within two days; those without a legible session id, until {retention}",
            )
        if self._store.engine.dialect.name != "sqlite":
            not_reached.append(
                "PostgreSQL's deleted rows and its log, until their space is reused: ids, "
                "pseudonyms and scores; encrypted text and wrapped keys, as in backups"
            )
        elif erased.scrubbed:
            done.append("database file: deleted rows overwritten, log truncated")
        else:
            not_reached.append(
                "SQLite's log: another process was using it; it is truncated when all have stopped"
            )
        return Receipt(removed, done, not_reached)


@contextmanager
def open_erasure(settings: Settings) -> Iterator[Erasure]:
    """Open the configured database for the ``with`` block."""
    store = bootstrap.store(settings)
    try:
        store.load_privacy(settings.redact)
        yield Erasure(store, settings)
    finally:
        store.close()
