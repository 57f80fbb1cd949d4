"""``rapport erase``: remove sessions for good, and say what was removed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from msgspec import Struct

from stream_app import bootstrap
from stream_app.errors import RapportError
from stream_app.settings import Settings
from stream_app.store import audit, erasure
from stream_app.store.audit import Audited
from stream_app.store.erasure import Extent
from stream_app.store.repository import Store


class Plan(Struct, frozen=True):
    """What is to be erased, before anything is."""

    sessions: list[str]
    speakers: list[str]
    extent: Extent


class Erasure:
    """One call of the command: first the plan, then the deed."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def plan(self, sessions: Sequence[str], speakers: Sequence[str]) -> Plan:
        """Look up what there is: the sessions that are named, and all that the speakers were in.

        Raises:
            RapportError: a speaker was in no session.
        """
        chosen = dict.fromkeys(sessions)
        for speaker in speakers:
            found = erasure.sessions_of(self._store, speaker)
            if not found:
                raise RapportError(
                    "no session of one of these speakers is stored: check the speaker_id, as "
                    "events carry it (the database knows speakers by pseudonyms alone)"
                )
            chosen.update(dict.fromkeys(found))
        keys = list(chosen)
        return Plan(keys, list(speakers), erasure.extent(self._store, keys))

    def carry_out(self, plan: Plan) -> Counter[str]:
        """Erase; rows removed by table. The audit trail says how many, and not whose."""
        removed = erasure.erase(self._store, plan.sessions, datetime.now(UTC))
        for speaker in plan.speakers:
            removed += erasure.forget_speaker(self._store, speaker)
        detail = f"{plan.extent.sessions} sessions, {plan.extent.turns} turns"
        audit.record(self._store, audit.COMMAND_LINE, Audited.ERASE, detail=detail)
        return removed


@contextmanager
def open_erasure(settings: Settings) -> Iterator[Erasure]:
    """The command over the database that is set, which is closed at the end."""
    store = bootstrap.store(settings)
    try:
        store.open_privacy(settings.redact)
        yield Erasure(store)
    finally:
        store.close()
