"""Parses a file of intents; every error names the file and the line. See ``docs/intents.md``."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from stream_app.contracts.events import SCORED_ROLES, Role
from stream_app.core.measures.intents import DEFAULT_THRESHOLD, Intent, IntentSet
from stream_app.core.rules.yaml_file import (
    Fault,
    check_keys,
    digest_of,
    line_of,
    line_of_item,
    load,
)
from stream_app.errors import RapportError

VERSION: Final = 1
MAX_INTENTS: Final = 1000
MAX_BYTES: Final = 4 * 1024 * 1024
MIN_EXAMPLES: Final = 3
MAX_EXAMPLES: Final = 10
MAX_COUNTER_EXAMPLES: Final = 10
MAX_SENTENCE: Final = 1000
"""Characters of an example; encoders read far fewer."""
MAX_NAME: Final = 60
MAX_TITLE: Final = 100
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_TOP: Final = ("version", "include", "intents")
_KEYS: Final = ("name", "title", "role", "examples", "counter_examples", "threshold")
_ROLES: Final = {
    "client": frozenset({Role.CLIENT}),
    "counsellor": frozenset({Role.COUNSELLOR}),
    "both": frozenset(SCORED_ROLES),
}

ReadShipped = Callable[[str], bytes | None]
"""Reads a set of intents that is shipped, by name; None if there is none of this name."""


class IntentFileError(RapportError):
    """An invalid file of intents; one line per error, ``file:line: message``."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


def parse(raw: bytes, name: str, read_shipped: ReadShipped) -> IntentSet:
    """The intents in a file's bytes, after those of the sets that it includes.

    An intent of the file replaces an included one of the same name. An empty file has no intents.

    Args:
        raw: the file's bytes.
        name: how messages call the file.
        read_shipped: reads the sets that the file includes.

    Raises:
        IntentFileError: with all errors found.
    """
    try:
        if len(raw) > MAX_BYTES:
            raise Fault(1, f"{len(raw)} bytes are too many; {MAX_BYTES} are allowed")
        body = load(raw)
        if body is None:
            return IntentSet(digest=digest_of(raw))
        _check_top(body)
        items = _items(body)
        included = list(_included(body, read_shipped))
    except Fault as fault:
        raise IntentFileError([f"{name}:{fault.line}: {fault.what}"]) from None
    own, faults = _parsed(items)
    if faults:
        faults.sort(key=lambda fault: fault.line)
        raise IntentFileError([f"{name}:{fault.line}: {fault.what}" for fault in faults])
    found = {intent.name: intent for part in included for intent in part.intents}
    found |= {intent.name: intent for intent in own}
    if len(found) > MAX_INTENTS:
        raise IntentFileError(
            [f"{name}:1: {len(found)} intents are too many; {MAX_INTENTS} are allowed"]
        )
    parts = [digest_of(raw), *(part.digest for part in included)]
    digest = digest_of(" ".join(parts).encode()) if included else parts[0]
    return IntentSet(tuple(found.values()), digest)


def _check_top(body: Any) -> None:
    if not isinstance(body, CommentedMap):
        raise Fault(1, "a file of intents begins with `version: 1` and has a list `intents:`")
    check_keys(body, _TOP, VERSION)


def _items(body: CommentedMap) -> Sequence[Any]:
    items = body.get("intents")
    if items is None:
        return ()
    if not isinstance(items, CommentedSeq):
        raise Fault(line_of(body, "intents"), "`intents` is a list")
    if len(items) > MAX_INTENTS:
        what = f"{len(items)} intents are too many; {MAX_INTENTS} are allowed"
        raise Fault(line_of(body, "intents"), what)
    return items


def _included(body: CommentedMap, read_shipped: ReadShipped) -> Iterator[IntentSet]:
    names = body.get("include", ())
    line = line_of(body, "include")
    if not isinstance(names, list | tuple):
        raise Fault(line, "`include` is a list of shipped sets")
    for name in names:
        raw = read_shipped(name) if isinstance(name, str) else None
        if raw is None:
            raise Fault(line, f"`include`: there is no shipped set `{name}`")
        yield parse(raw, str(name), lambda _: None)


def _parsed(items: Sequence[Any]) -> tuple[list[Intent], list[Fault]]:
    intents: list[Intent] = []
    faults: list[Fault] = []
    lines: dict[str, int] = {}
    for index, item in enumerate(items):
        line = line_of_item(items, index)
        intent = _Fields(item, line, faults).intent()
        if intent is None:
            continue
        if intent.name in lines:
            what = f"the name `{intent.name}` is already used at line {lines[intent.name]}"
            faults.append(Fault(line, what))
        lines.setdefault(intent.name, line)
        intents.append(intent)
    return intents, faults


class _Fields:
    """Parses one intent; errors are appended to ``faults``, so that all are reported at once."""

    def __init__(self, item: Any, line: int, faults: list[Fault]) -> None:
        self._item = item
        self._line = line
        self._faults = faults

    def intent(self) -> Intent | None:
        before = len(self._faults)
        if not isinstance(self._item, CommentedMap):
            self._faults.append(
                Fault(self._line, "an intent must be a mapping with name, role and examples")
            )
            return None
        for key in self._item:
            if key not in _KEYS:
                self._fault(key, f"unknown key `{key}`; known are {', '.join(_KEYS)}")
        intent = Intent(
            self._name(),
            self._roles(),
            self._sentences("examples", MIN_EXAMPLES, MAX_EXAMPLES),
            self._sentences("counter_examples", 0, MAX_COUNTER_EXAMPLES),
            self._title(),
            self._threshold(),
        )
        if both := {text.casefold() for text in intent.examples} & {
            text.casefold() for text in intent.counter_examples
        }:
            what = f"{len(both)} sentences are examples and counter-examples at once"
            self._fault("counter_examples", what)
        return intent if len(self._faults) == before else None

    def _name(self) -> str:
        found = self._item.get("name")
        valid = isinstance(found, str) and len(found) <= MAX_NAME and _NAME.fullmatch(found)
        if not valid:
            self._fault(
                "name",
                f"`name` is required: at most {MAX_NAME} lower-case letters, digits and _ between "
                "them, as in `ask_contact`",
            )
            return ""
        return str(found)

    def _title(self) -> str:
        found = self._item.get("title", "")
        if not isinstance(found, str) or len(found) > MAX_TITLE:
            self._fault("title", f"`title` is a text of at most {MAX_TITLE} characters")
            return ""
        return " ".join(found.split())

    def _roles(self) -> frozenset[Role]:
        found = self._item.get("role")
        if not isinstance(found, str) or found not in _ROLES:
            self._fault("role", "`role` is required: client, counsellor or both")
            return frozenset()
        return _ROLES[found]

    def _threshold(self) -> float:
        found = self._item.get("threshold", DEFAULT_THRESHOLD)
        number = isinstance(found, int | float) and not isinstance(found, bool)
        if not number or not 0 < found < 1:
            self._fault("threshold", "`threshold` must be a number between 0 and 1")
            return DEFAULT_THRESHOLD
        return float(found)

    def _sentences(self, key: str, least: int, most: int) -> tuple[str, ...]:
        found = self._item.get(key, ())
        if not isinstance(found, list | tuple) or not least <= len(found) <= most:
            count = f", not {len(found)}" if isinstance(found, list) else ""
            self._fault(key, f"`{key}` must be a list of {least} to {most} sentences{count}")
            return ()
        kept: dict[str, str] = {}
        for place, text in enumerate(found):
            if not isinstance(text, str) or not text.strip():
                self._fault(key, f"`{key}`: item {place + 1} is not a text; quote it")
            elif len(text) > MAX_SENTENCE:
                what = f"item {place + 1} has {len(text)} characters; {MAX_SENTENCE} are allowed"
                self._fault(key, f"`{key}`: {what}")
            elif kept.setdefault(text.strip().casefold(), text.strip()) != text.strip():
                self._fault(key, f"`{key}`: item {place + 1} repeats an earlier one")
        if len(kept) < len(found) and len(kept) < least:
            self._fault(key, f"`{key}` needs {least} different sentences")
        return tuple(kept.values())

    def _fault(self, key: str, what: str) -> None:
        line = line_of(self._item, key, self._line)
        self._faults.append(Fault(line, what))
