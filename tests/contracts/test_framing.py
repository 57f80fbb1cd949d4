"""The wire format: framed values are recognised, everything else is left alone."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.contracts.events import MAX_EVENT_BYTES
from stream_app.contracts.framing import schema_id, unframed
from stream_app.contracts.scores import decode
from stream_app.core.pipeline.pipeline import Source, receive
from stream_app.errors import ContractError
from tests.frames import MAX_SCHEMA_ID, framed
from tests.store.batches import turn

SOURCE = Source("dialogue.turns", 0, 0)
IDS = st.integers(0, MAX_SCHEMA_ID)


@given(IDS, st.binary())
def test_the_payload_and_the_id_come_back(number: int, payload: bytes) -> None:
    value = framed(number, payload)
    assert (schema_id(value), unframed(value)) == (number, payload)
    assert value[:5] == b"\0" + number.to_bytes(4, "big")


@given(st.binary().filter(lambda value: value[:1] != b"\0"))
def test_other_values_stay_as_they_are(value: bytes) -> None:
    assert schema_id(value) is None
    assert unframed(value) is value


@pytest.mark.parametrize("length", range(5))
def test_too_few_bytes_are_no_frame(length: int) -> None:
    assert unframed(b"\0" * length) == b"\0" * length


@given(IDS)
def test_an_event_is_the_same_framed_or_not(number: int) -> None:
    bare, value = turn(0), framed(number, turn(0))
    received = receive(SOURCE, value)
    assert received.event == receive(SOURCE, bare).event
    assert received.raw == value, "a dead letter would have the record's own bytes"


@given(IDS, st.binary(max_size=64))
def test_a_frame_with_anything_in_it_is_an_event_or_an_error(number: int, payload: bytes) -> None:
    problem = receive(SOURCE, framed(number, payload)).event
    assert isinstance(problem, ContractError)
    assert problem.detail.endswith(f"(framed with schema id {number})")


def test_a_frame_in_a_frame_is_no_event() -> None:
    problem = receive(SOURCE, framed(1, framed(2, turn(0)))).event
    assert isinstance(problem, ContractError)
    assert problem.code == "not-json"


def test_the_limit_is_that_of_the_payload() -> None:
    padded = turn(0).ljust(MAX_EVENT_BYTES)
    assert not isinstance(receive(SOURCE, framed(7, padded)).event, ContractError)
    problem = receive(SOURCE, framed(7, padded + b" ")).event
    assert isinstance(problem, ContractError)
    assert problem.code == "too-large"


def test_outgoing_messages_are_decoded_framed_or_not() -> None:
    with pytest.raises(msgspec.ValidationError):  # reaches the decoder of JSON
        decode(framed(1, b"{}"))
    with pytest.raises(msgspec.DecodeError):
        decode(b"\0\0\0\0")
