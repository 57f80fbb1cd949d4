"""Conditions that only compare variables, evaluated without CEL.

Nearly all conditions are such, and they are evaluated after every turn: the way into CEL's library
and back takes several times as long as the comparisons. Anything else is left to CEL. Results are
CEL's: an absent variable makes the result unknown, unless the other side of ``&&`` or ``||``
decides it.
"""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Final

from stream_app.core.rules.variables import Catalogue, Kind

Values = Mapping[str, object]
Test = Callable[[Values], bool | None]
"""True, false, or None if an absent variable decides it."""
_Operand = Callable[[Values], float | int | None]

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>-?\d+\.\d+)|(?P<count>-?\d{1,9}(?![\w.]))"
    r"|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?!\s*\()"
    r"|(?P<sign>&&|\|\||<=|>=|==|!=|<|>|\*|!))"
)
_COMPARE: Final = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class _Other(Exception):
    """The expression is not one of comparisons alone."""


def comparisons(source: str, catalogue: Catalogue) -> Test | None:
    """Compile a condition; None if it is not made of comparisons alone.

    Operands are variables, numbers, and products of both; flags may stand alone. The expression
    must be valid for CEL.

    >>> from stream_app.core.rules.variables import CATALOGUE
    >>> test = comparisons("waiting && waiting_distress >= 0.8", CATALOGUE)
    >>> test({"waiting": True, "waiting_distress": 0.9}), test({"waiting": True})
    (True, None)
    >>> test({"waiting": False}), comparisons("channel.startsWith('a')", CATALOGUE)
    (False, None)
    """
    try:
        return _Parser(source, catalogue).parse()
    except _Other:
        return None


class _Parser:
    """Reads ``||`` of ``&&`` of comparisons; without parentheses."""

    def __init__(self, source: str, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._tokens: list[tuple[str, str]] = []
        at, end = 0, len(source.rstrip())
        while at < end:
            match = _TOKEN.match(source, at)
            if match is None or match.lastgroup is None:
                raise _Other
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self._tokens.reverse()

    def parse(self) -> Test:
        """The whole expression."""
        test = self._joined("||", lambda: self._joined("&&", self._comparison))
        if self._tokens:
            raise _Other
        return test

    def _joined(self, sign: str, part: Callable[[], Test]) -> Test:
        tests = [part()]
        while self._tokens and self._tokens[-1] == ("sign", sign):
            self._tokens.pop()
            tests.append(part())
        return tests[0] if len(tests) == 1 else _decided_by(tests, decisive=sign == "||")

    def _comparison(self) -> Test:
        negated = bool(self._tokens) and self._tokens[-1] == ("sign", "!")
        if negated:
            self._tokens.pop()
        flag = self._flag()
        if flag is not None:
            return _flag(flag, expected=not negated)
        if negated:
            raise _Other
        left, kind = self._operand()
        sign = self._next("sign")
        right, other = self._operand()
        if sign not in _COMPARE or kind is not other:
            raise _Other
        return _compared(_COMPARE[sign], left, right)

    def _flag(self) -> str | None:
        if not self._tokens:
            raise _Other
        group, name = self._tokens[-1]
        if group == "name" and name in self._catalogue and self._kind(name) is Kind.FLAG:
            self._tokens.pop()
            return name
        return None

    def _operand(self) -> tuple[_Operand, Kind]:
        left, kind = self._value()
        if self._tokens and self._tokens[-1] == ("sign", "*"):
            self._tokens.pop()
            right, other = self._value()
            if kind is not Kind.NUMBER or other is not Kind.NUMBER:
                raise _Other  # CEL's integers overflow
            return _product(left, right), kind
        return left, kind

    def _value(self) -> tuple[_Operand, Kind]:
        group, text = self._tokens.pop() if self._tokens else ("", "")
        if group == "number":
            number = float(text)
            return lambda _: number, Kind.NUMBER
        if group == "count":
            count = int(text)
            return lambda _: count, Kind.COUNT
        if group == "name" and text in self._catalogue:
            return _read(text), self._kind(text)
        raise _Other

    def _kind(self, name: str) -> Kind:
        kind = self._catalogue[name].kind
        if kind is Kind.WORD:
            raise _Other
        return kind

    def _next(self, group: str) -> str:
        found = self._tokens.pop() if self._tokens else ("", "")
        if found[0] != group:
            raise _Other
        return found[1]


def _read(name: str) -> _Operand:
    return lambda values: values.get(name)  # type: ignore[return-value]  # of a numeric kind


def _product(left: _Operand, right: _Operand) -> _Operand:
    def product(values: Values) -> float | None:
        a, b = left(values), right(values)
        return None if a is None or b is None else a * b

    return product


def _flag(name: str, *, expected: bool) -> Test:
    def test(values: Values) -> bool | None:
        found = values.get(name)
        return None if found is None else found is expected

    return test


def _compared(compare: Callable[[float, float], bool], left: _Operand, right: _Operand) -> Test:
    def test(values: Values) -> bool | None:
        a, b = left(values), right(values)
        return None if a is None or b is None else compare(a, b)

    return test


def _decided_by(tests: list[Test], *, decisive: bool) -> Test:
    """``||`` is decided by one that is true, ``&&`` by one that is false."""

    def test(values: Values) -> bool | None:
        unknown = False
        for part in tests:
            found = part(values)
            if found is decisive:
                return decisive
            unknown = unknown or found is None
        return None if unknown else not decisive

    return test
