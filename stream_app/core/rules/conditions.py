"""Expressions of rules: CEL with declared variables, checked when they are compiled.

CEL (the Common Expression Language, https://cel.dev) has no side effects. Its list macros must not
be nested and must not build lists, so that the cost of an expression is bounded by its length. One
that cannot be evaluated is refused (``core.expression_trials``). One that fails nevertheless, for
some values, is unknown, and counted (``Reading.failures``).
"""

import math
import re
from functools import cache
from typing import Final, NoReturn

from cel_expr_python import cel
from cel_expr_python.ext import ext_math
from msgspec import Struct, structs

from stream_app.core.rules.comparisons import Test, comparisons
from stream_app.core.rules.expression_trials import Failure, Values, hopeless
from stream_app.core.rules.variables import CATALOGUE, Catalogue, Kind, Reading
from stream_app.errors import RapportError

_TYPES: Final = {
    Kind.NUMBER: cel.Type.DOUBLE,
    Kind.COUNT: cel.Type.INT,
    Kind.FLAG: cel.Type.BOOL,
    Kind.WORD: cel.Type.STRING,
}
_PLACE = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_CONTAINER = " (in container '')"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\s*\.\s*[A-Za-z_][A-Za-z0-9_]*)*")
_LOOP = re.compile(r"\.\s*(all|exists|exists_one|existsOne|map|filter)\s*\(")
_ASKING: Final = ("all", "exists", "exists_one", "existsOne")
MAX_EXPRESSION: Final = 2000
"""Characters."""
_STRINGS = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|//[^\n]*")
_READING = re.compile(r"(?<!\w)(matches|timestamp|duration)\s*\(")
_LITERAL = re.compile(r"\s*([rR]?(?:\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'))\s*\)")
_BY_ZERO = re.compile(r"[/%]\s*0+(?![\w.])")
_ABSENT: Final = "UNKNOWN: No value with name "
"""How the library begins the error of an absent variable; all others are failures."""
_STATUS = re.compile(r"^[A-Z_]+: ")


class BadExpression(RapportError):
    """An invalid expression; ``line`` and ``column`` count from 1 within it."""

    def __init__(self, line: int, column: int, what: str) -> None:
        super().__init__(what)
        self.line = line
        self.column = column
        self.what = what


class Compiled(Struct, frozen=True):
    """A compiled expression and its variables.

    ``test``: a condition of comparisons alone (``core.comparisons``).
    """

    source: str
    names: tuple[str, ...]
    program: cel.Expression
    test: Test | None = None


@cache
def _environment(declared: tuple[tuple[str, Kind], ...]) -> cel.Env:
    types = {name: _TYPES[kind] for name, kind in declared}
    return cel.NewEnv(variables=types, extensions=[ext_math.ExtMath()])


def condition(source: str, catalogue: Catalogue = CATALOGUE) -> Compiled:
    """Compile what is true or false.

    Raises:
        BadExpression: an unknown variable, a wrong type or a syntax error.
    """
    compiled = _compile(source, catalogue)
    if compiled.program.return_type() != cel.Type.BOOL:
        raise BadExpression(
            1, 1, f"a condition must be true or false; this gives {_type(compiled)}"
        )
    return structs.replace(compiled, test=comparisons(source, catalogue))


def number(source: str, catalogue: Catalogue = CATALOGUE) -> Compiled:
    """Compile what gives a number.

    Raises:
        BadExpression: as for ``condition``.
    """
    compiled = _compile(source, catalogue)
    if compiled.program.return_type() not in (cel.Type.DOUBLE, cel.Type.INT):
        raise BadExpression(1, 1, f"a number is required; this gives {_type(compiled)}")
    return compiled


def holds(compiled: Compiled, reading: Reading) -> bool | None:
    """Whether the condition holds; None if an absent variable decides it, or if it fails."""
    if compiled.test is not None:
        return compiled.test(reading.present(compiled.names))
    found = _evaluated(compiled, reading)
    return found if isinstance(found, bool) else None


def evaluate(compiled: Compiled, reading: Reading) -> float | None:
    """The number; None if a variable is absent, and if it fails or is not finite."""
    found = _evaluated(compiled, reading)
    return float(found) if isinstance(found, float | int) and math.isfinite(found) else None


def _evaluated(compiled: Compiled, reading: Reading) -> object:
    """Return the expression's value; None, which is no value of CEL's, if it fails."""
    found = _run(compiled.program, reading.present(compiled.names))
    if isinstance(found, Failure):
        reading.failures[compiled.source] += 1
        return None
    return found


def _run(program: cel.Expression, values: Values) -> object:
    """The expression's value; None if an absent variable decides it.

    The library raises some errors and returns the others as values.
    """
    try:
        found = program.eval(data=values)
        value = found.value()
    except MemoryError:
        raise
    except Exception as problem:  # noqa: BLE001  # the library has no error class of its own
        return Failure(_reason(str(problem)))
    if found.type() != cel.Type.ERROR:
        return value
    return None if str(value).startswith(_ABSENT) else Failure(_reason(str(value)))


def _reason(message: str) -> str:
    """The library's message without the name of its status."""
    return _STATUS.sub("", message.partition("\n")[0])


def _compile(source: str, catalogue: Catalogue) -> Compiled:
    _check_cost(source)
    compiled = Compiled(source, _names(source, catalogue), _program(source, catalogue))
    _check_literals(source)
    kinds = {name: catalogue[name].kind for name in compiled.names}
    found = hopeless(lambda values: _run(compiled.program, values), source, kinds)
    if found is not None:
        values = ", ".join(f"{name} = {value!r}" for name, value in found.values.items())
        raise BadExpression(
            1, 1, f"it cannot be evaluated: {found.reason}" + (f" (with {values})" * bool(values))
        )
    return compiled


def _program(source: str, catalogue: Catalogue) -> cel.Expression:
    declared = tuple((variable.name, variable.kind) for variable in catalogue.values())
    try:
        return _environment(declared).compile(source)
    except RuntimeError as problem:
        raise _worded(str(problem), catalogue) from None


def _check_literals(source: str) -> None:
    """Refuse literals that fail wherever they are reached, even if the trials do not reach them."""
    bare = _bare(source)
    if by_zero := _BY_ZERO.search(bare):
        _refuse(source, by_zero.start(), "it cannot be evaluated: divide by zero")
    for call in _READING.finditer(bare):
        literal = _LITERAL.match(source, call.end())
        if literal is None:
            continue
        subject, name = ("''.", "matches") if call[1] == "matches" else ("", call[1])
        found = _run(_program(f"{subject}{name}({literal[1]})", {}), {})
        if isinstance(found, Failure):
            _refuse(source, call.start(), f"it cannot be evaluated: {found.reason}")


def _bare(source: str) -> str:
    """The expression with blanks for its texts and comments."""
    return _STRINGS.sub(lambda match: " " * len(match[0]), source)


def _check_cost(source: str) -> None:
    """Refuse what may take long, or much memory, whatever the variables are."""
    if len(source) > MAX_EXPRESSION:
        raise BadExpression(
            1, 1, f"{len(source)} characters are too many; {MAX_EXPRESSION} are allowed"
        )
    bare = _bare(source)
    inside = 0
    for loop in _LOOP.finditer(bare):
        if loop[1] not in _ASKING:
            _refuse(bare, loop.start(), f"`{loop[1]}` makes lists; use all, exists or exists_one")
        if loop.start() < inside:
            _refuse(bare, loop.start(), f"`{loop[1]}` inside of another look through a list")
        inside = max(inside, _end_of_call(bare, loop.end()))


def _end_of_call(source: str, start: int) -> int:
    """Where the parenthesis is closed that was opened just before ``start``."""
    depth = 1
    for place in range(start, len(source)):
        depth += (source[place] == "(") - (source[place] == ")")
        if depth == 0:
            return place
    return len(source)


def _refuse(source: str, place: int, what: str) -> NoReturn:
    line_start = source.rfind("\n", 0, place) + 1
    raise BadExpression(source.count("\n", 0, place) + 1, place - line_start + 1, what)


def _names(source: str, catalogue: Catalogue) -> tuple[str, ...]:
    """The variables that stand in an expression, in their order."""
    bare = _STRINGS.sub(" ", source)
    found = (_variable("".join(match.split()), catalogue) for match in _NAME.findall(bare))
    return tuple(dict.fromkeys(name for name in found if name))


def _variable(path: str, catalogue: Catalogue) -> str:
    """The longest beginning that is a variable: `channel.startsWith` is `channel`."""
    while path and path not in catalogue:
        path = path.rpartition(".")[0]
    return path


def _type(compiled: Compiled) -> str:
    return f"{compiled.program.return_type().name().lower()}"


def _worded(message: str, catalogue: Catalogue) -> BadExpression:
    """CEL's first error in our words, with its place."""
    place = _PLACE.search(message)
    if place is None:
        return BadExpression(1, 1, message.splitlines()[0])
    what = place[3].removesuffix(_CONTAINER)
    undeclared = re.match(r"undeclared reference to '([\w.]+)'", what)
    if undeclared is not None:
        near = _nearest(undeclared[1], catalogue)
        what = f"there is no variable or function `{undeclared[1]}`{near}"
    if "(double, int)" in what or "(int, double)" in what:
        what += "; a number is written 3.0, a count 3"
    return BadExpression(int(place[1]), int(place[2]), what)


def _nearest(name: str, catalogue: Catalogue) -> str:
    import difflib  # noqa: PLC0415  # for messages only

    near = difflib.get_close_matches(name, catalogue, 1)
    return f"; is `{catalogue[near[0]].now or near[0]}` meant?" if near else ""
