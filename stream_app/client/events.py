"""Events to send. Times default to now; turns need no number."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from stream_app.contracts.events import (
    Approach,
    Consent,
    ConsentPurpose,
    ConsentStatus,
    Domain,
    Identifier,
    Outcome,
    OutcomeKind,
    Questionnaire,
    Seq,
    SessionEnd,
    Timestamp,
    Turn,
    TurnDelete,
    TurnEdit,
    WireRole,
    WordingVersion,
)
from stream_app.contracts.questionnaires import Instrument


class NewTurn(
    Struct,
    frozen=True,
    tag_field="type",
    tag="turn",
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """A turn as in ``docs/events.md``; Rapport numbers it unless it has a ``seq``."""

    session_id: Identifier
    speaker_id: Identifier
    role: WireRole
    text: str
    occurred_at: Timestamp
    seq: Seq | UnsetType = UNSET
    turn_id: Identifier | None = None
    domain: Domain | None = None
    lang: str | None = None
    consent: bool | None = None
    consent_version: WordingVersion | None = None
    channel: Identifier | None = None
    team: Identifier | None = None
    approach: Approach | None = None
    addressee: Identifier | None = None


Sendable = NewTurn | Turn | SessionEnd | Outcome | Consent | Questionnaire | TurnEdit | TurnDelete


def turn(
    session_id: str,
    role: str,
    text: str,
    *,
    speaker_id: str,
    occurred_at: datetime | None = None,
    **more: Any,
) -> NewTurn:
    """A turn without a number; ``more``: other fields, such as ``consent=True``.

    Raises:
        ValueError: a field is unknown or out of range (``msgspec.ValidationError``).

    >>> turn("chat-1", "client", "Hello", speaker_id="c-9", consent=True).role.value
    'client'
    """
    fields = {"session_id": session_id, "role": role, "text": text, "speaker_id": speaker_id}
    at = occurred_at or datetime.now(UTC)
    return msgspec.convert({**more, **fields, "occurred_at": at, "type": "turn"}, NewTurn)


def edit(
    session_id: str,
    text: str,
    *,
    seq: int | None = None,
    turn_id: str | None = None,
    occurred_at: datetime | None = None,
) -> TurnEdit:
    """A new text of an earlier turn, named by its number or its id.

    >>> edit("chat-1", "I meant Tuesday.", turn_id="m-7").turn_id
    'm-7'
    """
    at = occurred_at or datetime.now(UTC)
    return TurnEdit(session_id=session_id, text=text, seq=seq, turn_id=turn_id, occurred_at=at)


def delete(
    session_id: str,
    *,
    seq: int | None = None,
    turn_id: str | None = None,
    occurred_at: datetime | None = None,
) -> TurnDelete:
    """The erasure of an earlier turn, named by its number or its id."""
    at = occurred_at or datetime.now(UTC)
    return TurnDelete(session_id=session_id, seq=seq, turn_id=turn_id, occurred_at=at)


def end(
    session_id: str, reason: str | None = None, occurred_at: datetime | None = None
) -> SessionEnd:
    """The end of a session."""
    at = occurred_at or datetime.now(UTC)
    return SessionEnd(session_id=session_id, reason=reason, occurred_at=at)


def questionnaire(
    session_id: str,
    instrument: str,
    items: Sequence[float | None],
    *,
    occurred_at: datetime | None = None,
    questionnaire_id: str | None = None,
) -> Questionnaire:
    """A questionnaire (phq-9, gad-7, session-rating, care) that the session's client filled in."""
    return Questionnaire(
        session_id=session_id,
        instrument=Instrument(instrument),
        items=list(items),
        occurred_at=occurred_at or datetime.now(UTC),
        questionnaire_id=questionnaire_id,
    )


def outcome(
    session_id: str,
    kind: str,
    value: float = 1.0,
    *,
    seq: int | None = None,
    occurred_at: datetime | None = None,
    outcome_id: str | None = None,
) -> Outcome:
    """A like, reply, follow or rating, of the session or of the turn ``seq``."""
    return Outcome(
        session_id=session_id,
        kind=OutcomeKind(kind),
        value=value,
        seq=seq,
        occurred_at=occurred_at or datetime.now(UTC),
        outcome_id=outcome_id,
    )


def consent(
    session_id: str,
    status: str,
    *,
    version: str | None = None,
    source: str | None = None,
    occurred_at: datetime | None = None,
    purposes: Iterable[str] = (),
) -> Consent:
    """A consent record: ``given``, ``refused`` or ``withdrawn``; ``purposes``: agreed to besides.

    >>> consent("chat-1", "given", purposes=["third-party-processing"]).status.value
    'given'
    """
    agreed = [ConsentPurpose(name) for name in purposes]
    return Consent(
        session_id=session_id,
        status=ConsentStatus(status),
        version=version,
        source=source,
        occurred_at=occurred_at or datetime.now(UTC),
        purposes=agreed or UNSET,
    )
