"""Batch bodies are measured before they are decoded."""

import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_app.contracts import batch_body
from stream_app.contracts.batch_body import NotAnArray, TooManyEvents, split_array, split_lines

MOST = 500
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(JSON, max_size=12), st.booleans())
def test_elements_are_returned_unchanged(values: list[object], ascii_only: bool) -> None:
    body = json.dumps(values, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    try:
        body.decode()
    except UnicodeDecodeError:
        return
    assert [json.loads(value) for value in split_array(body, MOST)] == values
    if len(values) > 1:
        with pytest.raises(TooManyEvents):
            split_array(body, len(values) - 1)


HEAVY = {
    "integers": b"[" + b"1," * 1_900_000 + b"1]",
    "commas": b"[" + b"," * 4_000_000,
    "nested commas": b"[[" + b"1," * 1_900_000 + b"1]]",
    "brackets": b"[" * 4_000_000,
    "quotes": b'"' * 4_000_000,
    "escaped quotes": b'["' + b'\\"' * 2_000_000,
    "open string": b'["' + b"x" * 4_000_000,
    "closed strings": b"[[" + b'"",' * 1_300_000 + b"1]]",
    "spaces": b" " * 4_000_000,
    "backslashes": b"\\" * 4_000_000,
}


@pytest.mark.parametrize("name", HEAVY)
def test_an_invalid_body_is_rejected_cheaply(name: str) -> None:
    began = time.process_time()
    with pytest.raises((TooManyEvents, NotAnArray)):
        split_array(HEAVY[name], MOST)
    assert time.process_time() - began < 0.5


def test_five_hundred_events_are_far_below_the_limit() -> None:
    event = dict.fromkeys("abcdefghijklmnopqrst", "a text, with commas, [brackets] and {braces}")
    assert len(split_array(json.dumps([event] * MOST).encode(), MOST)) == MOST
    assert batch_body.MAX_TOKENS > 10 * 20 * MOST


@pytest.mark.parametrize("body", [b"", b"{}", b"1", b"[", b"[1", b"[1,]", b"[1] 2", b"\xff", b'["'])
def test_a_body_that_is_not_an_array_is_rejected(body: bytes) -> None:
    with pytest.raises(NotAnArray):
        split_array(body, MOST)


def test_blank_lines_do_not_count() -> None:
    assert split_lines(b"\n a \n\n \nb", 2) == [b" a ", b"b"]
    with pytest.raises(TooManyEvents):
        split_lines(b"a\nb\nc", 2)
    began = time.process_time()
    assert split_lines(b"\n" * 4_000_000, MOST) == []
    with pytest.raises(TooManyEvents):
        split_lines(b"1\n" * 2_000_000, MOST)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"])
def test_marks_and_other_encodings_are_read(encoding: str) -> None:
    assert split_array('["é", {}]'.encode(encoding), MOST) == ['"é"'.encode(), b"{}"]
    assert split_lines('{"a": "é"}\r\n{}\r\n'.encode(encoding), MOST) == [
        '{"a": "é"}'.encode(),
        b"{}",
    ]


def test_each_line_may_begin_with_a_mark() -> None:
    assert split_lines(b"\xef\xbb\xbf1\n\xef\xbb\xbf2\r3", MOST) == [b"1", b"2", b"3"]
