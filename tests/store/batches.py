"""Builds events as bytes and processes them with the real pipeline and a fake scorer."""

import json
from typing import Any

import msgspec

from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline, Received, Source, receive
from stream_app.core.rules.rules import RuleSet
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.environment import Policy
from stream_app.core.session.session_state import Versioned
from stream_app.store.stream.repository import Store
from tests.fakes import FakeScorer
from tests.rule_texts import EAGER

SCORER = FakeScorer()
BUNDLE = SCORER.bundle_id
MANIFEST: dict[str, Any] = {
    "name": "fake",
    "window": {"before": 3, "after": 3},
    "empathy": msgspec.to_builtins(SCORER.empathy),
    "outcomes": msgspec.to_builtins(SCORER.outcomes),
    "heads": [],
}
"""What the store keeps of the fake scorer's bundle."""


def turn(seq: int = 0, **changes: Any) -> bytes:
    """A turn with consent; even turns are the client's."""
    event = {
        "type": "turn",
        "session_id": "s",
        "seq": seq,
        "speaker_id": "joan@example.org",
        "role": "counsellor" if seq % 2 else "client",
        "text": f"That must have been hard, the {seq}th time. How do you feel about it?",
        "occurred_at": f"2026-01-05T10:{seq % 60:02}:00Z",
        "consent": True,
    }
    return json.dumps({**event, **changes}).encode()


def end(**changes: Any) -> bytes:
    """A session end."""
    event = {"type": "session_end", "session_id": "s", "occurred_at": "2026-01-05T11:00:00Z"}
    return json.dumps({**event, **changes}).encode()


def outcome(**changes: Any) -> bytes:
    """A rating outcome."""
    event = {"type": "outcome", "session_id": "s", "kind": "rating", "value": 4.0}
    return json.dumps({**event, "occurred_at": "2026-01-05T11:05:00Z", **changes}).encode()


def questionnaire(**changes: Any) -> bytes:
    """A GAD-7."""
    event = {"type": "questionnaire", "session_id": "s", "instrument": "gad-7", "items": [1] * 7}
    return json.dumps({**event, "occurred_at": "2026-01-05T11:10:00Z", **changes}).encode()


def consent(status: str = "given", **changes: Any) -> bytes:
    """A consent record."""
    event = {"type": "consent", "session_id": "s", "status": status}
    return json.dumps({**event, "occurred_at": "2026-01-05T12:00:00Z", **changes}).encode()


def pipeline(rules: RuleSet = EAGER) -> Pipeline:
    """The real pipeline."""
    return Pipeline(SCORER, Policy(WindowPolicy(), rules))


def received(values: list[bytes], partition: int = 0) -> list[Received]:
    """Decode events as received from the log."""
    return [receive(Source("t", partition, offset), value) for offset, value in enumerate(values)]


def process(
    values: list[bytes], states: dict[str, Versioned] | None = None, partition: int = 0
) -> BatchResult:
    """Process one batch."""
    return pipeline().process(received(values, partition), {} if states is None else states)


def prepare(store: Store, redact: bool = True) -> Store:
    """Prepare a store like a worker before its first batch."""
    store.prepare(BUNDLE, "0" * 64, {"name": "fake"}, redact)
    return store
