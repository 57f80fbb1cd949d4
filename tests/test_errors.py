"""The error tree in ``stream_app.errors`` matches the classes."""

import importlib
import pkgutil
from typing import Final

import stream_app
from stream_app import errors
from stream_app.errors import RapportError

BRANCHES: Final = "│├└─ "


def test_the_tree_has_every_error_below_its_base_with_its_module() -> None:
    for module in pkgutil.walk_packages(stream_app.__path__, "stream_app."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert _drawn(errors.__doc__ or "") == _defined(RapportError)


def test_the_tree_is_parsed_with_its_branches() -> None:
    drawn = _drawn("Words.\n\nTop\n├── One  what it says\n│   └── Two  more [a.b]\n└── Three x\n")
    assert drawn == {
        ("One", "Top", "stream_app.errors"),
        ("Two", "One", "stream_app.a.b"),
        ("Three", "Top", "stream_app.errors"),
    }


def _drawn(text: str) -> set[tuple[str, str, str]]:
    """(name, base, module); an error without a module has its base's."""
    found: set[tuple[str, str, str]] = set()
    path: list[tuple[str, str]] = []
    lines = text.splitlines()
    top = next(i for i, line in enumerate(lines) if i + 1 < len(lines) and lines[i + 1][:1] == "├")
    path.append((lines[top], "stream_app.errors"))
    for line in lines[top + 1 :]:
        entry = line.lstrip(BRANCHES)
        if not entry:
            continue
        depth = (len(line) - len(entry)) // 4
        name, base = entry.split()[0], path[depth - 1]
        module = entry.rpartition("[")[2].removesuffix("]") if entry.endswith("]") else None
        where = f"stream_app.{module}" if module else base[1]
        path[depth:] = [(name, where)]
        found.add((name, base[0], where))
    return found


def _defined(base: type[RapportError]) -> set[tuple[str, str, str]]:
    found: set[tuple[str, str, str]] = set()
    for error in base.__subclasses__():
        if error.__module__.startswith("stream_app."):
            found |= {(error.__name__, base.__name__, error.__module__)} | _defined(error)
    return found
