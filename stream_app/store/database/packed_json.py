"""Packs the JSON of a turn's scores for PostgreSQL: names in one byte, probabilities in two.

A value is a tag and its content; counts and lengths of names are one byte, numbers big-endian ::

    00 null   01 true   02 false
    03 text            length (2), UTF-8
    04 number          IEEE 754 double (8); also whole numbers that do not fit tag 07
    05 object          count, then for each: name, value
    06 list            count, then values
    07 whole number    (2)
    08 object          count, then for each: name, double (8)
    09 level           level (1), count, double (8) each, count, (start, end) (2 + 2) each
    0A text            its place in ``NAMES``
    0B object          count, then for each: name, ten-thousandths (2)
    0C level           level (1), count, ten-thousandths (2) each, count, (start, end) (2 + 2) each
    name               its place in ``NAMES``, or FF, length and UTF-8

``migrations/versions/0039_short_probabilities.py`` has the same in SQL: ``rapport_json(packed)``
and ``rapport_pack(json)``. SQLite stores JSON. Numbers are exact, because the probabilities of a
score are whole ten-thousandths and others are written as doubles (08, 09): rules are tried on
stored scores and give what they gave live.
"""

import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import JSON, Dialect, LargeBinary, TypeDecorator
from sqlalchemy.types import TypeEngine

from stream_app.contracts.score_layout import SCALE
from stream_app.contracts.scores import Level
from stream_app.errors import StoreError

_FREQUENT: Final = """
level probabilities rationale empathy_total no yes none weak strong emotional_reactions
interpretations explorations strategy behaviour question reflection input empathic_intent
talk_type satisfaction distress crisis_language engagement understanding sympathy helpfulness
restatement_or_paraphrasing reflection_of_feelings self_disclosure
affirmation_and_reassurance providing_suggestions information others therapist_input other
closed open simple complex advice options negotiation change neutral sustain acknowledging
agreeing consoling encouraging questioning suggesting sympathizing wishing
"""
NAMES: Final = _FREQUENT.split()
"""Stored by place, here and in the migration: only ever append, with a migration."""

_PLACES: Final = {name: bytes([place]) for place, name in enumerate(NAMES)}
_INLINE: Final = 0xFF
_MOST: Final = 0xFFFF
_LEVEL_NAMES: Final = {"level", "probabilities", "rationale"}
_Reader = Callable[[bytes, int], tuple[Any, int]]
_TWO: Final = struct.Struct(">H")
_DOUBLE: Final = struct.Struct(">d")
_NAMED_SHARE: Final = struct.Struct(">BH")
_NAMED_NUMBER: Final = struct.Struct(">Bd")

(
    _NULL,
    _TRUE,
    _FALSE,
    _TEXT,
    _NUMBER,
    _OBJECT,
    _LIST,
    _WHOLE,
    _NUMBERS,
    _LEVEL,
    _NAME,
    _SHARES,
    _LEVEL_SHARES,
) = range(13)


class PackedJson(TypeDecorator[Any]):
    """JSON that is packed on PostgreSQL, and text on SQLite."""

    impl = JSON
    cache_ok = True

    @property
    def python_type(self) -> type:
        """The type of a JSON value."""
        return dict

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Bytes on PostgreSQL."""
        return dialect.type_descriptor(LargeBinary() if packs(dialect.name) else JSON())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Convert to what the database's driver gets."""
        return pack(value) if packs(dialect.name) else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return the JSON value."""
        return unpack(value) if value is not None and packs(dialect.name) else value


def packs(dialect: str) -> bool:
    """Whether the columns are packed in this kind of database."""
    return dialect == "postgresql"


def pack(value: Any) -> bytes:
    """Pack a JSON value, in which heads of levels may be structs.

    Raises:
        StoreError: it has too many parts.

    >>> unpack(pack({"strategy": {"question": 0.123456}, "warmth": [1, None, "x"]}))
    {'strategy': {'question': 0.123456}, 'warmth': [1, None, 'x']}
    """
    out = bytearray()
    try:
        _write(out, value)
    except (ValueError, struct.error):
        raise StoreError("the scores of a turn are too large to be stored") from None
    return bytes(out)


def _write(out: bytearray, value: Any) -> None:
    match value:
        case dict():
            _write_object(out, value)
        case Level():
            _write_level(out, value.level, value.probabilities, value.rationale)
        case bool():
            out.append(_TRUE if value else _FALSE)
        case int() if 0 <= value <= _MOST:
            out.append(_WHOLE)
            out += _TWO.pack(value)
        case int() | float():
            out.append(_NUMBER)
            out += _DOUBLE.pack(value)
        case None:
            out.append(_NULL)
        case str():
            _write_text(out, value)
        case list() | tuple():
            out.append(_LIST)
            out.append(len(value))
            for item in value:
                _write(out, item)
        case _:
            raise TypeError(type(value).__name__)


def _write_text(out: bytearray, value: str) -> None:
    place = _PLACES.get(value)
    if place is not None:
        out.append(_NAME)
        out += place
        return
    raw = value.encode()
    out.append(_TEXT)
    out += _TWO.pack(len(raw)) + raw


def _write_object(out: bytearray, value: Mapping[str, Any]) -> None:
    names = tuple(value)
    if _write_numbers(out, names, value):
        return
    if value.keys() == _LEVEL_NAMES and _is_level(value):
        _write_level(out, value["level"], value["probabilities"], value["rationale"])
        return
    out.append(_OBJECT)
    out.append(len(value))
    for name, item in value.items():
        out += _PLACES.get(name) or _inline(name)
        _write(out, item)


def _write_numbers(out: bytearray, names: tuple[str, ...], value: Mapping[str, Any]) -> bool:
    """Write an object of numbers whose names are frequent; return False for another one."""
    if not names or type(value[names[0]]) is not float:
        return False
    layouts = _numbers_layouts(names)
    if layouts is None:
        return False
    shares = _shares(value.values())
    layout, template = layouts[0 if shares is not None else 1]
    parts = template.copy()
    parts[3::2] = value.values() if shares is None else shares
    try:
        out += layout.pack(*parts)
    except struct.error:  # it has something else than numbers
        return False
    return True


def _shares(values: Collection[Any]) -> list[int] | None:
    """Probabilities in ten-thousandths; None if one is not a whole number of them."""
    try:
        units = [int(value * SCALE + 0.5) for value in values]
    except (TypeError, ValueError, OverflowError):
        return None
    exact = all(unit / SCALE == value for unit, value in zip(units, values, strict=True))
    return units if exact and max(units, default=0) <= _MOST else None


@lru_cache(4096)
def _numbers_layouts(
    names: tuple[str, ...],
) -> tuple[tuple[struct.Struct, list[Any]], tuple[struct.Struct, list[Any]]] | None:
    """Layouts of an object with these names, of shares and of doubles; bytes without numbers."""
    if len(names) > _INLINE or not all(map(_PLACES.__contains__, names)):
        return None
    parts: list[Any] = []
    for name in names:
        parts += (_PLACES[name][0], 0)
    return (
        (struct.Struct(">BB" + "BH" * len(names)), [_SHARES, len(names), *parts]),
        (struct.Struct(">BB" + "Bd" * len(names)), [_NUMBERS, len(names), *parts]),
    )


def _is_level(value: Mapping[str, Any]) -> bool:
    probabilities, rationale = value["probabilities"], value["rationale"]
    return (
        type(value["level"]) is int
        and all(type(p) is float for p in probabilities)
        and all(len(span) == 2 and 0 <= min(span) <= max(span) <= _MOST for span in rationale)
    )


def _write_level(out: bytearray, level: int, probabilities: Any, rationale: Any) -> None:
    count = len(probabilities)
    shares = _shares(probabilities)
    if shares is not None:
        out += struct.pack(f">BBB{count}HB", _LEVEL_SHARES, level, count, *shares, len(rationale))
    else:
        out += struct.pack(f">BBB{count}dB", _LEVEL, level, count, *probabilities, len(rationale))
    for start, end in rationale:
        out += _TWO.pack(start) + _TWO.pack(end)


def _inline(name: str) -> bytes:
    raw = name.encode()
    return bytes((_INLINE, len(raw))) + raw


def unpack(packed: bytes) -> Any:
    """Unpack a value.

    Raises:
        StoreError: the bytes are damaged.
    """
    try:
        value, end = _read(packed, 0)
    except (IndexError, struct.error, UnicodeDecodeError):
        raise StoreError("the stored scores of a turn are damaged") from None
    if end != len(packed):
        raise StoreError("the stored scores of a turn are damaged")
    return value


def _read(raw: bytes, at: int) -> tuple[Any, int]:
    return _READERS[raw[at]](raw, at + 1)


def _read_text(raw: bytes, at: int) -> tuple[str, int]:
    end = at + 2 + _TWO.unpack_from(raw, at)[0]
    if end > len(raw):
        raise IndexError
    return raw[at + 2 : end].decode(), end


def _read_number(raw: bytes, at: int) -> tuple[float, int]:
    return _DOUBLE.unpack_from(raw, at)[0], at + 8


def _read_list(raw: bytes, at: int) -> tuple[list[Any], int]:
    count, at, items = raw[at], at + 1, []
    for _ in range(count):
        item, at = _read(raw, at)
        items.append(item)
    return items, at


def _read_object(raw: bytes, at: int) -> tuple[dict[str, Any], int]:
    count, at = raw[at], at + 1
    found: dict[str, Any] = {}
    for _ in range(count):
        name, at = _read_name(raw, at)
        found[name], at = _read(raw, at)
    return found, at


def _read_shares(raw: bytes, at: int) -> tuple[dict[str, float], int]:
    named, end = _read_named(raw, at, _NAMED_SHARE)
    return {name: units / SCALE for name, units in named}, end


def _read_numbers(raw: bytes, at: int) -> tuple[dict[str, float], int]:
    named, end = _read_named(raw, at, _NAMED_NUMBER)
    return dict(named), end


def _read_named(raw: bytes, at: int, layout: struct.Struct) -> tuple[list[tuple[str, Any]], int]:
    """Names with numbers; most objects have only frequent names, which are read at once."""
    count, at = raw[at], at + 1
    end = at + count * layout.size
    if _INLINE not in raw[at : end : layout.size] and end <= len(raw):
        return [(NAMES[place], value) for place, value in layout.iter_unpack(raw[at:end])], end
    number = struct.Struct(layout.format.replace("B", ""))
    found = []
    for _ in range(count):
        name, at = _read_name(raw, at)
        found.append((name, *number.unpack_from(raw, at)))
        at += number.size
    return found, at


def _read_name(raw: bytes, at: int) -> tuple[str, int]:
    if raw[at] != _INLINE:
        return NAMES[raw[at]], at + 1
    end = at + 2 + raw[at + 1]
    return raw[at + 2 : end].decode(), end


def _read_level(raw: bytes, at: int) -> tuple[dict[str, Any], int]:
    level, count = raw[at], raw[at + 1]
    return _level(raw, level, struct.unpack_from(f">{count}d", raw, at + 2), at + 2 + 8 * count)


def _read_level_shares(raw: bytes, at: int) -> tuple[dict[str, Any], int]:
    level, count = raw[at], raw[at + 1]
    units = struct.unpack_from(f">{count}H", raw, at + 2)
    return _level(raw, level, [unit / SCALE for unit in units], at + 2 + 2 * count)


def _level(
    raw: bytes, level: int, probabilities: Iterable[float], at: int
) -> tuple[dict[str, Any], int]:
    """A level, whose rationale begins at ``at``."""
    spans, at = raw[at], at + 1
    ends = struct.unpack_from(f">{2 * spans}H", raw, at)
    rationale = [list(pair) for pair in zip(ends[::2], ends[1::2], strict=True)]
    found = {"level": level, "probabilities": list(probabilities), "rationale": rationale}
    return found, at + 4 * spans


_READERS: Final[tuple[_Reader, ...]] = (
    lambda _, at: (None, at),
    lambda _, at: (True, at),
    lambda _, at: (False, at),
    _read_text,
    _read_number,
    _read_object,
    _read_list,
    lambda raw, at: (_TWO.unpack_from(raw, at)[0], at + 2),
    _read_numbers,
    _read_level,
    lambda raw, at: (NAMES[raw[at]], at + 1),
    _read_shares,
    _read_level_shares,
)
"""Readers by tag."""
