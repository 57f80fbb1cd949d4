"""Schemas stay compatible with those of every release.

Incoming: what a producer may send now, it may send later. Outgoing: what a consumer reads now, it
can read later. A release adds its schemas as a folder of `released/`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stream_app.contracts import schema

RELEASED = sorted(Path(__file__).parent.glob("released/*/*.json"))
INCOMING = (
    *("turn", "session_end", "outcome", "consent", "questionnaire"),
    *("turn_edit", "turn_delete"),
)


def fields(
    part: dict[str, Any], root: dict[str, Any] | None = None, seen: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Paths of all fields, and whether each is required. `*`: any name, or any place of a list."""
    root = root or part
    if name := part.get("$ref", "").rpartition("/")[2]:
        if name not in seen:
            yield from fields(root["$defs"][name], root, (*seen, name))
        return
    for name, value in part.get("properties", {}).items():
        yield (name,), name in part.get("required", ())
        yield from (((name, *path), needed) for path, needed in fields(value, root, seen))
    for kind in ("anyOf", "oneOf", "prefixItems"):
        for value in part.get(kind, ()):
            yield from fields(value, root, seen)
    for kind in ("items", "additionalProperties"):
        if isinstance(value := part.get(kind), dict):
            yield ("*",), False
            yield from ((("*", *path), needed) for path, needed in fields(value, root, seen))


def covers(path: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return len(path) == len(other) and all(a in ("*", b) for a, b in zip(path, other, strict=True))


@pytest.mark.parametrize("file", RELEASED, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_released_schema_loses_no_field(file: Path) -> None:
    before = dict(fields(json.loads(file.read_text("utf-8"))))
    now = dict(fields(schema.build(file.name.partition(".")[0])))
    assert len(before) > 2
    lost = [path for path in before if not any(covers(kept, path) for kept in now)]
    assert lost == []


@pytest.mark.parametrize("file", RELEASED, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_producers_and_consumers_of_a_release_still_work(file: Path) -> None:
    name = file.name.partition(".")[0]
    before = dict(fields(json.loads(file.read_text("utf-8"))))
    now = dict(fields(schema.build(name)))
    if name in INCOMING:
        assert [path for path, needed in now.items() if needed and not before.get(path)] == []
    else:
        gone = [path for path, needed in before.items() if needed and not now.get(path, True)]
        assert gone == []


def test_a_lost_or_newly_required_field_is_found() -> None:
    before = {"properties": {"a": {"type": "string"}, "b": {"properties": {"c": {}}}}}
    now = {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}
    assert dict(fields(before)) == {("a",): False, ("b",): False, ("b", "c"): False}
    assert dict(fields(now)) == {("a",): True, ("b",): False}
    assert not any(covers(path, ("b", "c")) for path in dict(fields(now)))
    assert covers(("expressed", "*"), ("expressed", "strategy"))
