"""JSON Schemas (2020-12) of every message, generated from the structs.

The files in ``contracts/schemas`` are checked in; ``python -m stream_app.contracts.schema``
regenerates them, and a test compares both.
"""

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from stream_app.contracts import events, interventions, scores

SCHEMA_DIR: Final = Path(__file__).parent / "schemas"
VERSION: Final = 1
MESSAGES: Final[dict[str, type[msgspec.Struct]]] = {
    "turn": events.Turn,
    "session_end": events.SessionEnd,
    "outcome": events.Outcome,
    "consent": events.Consent,
    "questionnaire": events.Questionnaire,
    "turn_edit": events.TurnEdit,
    "turn_delete": events.TurnDelete,
    "turn_score": scores.TurnScore,
    "session_score": scores.SessionScore,
    "alert": scores.Alert,
    "alert_action": scores.AlertAction,
    "intervention": interventions.Intervention,
    "intervention_receipt": interventions.InterventionReceipt,
    "dead_letter": scores.DeadLetter,
}


def urn(name: str) -> str:
    """Identifies the schema of a message; published messages have it as ``ce_dataschema``."""
    return f"urn:rapport:{name}:v{VERSION}"


def build(name: str) -> dict[str, Any]:
    """The schema of one message."""
    body = msgspec.json.schema(MESSAGES[name], schema_hook=expressed)
    if (role := body["$defs"].get(events.Role.__name__)) is not None:  # of scores
        role["enum"] = sorted(each.value for each in events.SCORED_ROLES)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": urn(name),
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


def text(name: str) -> str:
    """The schema as the text of its file."""
    return json.dumps(build(name), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def write(directory: Path = SCHEMA_DIR) -> list[Path]:
    """Write every schema; return the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in MESSAGES:
        path = directory / f"{name}.v{VERSION}.json"
        path.write_text(text(name), encoding="utf-8")
        paths.append(path)
    return paths


if __name__ == "__main__":
    for written in write():
        print(written.name)
