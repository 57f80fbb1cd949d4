"""A synthetic session that tests model and database independently of any received event."""

import json
import uuid
from datetime import UTC, datetime
from typing import Final

from stream_app.contracts.events import decode
from stream_app.core.pipeline.pipeline import Received, Source

TEXTS: Final = ("I have not slept for days.", "That sounds hard. What keeps you awake?")
_AT: Final = datetime(2026, 1, 1, tzinfo=UTC).isoformat()


def synthetic_session() -> list[Received]:
    """Two turns, the end and a rating of a session with a unique id."""
    session_id = f"self-test-{uuid.uuid4()}"
    common = {"session_id": session_id, "occurred_at": _AT}
    events: list[dict[str, object]] = [
        {
            "type": "turn",
            **common,
            "seq": seq,
            "speaker_id": role,
            "role": role,
            "text": text,
            "consent": True,
        }
        for seq, (role, text) in enumerate(zip(("client", "counsellor"), TEXTS, strict=True))
    ]
    events.append({"type": "session_end", **common})
    events.append({"type": "outcome", **common, "kind": "rating", "value": 4.0})
    values = [json.dumps(event).encode() for event in events]
    return [
        Received(Source("self-test", 0, offset), value, decode(value))
        for offset, value in enumerate(values)
    ]
