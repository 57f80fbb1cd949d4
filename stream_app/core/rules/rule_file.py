"""Parses a file of rules; every error names the file and the line. See ``docs/rules.md``."""

import re
import string
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import (
    DoubleQuotedScalarString,
    FoldedScalarString,
    LiteralScalarString,
    SingleQuotedScalarString,
)

from stream_app.contracts.events import Domain
from stream_app.contracts.scores import Severity
from stream_app.core.rules.conditions import BadExpression, Compiled, condition, number
from stream_app.core.rules.rules import SEEN, AppliesTo, Duration, Rule, RuleSet
from stream_app.core.rules.variables import CATALOGUE, Catalogue, Kind
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
MAX_NAME: Final = 100
MAX_SUMMARY: Final = 500
MAX_LABELS: Final = 16
MAX_PROTOCOL: Final = 2000
MAX_RULES: Final = 200
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_TURNS = re.compile(r"(\d+) turns?")
_TIME = re.compile(r"(\d+)(s|m|h)")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600}
_TOP: Final = ("version", "rules")
_KEYS: Final = (
    "name",
    "summary",
    "severity",
    "when",
    "clear",
    "for",
    "cooldown",
    "min_scored_turns",
    "labels",
    "protocol",
    "value",
    "threshold",
    "domains",
    "teams",
    "channels",
)
_NEEDED: Final = ("name", "summary", "severity", "when")


class RuleProblem(Struct, frozen=True):
    """One error; ``line`` and ``column`` count from 1 in the file."""

    line: int
    column: int
    what: str


class RuleFileError(RapportError):
    """An invalid file of rules; one line per error, ``file:line: message``.

    ``problems``: the same errors with their places; empty if the file cannot be read.
    """

    def __init__(self, faults: list[str], problems: Sequence[RuleProblem] = ()) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults
        self.problems = tuple(problems)


def _refused(name: str, faults: Sequence[Fault]) -> RuleFileError:
    return RuleFileError(
        [f"{name}:{fault.line}: {fault.what}" for fault in faults],
        [RuleProblem(fault.line, fault.column, fault.what) for fault in faults],
    )


def parse(raw: bytes, name: str, catalogue: Catalogue = CATALOGUE) -> RuleSet:
    """The rules in a file's bytes; ``name`` is how messages call the file.

    ``catalogue``: the variables that they may use.

    Raises:
        RuleFileError: with all errors found.
    """
    try:
        body = load(raw)
        items = _items(body)
    except Fault as fault:
        raise _refused(name, [fault]) from None
    rules: list[Rule] = []
    faults: list[Fault] = []
    lines: dict[str, int] = {}
    for index, item in enumerate(items):
        rule = _Fields(item, line_of_item(items, index), faults, catalogue).rule()
        if rule is None:
            continue
        line = line_of(item, "name")
        if rule.name in lines:
            what = f"the name `{rule.name}` is already used by the rule at line {lines[rule.name]}"
            faults.append(Fault(line, what, _column_of(item, "name")))
        lines.setdefault(rule.name, line)
        rules.append(rule)
    if faults:
        faults.sort(key=lambda fault: fault.line)
        raise _refused(name, faults)
    return RuleSet(tuple(rules), digest_of(raw), catalogue)


def _items(body: Any) -> CommentedSeq:
    if not isinstance(body, CommentedMap):
        raise Fault(1, "a file of rules begins with `version: 1` and has a list `rules:`")
    check_keys(body, _TOP, VERSION)
    items = body.get("rules")
    if not isinstance(items, CommentedSeq):
        raise Fault(line_of(body, "rules"), "`rules` is a list")
    if len(items) > MAX_RULES:
        raise Fault(
            line_of(body, "rules"), f"{len(items)} rules are too many; {MAX_RULES} are allowed"
        )
    return items


def _column_of(item: CommentedMap, key: object) -> int:
    """Column of a key, from 1."""
    return int(item.lc.key(key)[1]) + 1


class _Fields:
    """Parses one rule; errors are appended to ``faults``, so that all are reported at once."""

    def __init__(self, item: Any, line: int, faults: list[Fault], catalogue: Catalogue) -> None:
        self._item = item
        self._catalogue = catalogue
        self._line = line
        self._faults = faults

    def rule(self) -> Rule | None:
        before = len(self._faults)
        if not isinstance(self._item, CommentedMap):
            self._faults.append(Fault(self._line, "a rule must be a mapping with name, when etc."))
            return None
        for key in self._item:
            if key not in _KEYS:
                self._fault(key, f"unknown key `{key}`; known are {', '.join(_KEYS)}")
        for key in _NEEDED:
            if key not in self._item:
                self._faults.append(Fault(self._line, f"the rule lacks `{key}`"))
        name = self._text("name", MAX_NAME)
        if name and not _NAME.fullmatch(name):
            self._fault(
                "name", "a name consists of lower-case letters, digits and hyphens: `low-empathy`"
            )
        when = self._expression("when", condition)
        clear = self._expression("clear", condition)
        value = self._expression("value", number)
        threshold = self._expression("threshold", number)
        summary, placeholders = self._summary()
        rule = self._built(name, summary, placeholders, when, clear, value, threshold)
        return rule if len(self._faults) == before else None

    def _built(
        self,
        name: str,
        summary: str,
        placeholders: tuple[str, ...],
        when: Compiled | None,
        clear: Compiled | None,
        value: Compiled | None,
        threshold: Compiled | None,
    ) -> Rule | None:
        severity = self._severity()
        lasts = self._duration("for", "1 turn")
        cooldown = self._duration("cooldown", "0 turns")
        if lasts.time is None and lasts.turns < 1:
            self._fault("for", "at least `1 turn`, or a time such as `0s`")
        parts = [part for part in (when, clear, value, threshold) if part is not None]
        names = [name for part in parts for name in part.names]
        names += [name for name in placeholders if name in self._catalogue]
        shown = tuple(n for n in dict.fromkeys(names) if self._catalogue[n].kind is not Kind.WORD)
        applies_to = AppliesTo(
            domains=self._words("domains", {domain.value for domain in Domain}),
            teams=self._words("teams"),
            channels=self._words("channels"),
        )
        least, labels = self._count("min_scored_turns"), self._labels()
        protocol = self._text("protocol", MAX_PROTOCOL).strip() or None
        if when is None or severity is None:
            return None
        return Rule(
            name=name,
            summary=summary,
            severity=severity,
            when=when,
            clear=clear,
            lasts=lasts,
            cooldown=cooldown,
            min_scored_turns=least,
            labels=labels,
            value=value,
            threshold=threshold,
            applies_to=applies_to,
            shown=shown,
            placeholders=placeholders,
            protocol=protocol,
        )

    def _fault(
        self, key: object, what: str, more_lines: int = 0, column: int | None = None
    ) -> None:
        line = line_of(self._item, key) + more_lines
        self._faults.append(Fault(line, what, column or _column_of(self._item, key)))

    def _text(self, key: str, longest: int) -> str:
        found = self._item.get(key)
        if found is None and key not in self._item:
            return ""
        if not isinstance(found, str) or not found.strip():
            self._fault(key, f"`{key}` is a text")
            return ""
        if "\0" in found:
            self._fault(key, f"`{key}` contains a NUL character")
        if len(found) > longest:
            self._fault(key, f"`{key}` is longer than {longest} characters")
        return str(found)

    def _expression(
        self, key: str, compiled: Callable[[str, Catalogue], Compiled]
    ) -> Compiled | None:
        if key not in self._item:
            return None
        source = self._item[key]
        if isinstance(source, bool | int | float):
            source = str(source).lower()
        if not isinstance(source, str) or not source.strip():
            self._fault(key, f"`{key}` must be an expression")
            return None
        try:
            return compiled(str(source), self._catalogue)
        except BadExpression as problem:
            block = isinstance(source, LiteralScalarString)
            folded = isinstance(source, FoldedScalarString)
            where = f"`{key}`, column {problem.column}" if not folded else f"`{key}`"
            column = None if block or folded else self._column_in_file(key, problem.column)
            self._fault(key, f"{where}: {problem.what}", problem.line if block else 0, column)
            return None

    def _column_in_file(self, key: str, column: int) -> int | None:
        """Column of a place in an expression that stands on the line of its key."""
        line, start = self._item.lc.value(key)
        if line != self._item.lc.key(key)[0]:
            return None
        quoted = isinstance(self._item[key], DoubleQuotedScalarString | SingleQuotedScalarString)
        return int(start) + column + quoted

    def _summary(self) -> tuple[str, tuple[str, ...]]:
        text = " ".join(self._text("summary", MAX_SUMMARY).split())
        try:
            fields = [field for _, field, _, _ in string.Formatter().parse(text) if field]
        except ValueError:
            self._fault("summary", "`summary` has an unbalanced brace")
            return text, ()
        if re.search(r"\{[^{}]*[:![][^{}]*\}", text):
            self._fault("summary", "`summary`: a placeholder contains only a name: {turns}")
        for field in fields:
            if field not in (SEEN, "value", "threshold") and field not in self._catalogue:
                self._fault("summary", f"`summary`: there is no variable `{field}`")
            elif field in self._catalogue and self._catalogue[field].kind in (Kind.WORD, Kind.FLAG):
                self._fault("summary", f"`summary`: `{field}` is not a number")
        return text, tuple(dict.fromkeys(fields))

    def _severity(self) -> Severity | None:
        if "severity" not in self._item:
            return None
        try:
            return Severity(self._item["severity"])
        except ValueError:
            self._fault("severity", "`severity` must be info, warning or critical")
            return None

    def _duration(self, key: str, default: str) -> Duration:
        found = self._item.get(key, default)
        text = str(found).strip()
        if match := _TURNS.fullmatch(text):
            return Duration(turns=int(match[1]))
        if match := _TIME.fullmatch(text):
            seconds = int(match[1]) * _UNITS[match[2]]
            if seconds <= 86_400:
                return Duration(time=timedelta(seconds=seconds))
        self._fault(
            key, f"`{key}` must be counsellor turns (`2 turns`) or a time up to 24h (`90s`, `5m`)"
        )
        return Duration(turns=1)

    def _count(self, key: str) -> int:
        found = self._item.get(key, 0)
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            self._fault(key, f"`{key}` must be a whole number, 0 or more")
            return 0
        return int(found)

    def _labels(self) -> dict[str, str]:
        found = self._item.get("labels", {})
        if not isinstance(found, dict) or len(found) > MAX_LABELS:
            self._fault(
                "labels", f"`labels` must be a mapping of at most {MAX_LABELS} names to texts"
            )
            return {}
        for key, value in found.items():
            right = isinstance(value, str) and len(value) <= MAX_NAME
            if not isinstance(key, str) or not _LABEL.fullmatch(key) or not right:
                line = line_of(found, key) if isinstance(found, CommentedMap) else self._line
                what = f"the label `{key}`: a name of letters, digits and _, and a short text"
                self._faults.append(Fault(line, what))
        return {str(key): str(value) for key, value in sorted(found.items(), key=str)}

    def _words(self, key: str, known: set[str] | None = None) -> frozenset[str]:
        if key not in self._item:
            return frozenset()
        found = self._item[key]
        if not isinstance(found, list) or not found or not all(isinstance(x, str) for x in found):
            self._fault(key, f"`{key}` must be a list of names")
            return frozenset()
        for word in found:
            if known is not None and word not in known:
                self._fault(key, f"`{key}`: `{word}` is not one of {', '.join(sorted(known))}")
        return frozenset(map(str, found))
