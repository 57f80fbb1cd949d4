"""Session states and window turns in the layouts of before: they are read once, then replaced.

Release 0.1.0 stored MessagePack maps with the names of fields. The development branch after it
stored fields by position: states compressed with a dictionary, whole or as changes against an
earlier state of the session, their evidence apart with each list of names once; turns with the high
bytes of their vectors compressed. The first byte says which.
"""

import struct
import zlib
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, inspect, structs
from msgspec.inspect import DictType, ListType, StructType, TupleType, Type, UnionType, VarTupleType

from stream_app.core.measures.aggregates import Aggregates, expected_levels
from stream_app.core.measures.turn_evidence import Evidence
from stream_app.core.measures.window import WindowTurn

T = TypeVar("T")

_WHOLE: Final = b"\x02"
"""Raw DEFLATE with the dictionary ``_FREQUENT``."""
_CHANGES: Final = b"\x03"
"""CRC-32 of the base, then raw DEFLATE with the base as dictionary."""
_CHECKSUM_BYTES: Final = 4
_TURN: Final = b"\x04"
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

_HUNDRED: Final = 100
_OTHER: Final = 0xFFFF
_SHARE: Final = struct.Struct(">H")


class _Evidence(Struct, frozen=True, array_like=True):
    """The numbers of a turn or of sums; ``names``: which list of names their evidence has.

    The numbers: the evidence, ``shown``, and ``expected`` unless it equals that in the evidence.
    ``shares``: two bytes each, in hundreds, or ``_OTHER`` for the next of ``others``.
    """

    names: int
    shares: bytes
    others: list[int] = []

    def numbers(self) -> list[int]:
        """The numbers in millionths."""
        left = iter(self.others)
        return [
            next(left) if share == _OTHER else share * _HUNDRED
            for (share,) in _SHARE.iter_unpack(self.shares)
        ]


class Apart(Struct, frozen=True, array_like=True):
    """The evidence of the aggregates; ``totals``, ``turns``: of either side, counsellor first."""

    names: list[list[str]]
    totals: list[_Evidence]
    turns: list[list[_Evidence]]

    def give_to(self, aggregates: Aggregates) -> None:
        """Put the evidence back.

        Raises:
            msgspec.ValidationError: it does not match the aggregates.
        """
        totals = aggregates.settled, aggregates.client_settled
        turns = aggregates.latest, aggregates.client_latest
        try:
            for one, item in zip(totals, self.totals, strict=True):
                evidence, one.shown, one.expected = self._unpacked(item)
                one.evidence = dict(evidence)
            for some, items in zip(turns, self.turns, strict=True):
                for place, (turn, item) in enumerate(zip(some, items, strict=True)):
                    evidence, (a, b, c), (d, e, f) = self._unpacked(item)
                    some[place] = structs.replace(
                        turn, evidence=evidence, shown=(a, b, c), expected=(d, e, f)
                    )
        except (IndexError, StopIteration, ValueError, struct.error):
            raise msgspec.ValidationError("a state's evidence does not match its names") from None

    def _unpacked(self, item: _Evidence) -> tuple[Evidence, list[int], list[int]]:
        names, numbers = tuple(self.names[item.names]), item.numbers()
        evidence, shown = numbers[: len(names)], numbers[len(names) : len(names) + 3]
        expected = numbers[len(names) + 3 :] or list(expected_levels(names, evidence))
        return Evidence(names, evidence), shown, expected


def state(raw: bytes, base: bytes, kind: type[T]) -> tuple[T, Apart]:
    """Decode a state of the development branch; ``base``: what its changes are against, as stored.

    Raises:
        msgspec.DecodeError: the bytes are damaged, or are changes against another base.
    """
    if raw.startswith(_WHOLE):
        plain = _inflate(raw[1:], _FREQUENT)
    elif raw.startswith(_CHANGES):
        start = len(_CHANGES) + _CHECKSUM_BYTES
        against = _inflate(base[1:], _FREQUENT) if base.startswith(_WHOLE) else b""
        if raw[len(_CHANGES) : start] != zlib.crc32(against).to_bytes(_CHECKSUM_BYTES):
            raise msgspec.DecodeError("the base of a state is missing or another one")
        plain = _inflate(raw[start:], against)
    else:
        raise msgspec.DecodeError("a stored state has a layout that this release does not know")
    return msgspec.msgpack.decode(plain, type=tuple[kind, Apart])  # type: ignore[valid-type]


def turn(raw: bytes) -> WindowTurn:
    """Decode a window turn.

    Raises:
        msgspec.DecodeError: the bytes are damaged.
    """
    if is_map(raw):
        return from_map(raw, WindowTurn)
    if not raw.startswith(_TURN):
        raise msgspec.DecodeError("a stored turn has a layout that this release does not know")
    found = msgspec.msgpack.decode(memoryview(raw)[len(_TURN) :], type=WindowTurn)
    found.vectors = _vectors(found.vectors)
    return found


def _vectors(packed: bytes) -> bytes:
    """Half floats, whose high bytes are compressed and followed by the low ones."""
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
