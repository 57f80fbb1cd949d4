"""Erases sessions at the operator's request, and writes the receipt."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from stream_app import extras
from stream_app.errors import BrokerUnavailable, RapportError
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.lifecycle import archived, erasure, erasure_receipts
from stream_app.store.lifecycle.archived import ArchiveError
from stream_app.store.lifecycle.erasure import Erased
from stream_app.store.lifecycle.erasure_plans import Plan, planned
from stream_app.store.lifecycle.erasure_receipts import Lines, Removed
from stream_app.store.stream.repository import Store
from stream_app.worker.kafka.publishing import producer, publish
from stream_app.worker.upkeep import erasing

RECEIPTS_AT_A_TIME: Final = 100


class Receipt(Struct, frozen=True):
    """What an erasure did and what it could not reach; contains no names."""

    removed: Counter[str]
    lines: Lines


class Erasure:
    """One request: first ``plan``, then ``carry_out``.

    ``sweep`` removes the rows of erased sessions from the archive's files and returns the
    receipt's line, None without an archive.
    """

    def __init__(
        self, store: Store, settings: Settings, sweep: Callable[[Settings, Store], str | None]
    ) -> None:
        self._store = store
        self._settings = settings
        self._sweep = sweep

    def plan(self, sessions: Sequence[str], speakers: Sequence[str]) -> Plan:
        """Look up the named sessions and all sessions of the speakers.

        Raises:
            RapportError: a speaker has no stored session.
        """
        found = planned(self._store, sessions, speakers)
        self._check_archive(needed=found.archived > 0)
        return found

    def _check_archive(self, *, needed: bool) -> None:
        """Check that archived sessions can be erased.

        Raises:
            ArchiveError: the archive is not configured, or is another database's.
            ExtraMissing: its files cannot be written here.
        """
        folder = self._settings.archive
        if folder is not None and folder.is_dir():
            extras.require_analytics()
            archived.check_owner(self._store, folder)
        elif needed:
            raise ArchiveError(
                "some of these sessions are archived: set RAPPORT_ARCHIVE to the archive's folder; "
                "nothing was erased"
            )

    def carry_out(self, plan: Plan) -> Receipt:
        """Erase, and notify consumers. The audit trail records only numbers.

        Raises:
            SessionHeld: a session is on legal hold; nothing was erased.
        """
        settings, store = self._settings, self._store
        told = settings.session_topics
        erased = erasure.erase(store, plan.sessions, datetime.now(UTC), told)
        swept = self._sweep(settings, store) or erasing.NO_ARCHIVED_ROWS
        removed = Counter(erased.removed)
        for speaker in plan.speakers:
            removed += erasure.forget_counsellor(store, speaker)
        detail = f"{plan.extent.sessions} sessions, {plan.extent.turns} turns"
        audit.record(store, audit.COMMAND_LINE, AuditAction.ERASE, detail=detail)
        scrubbed = store.scrub()
        try:
            letters = asyncio.run(self._notify_consumers(erased, swept))
        except BrokerUnavailable:
            letters = None
        what = Removed(dict(erased.removed), erased.reasons, erased.audited)
        lines = erasing.compose(settings, store, what, swept, letters, scrubbed=scrubbed)
        return Receipt(removed, lines)

    async def _notify_consumers(self, erased: Erased, swept: str) -> int:
        """Publish the outbox rows, withdraw dead letters, and finish the stored receipts.

        Returns the number of dead letters.
        """
        store, letters = self._store, 0
        entries = store.outbox_entries(erased.outbox_ids)
        async with producer(self._settings) as client:
            await publish(client, [message for entry in entries for message in entry.messages])
            store.delete_outbox_entries(erased.outbox_ids)
            for first in range(0, len(erased.receipts), RECEIPTS_AT_A_TIME):
                ids = erased.receipts[first : first + RECEIPTS_AT_A_TIME]
                found = erasure_receipts.unfinished(store, ids=ids)
                withdrawn = await erasing.withdraw_letters(self._settings, found, client)
                erasing.store_receipts(self._settings, store, found, swept, withdrawn)
                letters += sum(withdrawn.values())
        return letters


def stored_receipts(store: Store, session_ids: Sequence[str]) -> Iterator[str]:
    """The lines of the receipts of these sessions, whichever process erased them.

    Raises:
        RapportError: one of them was not erased, or by an earlier release.
    """
    for session_id in session_ids:
        found = erasure_receipts.of_session(store, session_id)
        if not found:
            raise RapportError("there is no receipt: not erased, or by an earlier release")
        for receipt in found:
            yield f"{session_id}, erased {receipt.at:%Y-%m-%d %H:%M:%S} UTC"
            yield from receipt_lines(Counter(receipt.removed.rows), receipt.lines)


def receipt_lines(removed: Counter[str], lines: Lines | None) -> Iterator[str]:
    """A receipt as it is printed."""
    for name, rows in removed.most_common():
        yield f"{rows:8}  {name}"
    yield f"{sum(removed.values()):8}  rows removed; later events of these sessions are ignored"
    if lines is None:
        yield "Not finished: a worker is still to remove dead letters and rows in the archive"
        return
    for title, items in (("Done", lines.done), ("Not reached", lines.not_reached)):
        yield f"{title}:"
        yield from (f"  - {item}" for item in items)
