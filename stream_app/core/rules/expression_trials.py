"""Tries an expression with values of its variables, to find one that cannot be evaluated.

CEL reports a bad regular expression, a division by zero or an overflow only when it is evaluated,
and not where the rest of the expression decides. Values are therefore chosen around the literals of
the expression itself. An expression may fail for some of them (``10 / opportunities > 3`` for 0);
it must not fail in a way that no value of a variable mends.
"""

import itertools
import math
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from stream_app.core.rules.variables import Kind, Value

TRIALS: Final = 256
Values = Mapping[str, Value]
Run = Callable[[Values], object]
"""Gives the expression's value, or a ``Failure``."""
_USUAL: Final[Mapping[Kind, tuple[Value, ...]]] = {
    Kind.NUMBER: (1.0, 0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 100.0),
    Kind.COUNT: (1, 0, 2, 5, 1000),
    Kind.FLAG: (True, False),
    Kind.WORD: ("a", "", "1", "1000"),
}
_STEP: Final = 0.01
_DOUBLE = re.compile(r"(?<![\w.])\d+\.\d+")
_INT = re.compile(r"(?<![\w.])\d{1,18}(?![\w.])")
_TEXT = re.compile(r"\"([^\"\\]*)\"|'([^'\\]*)'")


class Failure(Struct, frozen=True):
    """An expression could not be evaluated; ``reason`` in the library's words."""

    reason: str


class Hopeless(Struct, frozen=True):
    """A failure that no value mends, and the values of the variables at which it was seen."""

    reason: str
    values: dict[str, Value]


def hopeless(run: Run, source: str, kinds: Mapping[str, Kind]) -> Hopeless | None:
    """The failure of an expression, or of a part of it, whatever the values are.

    The part ``bad`` of ``a && bad`` is seen where ``a`` is true: there, no variable makes the whole
    both true and false.

    >>> def run(values):
    ...     return values["turns"] > 3 and Failure("divide by zero")
    >>> hopeless(run, "turns > 3 && turns / 0 > 1", {"turns": Kind.COUNT}).reason
    'divide by zero'
    """
    choices = {name: _choices(source, kind) for name, kind in kinds.items()}
    failed = [
        Hopeless(found.reason, values)
        for values in _trials(choices)
        if isinstance(found := run(values), Failure)
    ]
    if not failed or any(_mended(run, each.values, choices) for each in failed):
        return None
    return failed[0]


def _mended(run: Run, failing: Values, choices: Mapping[str, Sequence[Value]]) -> bool:
    """Whether half of the values of one variable mend it; a condition must be true and false."""
    for name, others in choices.items():
        found = [run({**failing, name: value}) for value in others]
        failures = sum(isinstance(each, Failure) for each in found)
        decides = any(each is True for each in found) and any(each is False for each in found)
        is_number = any(type(each) in (int, float) for each in found)
        if 2 * failures <= len(found) and (decides or is_number):
            return True
    return False


def _choices(source: str, kind: Kind) -> tuple[Value, ...]:
    """Usual values of a variable, and those at and around the expression's literals."""
    own: Iterable[Value] = ()
    match kind:
        case Kind.NUMBER:
            numbers = map(float, _DOUBLE.findall(source))
            own = [number + step for number in numbers for step in (-_STEP, 0.0, _STEP)]
        case Kind.COUNT:
            counts = map(int, _INT.findall(source))
            own = [max(count + step, 0) for count in counts for step in (-1, 0, 1)]
        case Kind.WORD:
            own = [double or single for double, single in _TEXT.findall(source)]
        case Kind.FLAG:
            pass
    return tuple(dict.fromkeys((*_USUAL[kind], *own)))


def _trials(choices: Mapping[str, tuple[Value, ...]]) -> Iterable[dict[str, Value]]:
    """All combinations if they are few, else always the same sample of them."""
    if math.prod(map(len, choices.values())) <= TRIALS:
        for combination in itertools.product(*choices.values()):
            yield dict(zip(choices, combination, strict=True))
        return
    for trial in range(TRIALS):
        yield {
            name: each[zlib.crc32(f"{name} {trial}".encode()) % len(each)]
            for name, each in choices.items()
        }
