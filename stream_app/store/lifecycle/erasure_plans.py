"""Counts what an erasure would remove, for a person who decides on it."""

from collections.abc import Sequence

from msgspec import Struct

from stream_app.errors import RapportError
from stream_app.store.lifecycle import archived, erasure, holds
from stream_app.store.lifecycle.erasure import StoredCounts
from stream_app.store.stream.repository import Store


class Plan(Struct, frozen=True):
    """The sessions and speakers to erase, with the numbers of stored, archived and held ones."""

    sessions: list[str]
    speakers: list[str]
    extent: StoredCounts
    archived: int = 0
    held: int = 0


def planned(store: Store, sessions: Sequence[str], speakers: Sequence[str]) -> Plan:
    """The named sessions and all sessions of the speakers, who are named as in events.

    Raises:
        RapportError: a speaker has no stored session.
    """
    chosen = dict.fromkeys(sessions)
    for speaker in speakers:
        found = erasure.sessions_of(store, speaker)
        if not found:
            raise RapportError(
                "one of these speakers has no stored session: check the speaker_id in events "
                "(the database only contains pseudonyms)"
            )
        chosen.update(dict.fromkeys(found))
    keys = list(chosen)
    return Plan(
        keys,
        list(speakers),
        erasure.count_stored(store, keys),
        archived.count(store, keys),
        sum(len(holds.find(store, some)) for some in erasure.batches(keys)),
    )
