"""Roles of accounts and rights of tokens; the settings and the command line read them, too."""

from enum import Enum
from typing import Final


class PersonRole(Enum):
    """``counsellor`` reads own sessions, ``supervisor`` a team's; ``analyst``, ``admin``: no text.

    ``ingest``: a program that sends events and cannot read. ``study``: exports redacted text, and
    only for an approved study that has not ended (``store.studies``).
    """

    COUNSELLOR = "counsellor"
    SUPERVISOR = "supervisor"
    ANALYST = "analyst"
    ADMIN = "admin"
    INGEST = "ingest"
    STUDY = "study"


class Right(Enum):
    """A right of a token."""

    READ_SCORES = "read-scores"
    READ_TEXT = "read-text"
    ACT = "act"
    READ_AUDIT = "read-audit"
    SEND_EVENTS = "send-events"


RIGHTS: Final = {
    PersonRole.COUNSELLOR: frozenset({Right.READ_SCORES, Right.READ_TEXT, Right.ACT}),
    PersonRole.SUPERVISOR: frozenset({Right.READ_SCORES, Right.READ_TEXT, Right.ACT}),
    PersonRole.ANALYST: frozenset({Right.READ_SCORES}),
    PersonRole.ADMIN: frozenset({Right.READ_SCORES, Right.READ_AUDIT}),
    PersonRole.INGEST: frozenset({Right.SEND_EVENTS}),
    PersonRole.STUDY: frozenset({Right.READ_SCORES, Right.READ_TEXT}),
}
"""The rights that a token of each role can have."""
