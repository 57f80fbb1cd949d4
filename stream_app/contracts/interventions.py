"""Outgoing messages about supervisors' interventions in a running session, and their receipts."""

from datetime import datetime
from enum import Enum
from typing import Annotated

import msgspec
from msgspec import Meta, Struct


class InterventionKind(Enum):
    """``note``: words for the counsellor; ``take-over``, ``hand-back``: who leads the session."""

    NOTE = "note"
    TAKE_OVER = "take-over"
    HAND_BACK = "hand-back"


class Intervention(Struct, frozen=True, tag_field="type", tag="intervention", kw_only=True):
    """A supervisor's intervention, for the desk of the session's counsellor."""

    intervention_id: str
    session_id: str
    kind: InterventionKind
    text: Annotated[
        str | None, Meta(description="Of a note, redacted like turn text; the client never sees it")
    ]
    person: Annotated[str, Meta(description="Sign-in name of the supervisor")]
    at: Annotated[datetime, Meta(description="When it was stored; publishing may be later")]
    episode_id: Annotated[str | None, Meta(description="The alert that it answers, if any")]


class InterventionReceipt(
    Struct, frozen=True, tag_field="type", tag="intervention_receipt", kw_only=True
):
    """A desk's first confirmation that it has shown an intervention."""

    intervention_id: str
    session_id: str
    person: Annotated[str, Meta(description="Account of the desk whose token confirmed it")]
    at: datetime


_encoder = msgspec.json.Encoder(order="deterministic")


def encode(message: Intervention | InterventionReceipt) -> bytes:
    """Encode one message as JSON."""
    return _encoder.encode(message)
