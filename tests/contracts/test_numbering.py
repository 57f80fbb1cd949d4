"""Recognising turns without a number, and inserting one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from stream_app.contracts.events import Turn, decode
from stream_app.contracts.numbering import MAX_SEQ, lacks_seq, with_seq
from stream_app.errors import ContractError
from tests.store.batches import end, turn


def unnumbered(**changes: object) -> bytes:
    event = json.loads(turn(**changes))
    del event["seq"]
    return json.dumps(event).encode()


@given(st.integers(0, MAX_SEQ), st.text())
def test_a_numbered_turn_is_the_same_turn_with_its_number(seq: int, text: str) -> None:
    text = text.replace("\0", "x").strip() or "x"
    raw = unnumbered(text=text)
    assert lacks_seq(raw)
    found = decode(with_seq(b"\r\n\t " + raw, seq))
    assert isinstance(found, Turn)
    assert found == structs.replace(decode(turn(text=text)), seq=seq)


@pytest.mark.parametrize(
    "raw",
    [
        turn(),
        b'{"type": "turn", "seq": null}',
        end(),
        b"",
        b"{",
        b"null",
        b'"turn"',
        b"\xff",
        b'{"type": ["turn"]}',
        b"[" * 100_000,
        b'{"type": ' + b"[" * 100_000,
    ],
)
def test_everything_else_is_decoded_as_it_is(raw: bytes) -> None:
    assert not lacks_seq(raw)


def test_a_type_in_escapes_is_a_turn_too() -> None:
    raw = unnumbered().replace(b'"turn"', rb'"\u0074urn"')
    assert lacks_seq(raw)
    assert isinstance(decode(with_seq(raw, 0)), Turn)


def test_a_number_of_null_is_refused() -> None:
    with pytest.raises(ContractError, match="seq"):
        decode(turn().replace(b'"seq": 0', b'"seq": null'))
