"""``rapport erase``: erases sessions permanently, and reports the removed rows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from msgspec import Struct

from stream_app import bootstrap
from stream_app.errors import RapportError
from stream_app.settings import Settings
from stream_app.store import audit, erasure
from stream_app.store.audit import AuditAction
from stream_app.store.erasure import StoredCounts
from stream_app.store.repository import Store


class Plan(Struct, frozen=True):
    """The sessions and speakers to erase, with the number of stored sessions and turns."""

    sessions: list[str]
    speakers: list[str]
    extent: StoredCounts


class Erasure:
    """One run of the command: first ``plan``, then ``carry_out``."""

    def __init__(self, store: Store) -> None:
        self._store = store

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
        return Plan(keys, list(speakers), erasure.count_stored(self._store, keys))

    def carry_out(self, plan: Plan) -> Counter[str]:
        """Erase; return the removed rows by table. The audit trail records only numbers."""
        removed = erasure.erase(self._store, plan.sessions, datetime.now(UTC))
        for speaker in plan.speakers:
            removed += erasure.delete_baselines(self._store, speaker)
        detail = f"{plan.extent.sessions} sessions, {plan.extent.turns} turns"
        audit.record(self._store, audit.COMMAND_LINE, AuditAction.ERASE, detail=detail)
        return removed


@contextmanager
def open_erasure(settings: Settings) -> Iterator[Erasure]:
    """Open the configured database for the ``with`` block."""
    store = bootstrap.store(settings)
    try:
        store.load_privacy(settings.redact)
        yield Erasure(store)
    finally:
        store.close()
