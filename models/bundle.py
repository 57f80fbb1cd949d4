"""The bundle folder: graphs, tokenizer and manifest."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from models.fit.calibrate import Calibration
from models.labels import HEADS, HEADS_BY_NAME, ROLE_NAMES, HeadSpec
from models.model.batches import AFTER, BEFORE, SLOTS
from models.model.encoder import MAX_TOKENS
from stream_app.core.measures.heads import WORDS, HeadWords

FORMAT = 2
NAME = "rapport-minilm"
VERSION = "2.1.0"
ENCODER, HEAD, TOKENIZER = "encoder.onnx", "head.onnx", "tokenizer.json"
MANIFEST, CARD = "bundle.json", "MODEL_CARD.md"
TRAINING_KEYS = (
    "parameters",
    "base_model",
    "data",
    "split",
    "split_sizes",
    "command",
    "seed",
    "epochs",
    "recipe",
)
OPTIONAL_KEYS = ("teacher", "distillation")


def manifest(
    folder: Path,
    *,
    profile: str,
    hidden_size: int,
    batch_independent: bool,
    packed: bool,
    calibration: Calibration,
    training: dict[str, Any],
    metrics: dict[str, Any],
    name: str = NAME,
) -> dict[str, Any]:
    """Build bundle.json for the files in the folder."""
    known = [*TRAINING_KEYS, *(key for key in OPTIONAL_KEYS if key in training)]
    return {
        "format": FORMAT,
        "name": name,
        "version": VERSION,
        "profile": profile,
        "encoder": {
            "file": ENCODER,
            "hidden_size": hidden_size,
            "max_tokens": MAX_TOKENS,
            "batch_independent": batch_independent,
            "packed": packed,
        },
        "head": {"file": HEAD, "slots": SLOTS},
        "tokenizer": {"file": TOKENIZER},
        "window": {"before": BEFORE, "after": AFTER},
        "heads": [head_entry(head, calibration) for head in HEADS],
        "empathy": None,
        "outcomes": {},
        "distress": None,
        "crisis": None,
        "perceived": None,
        "training": {key: training[key] for key in known},
        "metrics": metrics,
        "files": {name: sha256(folder / name) for name in (ENCODER, HEAD, TOKENIZER)},
    }


def head_entry(head: HeadSpec, calibration: Calibration) -> dict[str, Any]:
    """Build one head's entry of the manifest."""
    rationale = None
    if head.rationale_index is not None:
        rationale = {
            "index": head.rationale_index,
            "threshold": calibration.thresholds.get(head.name, 0.5),
        }
    return {
        **head_description(head),
        "temperature": calibration.temperatures.get(head.name, 1.0),
        "bias": calibration.biases.get(head.name, []),
        "offsets": calibration.offsets.get(head.name, []),
        "label_thresholds": calibration.label_thresholds.get(head.name, {}),
        "abstain_below": calibration.abstain_below.get(head.name, 0.0),
        "rationale": rationale,
    }


def head_description(head: HeadSpec) -> dict[str, Any]:
    """Describe a head: definition, display words, and session aggregates."""
    words = head.words if head.words != HeadWords() else WORDS.get(head.name, HeadWords())
    return {
        "name": head.name,
        "dimension": head.dimension,
        "kind": head.kind,
        "roles": [ROLE_NAMES[head.role]],
        "labels": list(head.labels),
        "words": {"title": words.title, "badge": words.badge, "labels": dict(words.labels)},
        "evidence": list(head.evidence),
    }


def describe_heads(folder: Path) -> dict[str, Any]:
    """Rewrite the heads' descriptions in a bundle's manifest; its model does not change.

    Raises:
        ValueError: a head has other labels than `models.labels` says.
    """
    content: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    for place, entry in enumerate(content["heads"]):
        description = head_description(HEADS_BY_NAME[entry["name"]])
        if entry["labels"] != description["labels"]:
            raise ValueError(f"{entry['name']} has other labels in {folder}: export it again")
        content["heads"][place] = description | {
            key: value for key, value in entry.items() if key not in description
        }
    write_manifest(folder, content)
    return content


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """Write bundle.json."""
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
