"""Consent of a session: the records that events state, and their effect.

Withdrawal is final for turns: a later ``consent: true`` changes nothing. Only a consent record with
a newer version of the wording ends it.
"""

import re
import zlib
from datetime import datetime
from enum import Enum
from typing import Final

import msgspec
from msgspec import Struct, UnsetType

from stream_app.contracts.events import Consent, ConsentPurpose, ConsentStatus, Role, Turn, utc
from stream_app.core.session.session_state import SessionState

RECORDS_REMEMBERED: Final = 64
FROM_TURN: Final = "turn"


class OnWithdrawal(Enum):
    """The effect of a withdrawal on stored data: ``keep`` it readable, ``hide`` or ``erase`` it."""

    KEEP = "keep"
    HIDE = "hide"
    ERASE = "erase"


class ConsentRecord(Struct, frozen=True):
    """One decision, to be stored.

    ``effective``: whether it determined the session's consent. ``seq``: the turn that stated it.
    ``speaker_id``: who decided, if known; None unless consent was given at some time, because a
    session without consent holds no person. ``purposes``: what was agreed to beyond the analysis;
    a turn states none.
    """

    session_id: str
    status: ConsentStatus
    occurred_at: datetime
    effective: bool
    version: str | None = None
    source: str | None = None
    speaker_id: str | None = None
    seq: int | None = None
    consent_id: str | None = None
    purposes: tuple[ConsentPurpose, ...] = ()

    @property
    def withdraws(self) -> bool:
        """Whether it ended the analysis of the session."""
        return self.effective and self.status is ConsentStatus.WITHDRAWN


def state_in_turn(state: SessionState, turn: Turn) -> ConsentRecord | None:
    """Apply the consent that a turn states; None if it changes nothing."""
    if turn.consent is None or state.closed or state.withdrawn:
        return None
    before = state.consent, state.consent_version
    at, version = utc(turn.occurred_at), turn.consent_version
    if turn.consent:
        status = ConsentStatus.GIVEN
        _give(state, version)
    else:
        status = _refuse(state, at, version, ConsentStatus.REFUSED)
    if before == (state.consent, state.consent_version):
        return None
    speaker = turn.speaker_id if turn.speaker_role is Role.CLIENT else None
    return ConsentRecord(
        state.session_id,
        status,
        at,
        effective=True,
        version=version,
        source=FROM_TURN,
        speaker_id=speaker if _names_people(state) else None,
        seq=turn.seq,
    )


def record_consent(state: SessionState, event: Consent) -> ConsentRecord | None:
    """Apply a consent record; None if it was applied before."""
    checksum = zlib.crc32(msgspec.json.encode(event))
    if checksum in state.consent_records:
        return None
    state.consent_records.append(checksum)
    del state.consent_records[:-RECORDS_REMEMBERED]
    at, status, effective = utc(event.occurred_at), event.status, True
    if status is not ConsentStatus.GIVEN:
        status = _refuse(state, at, event.version, status)
    elif not state.withdrawn or _ends_withdrawal(state, event.version, at):
        _give(state, event.version)
    else:
        effective = False
    return ConsentRecord(
        state.session_id,
        status,
        at,
        effective,
        version=event.version,
        source=event.source,
        speaker_id=event.speaker_id if _names_people(state) else None,
        consent_id=event.consent_id,
        purposes=_purposes(event) if status is ConsentStatus.GIVEN else (),
    )


def _purposes(event: Consent) -> tuple[ConsentPurpose, ...]:
    return () if isinstance(event.purposes, UnsetType) else tuple(dict.fromkeys(event.purposes))


def is_newer(version: str | None, than: str | None) -> bool:
    """Whether a version of the wording is newer: numbers in it are compared as numbers.

    >>> is_newer("v10", "v9"), is_newer("2026-03", "2026-11"), is_newer("1", None)
    (True, False, True)
    >>> is_newer(None, None), is_newer("v9", "v9")
    (False, False)
    """
    if version is None:
        return False
    return than is None or _order(version) > _order(than)


def _order(version: str) -> list[tuple[bool, int, str]]:
    parts = re.findall(r"[0-9]+|[^0-9]+", version)
    return [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def _give(state: SessionState, version: str | None) -> None:
    state.consent, state.withdrawn, state.withdrawn_at = True, False, None
    _note_version(state, version)


def _refuse(
    state: SessionState, at: datetime, version: str | None, status: ConsentStatus
) -> ConsentStatus:
    """Refuse; a refusal after turns were analysed, or consent given, is a withdrawal."""
    if state.consent or state.analysed:
        status = ConsentStatus.WITHDRAWN
    if status is ConsentStatus.WITHDRAWN:
        state.withdrawn, state.withdrawn_at = True, max(state.withdrawn_at or at, at)
    state.consent = False
    _note_version(state, version)
    return status


def _ends_withdrawal(state: SessionState, version: str | None, at: datetime) -> bool:
    later = state.withdrawn_at is None or at > state.withdrawn_at
    return later and is_newer(version, state.consent_version)


def _note_version(state: SessionState, version: str | None) -> None:
    if is_newer(version, state.consent_version):
        state.consent_version = version


def _names_people(state: SessionState) -> bool:
    return bool(state.consent) or state.analysed
