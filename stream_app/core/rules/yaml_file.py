"""Reads YAML files whose errors name the line: those of rules, intents and routes."""

import hashlib
from collections.abc import Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError


class Fault(Exception):  # collected, and raised as an error of the kind of file
    """One error in a file: line and column from 1."""

    def __init__(self, line: int, what: str, column: int = 1) -> None:
        super().__init__(what)
        self.line = line
        self.column = column
        self.what = what


def load(raw: bytes) -> Any:
    """The content of a file; mappings and lists know the places of their parts.

    Raises:
        Fault: it is not UTF-8, or not YAML.
    """
    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True  # columns of quoted expressions
    try:
        return yaml.load(raw.decode("utf-8"))
    except UnicodeDecodeError as problem:
        line = raw[: problem.start].count(b"\n") + 1
        raise Fault(line, "not valid UTF-8; save the file in UTF-8") from None
    except MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        what = " ".join(str(problem.problem or "not YAML").split())
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise Fault(line, f"not YAML: {what}", column) from None
    except (YAMLError, ValueError, RecursionError) as problem:
        what = str(problem).partition("\n")[0] or type(problem).__name__
        raise Fault(1, f"not YAML: {what}") from None


def line_of(item: CommentedMap, key: object, otherwise: int = 1) -> int:
    """Line of a key; ``otherwise`` if it is not there."""
    try:
        return int(item.lc.key(key)[0]) + 1
    except (KeyError, TypeError):
        return otherwise


def line_of_item(items: Any, index: int) -> int:
    """Line of an item of a list."""
    places = items.lc.data or {}  # a list with a custom tag has no line
    return int(places[index][0] if index in places else items.lc.line) + 1


def check_keys(body: CommentedMap, known: Sequence[str], version: int) -> None:
    """Check the top of a file.

    Raises:
        Fault: it has an unknown key, or another version.
    """
    for key in body:
        if key not in known:
            what = f"unknown key `{key}`; known are {', '.join(known)}"
            raise Fault(line_of(body, key), what)
    if body.get("version") != version:
        raise Fault(line_of(body, "version"), f"`version: {version}` is required")


def digest_of(raw: bytes) -> str:
    """The digest that identifies a file's bytes in alerts and logs."""
    return hashlib.sha256(raw).hexdigest()[:16]
