"""Files of results: one line for each value, and a file with the record of the run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from research.second_coder.coding import Result


def write(out: Path, coder: str, results: Iterable[Result], record: Mapping[str, Any]) -> None:
    """Write the values as `models.agreement file` reads them, and the record to `OUT.run.json`.

    The experts' labels of the items are lines of the coder "expert". Neither file has text.
    """
    lines = [line for result in results for line in _lines(coder, result)]
    _replace(out, b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    _replace(record_file(out), msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def record_file(out: Path) -> Path:
    """Where the record of a run goes.

    >>> record_file(Path("coded.jsonl")).name
    'coded.jsonl.run.json'
    """
    return out.with_name(out.name + ".run.json")


def _lines(coder: str, result: Result) -> list[dict[str, Any]]:
    place = {"session": result.item.session, "item": result.item.item, "variable": result.variable}
    answer = result.answer
    found: dict[str, Any] = {
        **place,
        "coder": coder,
        "kind": "llm",
        "value": answer.label if answer is not None else None,
        "attempts": result.attempts,
    }
    if answer is None:
        found["problem"] = result.problem
    elif answer.evidence:
        found["evidence"] = answer.evidence
    if answer is not None and answer.probabilities:
        found["probabilities"] = answer.probabilities
    lines = [found]
    expert = result.item.experts.get(result.variable)
    if expert is not None:
        lines.append({**place, "coder": "expert", "kind": "expert", "value": expert})
    return lines


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    partial.replace(path)
