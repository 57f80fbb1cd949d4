"""Sessions with one event of extreme or hostile content among good ones."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from typing import Any

from tests import hostile_values
from tests.chaos.traffic import START, Log, Sent, encoded, end, turn
from tests.e2e.service import key_of

_TEXT = "There is nothing special about this turn."
_OVERSIZED = (66_000, 300_000, 3_000_000)
"""Characters: just too large, larger than a fetch, larger than the brokers' usual limit."""


def sessions(seed: int, count: int) -> list[Log]:
    """``count`` sessions, each with another extreme event between its turns."""
    chance = random.Random(f"extremes-{seed}")
    kinds = [
        (kind, field, value)
        for kind, fields in hostile_values.FIELDS.items()
        for field in fields
        for value in hostile_values.ALL
    ]
    chosen = chance.sample(kinds, min(count, len(kinds)))
    found = [
        _around(f"extreme-{seed}-{number}", kind, {field: value}, f"extreme {kind}")
        for number, (kind, field, value) in enumerate(chosen)
    ]
    for number, text in enumerate(hostile_values.REDACTED):
        name = f"redacted-{seed}-{number}"
        found.append(_around(name, "turn", {"text": text}, "text hard to redact"))
    for number, size in enumerate(_OVERSIZED):
        found.append(_around(f"large-{seed}-{number}", "turn", {"text": "x " * size}, "oversized"))
    for number, nested in enumerate((b"[" * 30_000, b'{"a":' * 9000, b'{"a":[' * 4000)):
        name = f"nested-{seed}-{number}"
        found.append(_between(name, Sent(name.encode(), nested, "nested")))
        whole = encoded(_good(name, 1))
        deep = whole[:-1] + b', "more": ' + b"[" * 9000 + b"]" * 9000 + b"}"
        found.append(_between(f"{name}-field", Sent(f"{name}-field".encode(), deep, "nested")))
    return found


def _around(name: str, kind: str, changes: dict[str, Any], fault: str) -> Log:
    events: dict[str, dict[str, Any]] = {
        "turn": _good(name, 1),
        "session_end": end(name, START + timedelta(seconds=8)),
        "turn_edit": {
            "type": "turn_edit",
            "session_id": name,
            "seq": 0,
            "text": _TEXT,
            "occurred_at": (START + timedelta(minutes=1)).isoformat(),
        },
        "turn_delete": {
            "type": "turn_delete",
            "session_id": name,
            "seq": 0,
            "occurred_at": (START + timedelta(minutes=1)).isoformat(),
        },
        "outcome": {
            "type": "outcome",
            "session_id": name,
            "kind": "rating",
            "value": 4.0,
            "occurred_at": START.isoformat(),
        },
        "questionnaire": {
            "type": "questionnaire",
            "session_id": name,
            "instrument": "gad-7",
            "items": [1] * 7,
            "occurred_at": START.isoformat(),
        },
    }
    value = json.dumps({**events[kind], **changes}).encode("utf-8", "surrogatepass")
    return _between(name, Sent(key_of(value), value, fault))


def _between(name: str, event: Sent) -> Log:
    """The event after the first of three good turns."""
    first, *others = (Sent(name.encode(), encoded(_good(name, seq))) for seq in (0, 2, 3))
    return [first, event, *others]


def _good(name: str, seq: int) -> dict[str, Any]:
    return turn(name, seq, START + timedelta(seconds=2 * seq), _TEXT)
