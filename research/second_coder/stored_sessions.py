"""Sessions of a Rapport database whose consent includes processing by a third party."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from research.second_coder.items import Item, Utterance, of_conversation
from stream_app.contracts.events import ConsentPurpose
from stream_app.errors import RapportError
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.sessions import consents, transcripts
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store

PURPOSE: Final = ConsentPurpose.THIRD_PARTY_PROCESSING


def permitted(store: Store, wanted: Sequence[str]) -> list[str]:
    """The wanted sessions, or all that permit it if none is named.

    Raises:
        RapportError: consent of a wanted session does not include the purpose.
    """
    allowed = consents.permitting(store, PURPOSE)
    known = set(allowed)
    refused = [session for session in wanted if session not in known]
    if refused:
        raise RapportError(
            f"{len(refused)} of {len(wanted)} sessions have no consent with the purpose "
            f"{PURPOSE.value}; the first is {refused[0]}"
        )
    return list(dict.fromkeys(wanted)) or allowed


def read(store: Store, session_ids: Sequence[str], *, host: str | None) -> Iterator[Item]:
    """The stored turns of these sessions, without those whose text has expired.

    Consent is checked again before each session is read, because it may be withdrawn in the
    meantime. With a `host`, to which the text is sent, each reading is audited.
    """
    for session_id in session_ids:
        if not consents.permitting(store, PURPOSE, session_id):
            continue
        if host is not None:
            audit.record(
                store,
                audit.COMMAND_LINE,
                AuditAction.READ_TRANSCRIPT,
                session_id,
                f"second coder, sent to {host}",
            )
        yield from of_conversation(session_id, _turns(store, session_id))


def _turns(store: Store, session_id: str) -> list[tuple[str, Utterance]]:
    found: list[tuple[str, Utterance]] = []
    last = -1
    while page := transcripts.read(store, ALL_SESSIONS, session_id, after_seq=last):
        last = page[-1].seq
        found += [
            (str(turn.seq), Utterance(turn.role.value, turn.text))
            for turn in page
            if turn.text is not None
        ]
    return found
