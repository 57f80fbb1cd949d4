"""JSON Schemas (2020-12) of every message, generated from the structs.

The files in ``contracts/schemas`` are checked in; ``python -m stream_app.contracts.schema``
regenerates them, and a test compares both.
"""

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from stream_app.contracts import compact, events, interventions, scores

SCHEMA_DIR: Final = Path(__file__).parent / "schemas"
VERSION: Final = 1
MESSAGES: Final[dict[str, type[msgspec.Struct]]] = {
    "turn": events.Turn,
    "session_end": events.SessionEnd,
    "outcome": events.Outcome,
    "consent": events.Consent,
    "questionnaire": events.Questionnaire,
    "turn_score": scores.TurnScore,
    "session_score": scores.SessionScore,
    "alert": scores.Alert,
    "alert_action": scores.AlertAction,
    "intervention": interventions.Intervention,
    "intervention_receipt": interventions.InterventionReceipt,
    "dead_letter": scores.DeadLetter,
}
COMPACT: Final[dict[str, type[msgspec.Struct]]] = {
    "turn_score": compact.CompactTurnScore,
    "session_score": compact.CompactSessionScore,
}
"""Messages of version 2 (``RAPPORT_SCORE_SCHEMA``)."""


def urn(name: str, version: int = VERSION) -> str:
    """Identifies the schema of a message; published messages have it as ``ce_dataschema``."""
    return f"urn:rapport:{name}:v{version}"


def versions() -> list[tuple[str, int]]:
    """Names and versions of all schemas."""
    return [(name, VERSION) for name in MESSAGES] + [(name, compact.VERSION) for name in COMPACT]


def struct_of(name: str, version: int) -> type[msgspec.Struct]:
    """The struct of a message."""
    return (COMPACT if version == compact.VERSION else MESSAGES)[name]


def build(name: str, version: int = VERSION) -> dict[str, Any]:
    """The schema of one message."""
    body = msgspec.json.schema(struct_of(name, version), schema_hook=expressed)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": urn(name, version),
        **body,
    }


def expressed(kind: type) -> dict[str, Any]:
    """The heads of EPITOME and their total by name; the bundle's manifest names the others."""
    if kind is not scores.Expressed:
        raise TypeError(f"no schema for {kind.__name__}")
    _, parts = msgspec.json.schema_components([scores.Level])
    level, distribution = parts["Level"], msgspec.json.schema(scores.Distribution)
    return {
        "title": "Expressed",
        "description": "What the counsellor expressed, by head of the bundle's manifest. A head of "
        "levels has a level, any other the probability of each label.",
        "type": "object",
        "properties": {
            **dict.fromkeys(scores.MECHANISMS, level),
            scores.TOTAL: msgspec.json.schema(scores.Total),
        },
        "additionalProperties": {"anyOf": [level, distribution]},
    }


def text(name: str, version: int = VERSION) -> str:
    """The schema as the text of its file."""
    return json.dumps(build(name, version), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def write(directory: Path = SCHEMA_DIR) -> list[Path]:
    """Write every schema; return the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, version in versions():
        path = directory / f"{name}.v{version}.json"
        path.write_text(text(name, version), encoding="utf-8")
        paths.append(path)
    return paths


if __name__ == "__main__":
    for written in write():
        print(written.name)
