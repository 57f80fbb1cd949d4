"""The stored layout of a session's state: fields by position, names of evidence once, compressed.

A state is stored whole, or as its changes against an earlier one of the session, its base, which
has to be stored whole: most of a state is the same after the next turn.

A layout begins with its number, which begins no MessagePack map: states and window turns of earlier
releases are maps with the names of their fields. New fields of structs in a state go to the end and
have a default, so that stored states still load.
"""

import struct
import sys
import zlib
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, inspect, structs
from msgspec.inspect import DictType, ListType, StructType, TupleType, Type, UnionType, VarTupleType

from stream_app.core.measures.aggregates import (
    Aggregates,
    Contribution,
    Totals,
    expected_levels,
    shared_levels,
)
from stream_app.core.measures.turn_evidence import Evidence, parts, shared_names

T = TypeVar("T")

COMPRESSED: Final = b"\x02"
"""Whole: raw DEFLATE with the dictionary ``_FREQUENT``."""
CHANGES: Final = b"\x03"
"""Changes: CRC-32 of the base, then raw DEFLATE with the base as dictionary."""
CHECKSUM_BYTES: Final = 4
TURN: Final = b"\x04"
"""A window turn whose vectors are packed (``pack_vectors``)."""
_FREQUENT: Final = (
    b"\x93\xaaengagement\xadunderstanding\xa8sympathy\xabhelpfulness"
    b"\xbcexpected.emotional_reactions\xb8expected.interpretations\xb5expected.explorations"
    b"\xb1strategy.question\xd9$strategy.restatement_or_paraphrasing"
    b"\xd9\x1fstrategy.reflection_of_feelings\xb8strategy.self_disclosure"
    b"\xd9$strategy.affirmation_and_reassurance\xbestrategy.providing_suggestions"
    b"\xb4strategy.information\xafstrategy.others\xadquestion.open\xafquestion.closed"
    b"\xb1reflection.simple\xb2reflection.complex\xacinput.advice\xb1input.information"
    b"\xb4input.advice_unasked\xacsatisfaction\xb0talk_type.change\xb1talk_type.neutral"
    b"\xb1talk_type.sustain\xa4none\xa4open\xa6closed\xa6simple\xa7complex"
    b"\xabcounselling\xacpeer-support\xb0customer-service\xa6client\xaacounsellor"
    b"\xablow-empathy\xa8resolved\xa7pending\xa8inactive\xa6firing\xa7warning\xa8critical"
    b"\xabchat_failed\xa2en\xc0\xc0\xc0\xc0\xc0\x00\x90\xc2\xc2\xc3\xc7\x0c\xff"
)
"""Strings that most states contain. Part of the layout: never change it, add another layout."""

_OF_TOTALS: Final = ("settled", "client_settled")
_OF_TURNS: Final = ("latest", "client_latest")
_HUNDRED: Final = 100
"""Probabilities have four digits, so that most numbers in millionths are multiples of it."""
_OTHER: Final = 0xFFFF
_LARGEST: Final = _HUNDRED * _OTHER
_SHARE: Final = struct.Struct(">H")
_Names = tuple[str, ...]
_Three = tuple[int, int, int]


class _Evidence(Struct, frozen=True, array_like=True):
    """The numbers of a turn or of sums; ``names``: which list of names their evidence has.

    The numbers: the evidence, ``shown``, and ``expected`` unless it equals that in the evidence.
    ``shares``: two bytes each, in hundreds, or ``_OTHER`` for the next of ``others``.
    """

    names: int
    shares: bytes
    others: list[int] = []


class Packed(Struct, frozen=True, array_like=True):
    """The evidence of the aggregates, stored separately, with each list of names once.

    ``totals`` and ``turns``: in the order of the aggregates' fields.
    """

    names: list[list[str]]
    totals: list[_Evidence]
    turns: list[list[_Evidence]]


def take_evidence(aggregates: Aggregates) -> tuple[Aggregates, Packed]:
    """Aggregates without evidence, and the evidence."""
    known: dict[tuple[str, ...], int] = {}

    def packed(item: Totals | Contribution) -> _Evidence:
        own, numbers = parts(item.evidence)
        values = [*numbers, *item.shown]
        if tuple(item.expected) != expected_levels(own, numbers):
            values += item.expected
        names = known.setdefault(own, len(known))
        shares = [
            value // _HUNDRED if not value % _HUNDRED and 0 <= value < _LARGEST else _OTHER
            for value in values
        ]
        others = [v for v, share in zip(values, shares, strict=True) if share == _OTHER]
        return _Evidence(names, struct.pack(f">{len(shares)}H", *shares), others)

    totals: list[Totals] = [getattr(aggregates, name) for name in _OF_TOTALS]
    turns: list[list[Contribution]] = [getattr(aggregates, name) for name in _OF_TURNS]
    of_totals = [packed(item) for item in totals]
    of_turns = [[packed(item) for item in items] for items in turns]
    bare = {
        name: structs.replace(item, evidence={}, shown=[], expected=[])
        for name, item in zip(_OF_TOTALS, totals, strict=True)
    }
    nothing = (0, 0, 0)
    without = {
        name: [structs.replace(i, evidence={}, shown=nothing, expected=nothing) for i in items]
        for name, items in zip(_OF_TURNS, turns, strict=True)
    }
    names = [list(item) for item in known]
    return structs.replace(aggregates, **bare, **without), Packed(names, of_totals, of_turns)


def give_evidence(aggregates: Aggregates, packed: Packed) -> None:
    """Put the evidence back.

    Raises:
        msgspec.ValidationError: it does not match the aggregates.
    """
    named = [shared_names(tuple(names)) for names in packed.names]

    def unpacked(item: _Evidence) -> tuple[_Names, list[int], _Three, _Three]:
        names, numbers = named[item.names], _numbers(item.shares, item.others)
        first, second, third, *rest = numbers[len(names) :]
        expected = (rest[0], rest[1], rest[2]) if rest else expected_levels(names, numbers)
        return names, numbers[: len(names)], (first, second, third), expected

    try:
        for name, item in zip(_OF_TOTALS, packed.totals, strict=True):
            totals = getattr(aggregates, name)
            names, numbers, shown, expected = unpacked(item)
            totals.evidence = dict(zip(names, numbers, strict=True))
            totals.shown, totals.expected = list(shown), list(expected)
        for name, items in zip(_OF_TURNS, packed.turns, strict=True):
            turns = getattr(aggregates, name)
            for place, (turn, item) in enumerate(zip(turns, items, strict=True)):
                names, numbers, shown, expected = unpacked(item)
                turns[place] = structs.replace(
                    turn,
                    evidence=Evidence(names, numbers),
                    shown=shown,
                    expected=expected,
                    levels=shared_levels(turn.levels),
                    question=_interned(turn.question),
                    reflection=_interned(turn.reflection),
                )
    except (IndexError, StopIteration, ValueError, struct.error):
        raise msgspec.ValidationError("a state's evidence does not match its names") from None


def _interned(label: str | None) -> str | None:
    return sys.intern(label) if label is not None else None


def _numbers(shares: bytes, others: list[int]) -> list[int]:
    """The numbers of evidence in millionths."""
    left = iter(others)
    return [
        next(left) if share == _OTHER else share * _HUNDRED
        for (share,) in _SHARE.iter_unpack(shares)
    ]


def compress(plain: bytes) -> bytes:
    """Compress a whole value; the first byte is the layout's number."""
    deflate = zlib.compressobj(1, wbits=-15, zdict=_FREQUENT)
    return COMPRESSED + deflate.compress(plain) + deflate.flush()


def decompress(packed: bytes) -> bytes:
    """Return the plain value of ``compress``.

    Raises:
        msgspec.DecodeError: the bytes are damaged.
    """
    if not packed.startswith(COMPRESSED):
        raise msgspec.DecodeError("a stored state has a layout that this release does not know")
    return _inflate(packed[1:], _FREQUENT)


def changes(plain: bytes, base: bytes) -> bytes:
    """Compress a value as its changes against ``base``, another plain value."""
    deflate = zlib.compressobj(6, wbits=-15, zdict=base)
    return CHANGES + _checksum(base) + deflate.compress(plain) + deflate.flush()


def apply_changes(packed: bytes, base: bytes) -> bytes:
    """Return the plain value of ``changes``.

    Raises:
        msgspec.DecodeError: the bytes are damaged, or are changes against another base.
    """
    start = len(CHANGES) + CHECKSUM_BYTES
    if packed[len(CHANGES) : start] != _checksum(base):
        raise msgspec.DecodeError("the base of a state is missing or another one")
    return _inflate(packed[start:], base)


def has_base(packed: bytes) -> bool:
    """Whether these are changes against a base."""
    return packed.startswith(CHANGES)


def pack_vectors(vectors: bytes) -> bytes:
    """Compress little-endian half floats without loss.

    Their high bytes have few values (sign, exponent, two bits); the low bytes are noise and follow
    as they are.
    """
    deflate = zlib.compressobj(1, wbits=-15, strategy=zlib.Z_HUFFMAN_ONLY)
    return deflate.compress(vectors[1::2]) + deflate.flush() + vectors[::2]


def unpack_vectors(packed: bytes) -> bytes:
    """Return the half floats of ``pack_vectors``.

    Raises:
        msgspec.DecodeError: the bytes are damaged.
    """
    inflate = zlib.decompressobj(wbits=-15)
    try:
        high = inflate.decompress(packed)
    except zlib.error:
        high = b""
    low = inflate.unused_data
    if not inflate.eof or len(low) - len(high) not in (0, 1):
        raise msgspec.DecodeError("the vectors of a stored turn are damaged")
    vectors = bytearray(len(high) + len(low))
    vectors[1::2], vectors[::2] = high, low
    return bytes(vectors)


def _checksum(base: bytes) -> bytes:
    return zlib.crc32(base).to_bytes(CHECKSUM_BYTES)


def _inflate(compressed: bytes, dictionary: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=-15, zdict=dictionary).decompress(compressed)
    except zlib.error:
        raise msgspec.DecodeError("a compressed state is damaged") from None


def is_map(raw: bytes) -> bool:
    """Whether this is a MessagePack map, in which earlier releases stored structs."""
    return raw[:1] >= b"\x80" and (raw[:1] <= b"\x8f" or raw[:1] in (b"\xde", b"\xdf"))


def from_map(raw: bytes, kind: type[T]) -> T:
    """Decode a struct that an earlier release stored with the names of its fields.

    Raises:
        msgspec.ValidationError: the bytes do not match the struct.
    """
    by_position = _by_position(msgspec.msgpack.decode(raw), inspect.type_info(kind))
    return msgspec.msgpack.decode(msgspec.msgpack.encode(by_position), type=kind)


def _by_position(value: Any, kind: Type) -> Any:
    match kind, value:
        case StructType(array_like=True), dict():
            return _fields_by_position(value, kind)
        case UnionType(), _:
            fitting = [item for item in kind.types if isinstance(item, _type_of(value))]
            return _by_position(value, fitting[0]) if fitting else value
        case ((ListType() | VarTupleType()), list()):
            return [_by_position(item, kind.item_type) for item in value]
        case TupleType(), list():
            return [_by_position(*pair) for pair in zip(value, kind.item_types, strict=False)]
        case DictType(), dict():
            return {key: _by_position(item, kind.value_type) for key, item in value.items()}
        case _:
            return value


def _type_of(value: Any) -> tuple[type[Type], ...]:
    if isinstance(value, dict):
        return StructType, DictType
    return (ListType, TupleType, VarTupleType) if isinstance(value, list) else ()


def _fields_by_position(value: dict[str, Any], kind: StructType) -> list[Any]:
    found = []
    for field in kind.fields:
        if field.encode_name in value:
            found.append(_by_position(value[field.encode_name], field.type))
        elif field.required:
            raise msgspec.ValidationError(f"a stored state lacks `{field.encode_name}`")
        elif field.default_factory is not msgspec.NODEFAULT:
            found.append(msgspec.to_builtins(field.default_factory()))
        else:
            found.append(msgspec.to_builtins(field.default, builtin_types=(bytes,)))
    return found
