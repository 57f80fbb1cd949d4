"""Checks the rule of docs/architecture.md about structs and dataclasses."""

import ast
from functools import cache
from pathlib import Path

from tests import sources

ROOT = Path(__file__).parent.parent
DATACLASSES = ("store", "findings", "work", "web", "analytics", "adaptation", "demo")


@cache
def _dataclasses() -> dict[str, set[str]]:
    """Options of every dataclass of the service, by file and name."""
    found = {}
    for file in sorted((ROOT / "stream_app").rglob("*.py")):
        for node in sources.statements(sources.tree(file)):
            for decorator in getattr(node, "decorator_list", []):
                text = ast.unparse(decorator)
                if isinstance(node, ast.ClassDef) and text.startswith("dataclass"):
                    options = {
                        f"{word.arg}={ast.unparse(word.value)}"
                        for word in getattr(decorator, "keywords", [])
                    }
                    found[f"{file.relative_to(ROOT)}:{node.name}"] = options
    return found


def test_dataclasses_are_only_in_their_packages() -> None:
    places = _dataclasses()
    assert len(places) > 50
    rooms = tuple(f"stream_app/{name}/" for name in DATACLASSES)
    outside = {p for p in places if not p.startswith(rooms)}
    assert not outside


def test_dataclasses_are_frozen_and_have_slots() -> None:
    loose = {
        p for p, options in _dataclasses().items() if not options >= {"frozen=True", "slots=True"}
    }
    assert not loose
