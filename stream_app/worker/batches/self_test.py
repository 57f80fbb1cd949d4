"""Tests model and database with a synthetic session, independently of any received event."""

import json
import uuid
from datetime import UTC, datetime
from functools import partial
from typing import Final

from stream_app.contracts.events import decode
from stream_app.core.pipeline.pipeline import Pipeline, Received, Source
from stream_app.worker.batches.commits import Commits
from stream_app.worker.batches.scoring import sessions_of

TEXTS: Final = ("I have not slept for days.", "That sounds hard. What keeps you awake?")
_AT: Final = datetime(2026, 1, 1, tzinfo=UTC).isoformat()


class SelfTest:
    """Says whether an event can be the cause of an error."""

    def __init__(self, pipeline: Pipeline, commits: Commits) -> None:
        self._pipeline = pipeline
        self._commits = commits

    def run(self) -> None:
        """Process a synthetic session of each bundle with the database, and roll it back.

        Raises:
            Exception: this fails, too, so no event is the cause.
        """
        for bundle in self._pipeline.bundles:
            session = synthetic_session()
            states = self._pipeline.new_states(sessions_of(session), bundle)
            result = self._pipeline.process(session, states)
            self._commits.retries.while_unavailable(partial(self._commits.dry_run, result))


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
