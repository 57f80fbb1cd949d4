"""Edge cases of JSON, UTF-8 and time: only ContractErrors, which never quote the input."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.contracts import cloudevents
from stream_app.contracts.events import (
    MAX_EVENT_BYTES,
    MAX_ID_CHARS,
    Outcome,
    Turn,
    decode,
    utc,
)
from stream_app.core.pipeline.pipeline import Source, receive
from stream_app.errors import ContractError
from tests.contracts.refusal import refusal
from tests.fakes import end, outcome, turn

MARKER = "qqzanzibarqq"


def with_field(raw_field: bytes, event: bytes | None = None) -> bytes:
    """The event with one more field of raw JSON."""
    return (event or turn())[:-1] + b"," + raw_field + b"}"


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (with_field(b'"x":"\xff"'), "not-utf-8"),
        (with_field(b'"\xff":1'), "not-utf-8"),
        (with_field(b'"\xff":"audio"'), "not-utf-8"),
        (b"\xff\xfe" + turn().decode().encode("utf-16-le"), "not-utf-8"),
        (turn(text="X").replace(b"X", b"\xed\xa0\x80"), "not-utf-8"),
        (turn(text="X").replace(b"X", rb"\udfff"), "lone-surrogate"),
        (turn(text="X").replace(b"X", rb"\uD800\uD800"), "lone-surrogate"),
        (turn(session="X").replace(b'"X"', rb'"\ud800"'), "lone-surrogate"),
        (with_field(rb'"x":"\ud83d"'), "lone-surrogate"),
        (with_field(rb'"\ude00":1'), "lone-surrogate"),
        (turn(text="X").replace(b"X", rb"\ud83d\u0041"), "lone-surrogate"),
        (turn(text="X").replace(b"X", rb"\ud83d") + b"]", "not-json"),
        (turn(text="X").replace(b"X", rb"\ud8"), "not-json"),
        (with_field(b'"x":' + b"[" * 10_000, turn(text="X").replace(b"X", rb"\ud83d")), "not-json"),
        (b"\xef\xbb\xbf" * 2 + turn(), "not-json"),
        (turn(text="X").replace(b"X", b"a\tb"), "not-json"),
        (outcome(value=7).replace(b"7", b"NaN"), "not-json"),
        (outcome(value=7).replace(b"7", b"Infinity"), "not-json"),
        (outcome(value=7).replace(b"7", b"1e400"), "schema"),
        (turn(seq=7).replace(b": 7", b": 1" + b"0" * 5000), "schema"),
        (turn(seq=True), "schema"),
        (turn(seq="1"), "schema"),
        (json.dumps(MARKER).encode(), "schema"),
        (b"true", "schema"),
        (turn(speaker_id="a\x00b"), "nul-byte"),
        (turn(turn_id="a\x00b"), "nul-byte"),
        (turn(lang="\x00"), "nul-byte"),
        (end(reason="a\x00b"), "nul-byte"),
        (turn(role="client\x00"), "schema"),
        (turn(type="turn\x00"), "schema"),
        (turn(lang="x" * 36), "schema"),
        (turn(team=""), "schema"),
        (turn(type=None), "schema"),
        (turn(type=[MARKER]), "schema"),
        (turn(role={MARKER: MARKER}), "schema"),
        (turn(occurred_at=1_767_607_200), "schema"),
        (turn(occurred_at="2026-01-05"), "schema"),
        (turn(occurred_at="2026-13-05T10:00:00Z"), "schema"),
        (turn(occurred_at="0001-01-01T00:00:00+14:00"), "schema"),
        (end(occurred_at="9999-12-31T23:59:59-14:00"), "schema"),
        (outcome(kind="rating", value=-0.0), "schema"),
        (with_field(b'"audio":null'), "media"),
        (with_field(b'"audio":1e400'), "media"),
        (with_field(b'"video":"x"', end()), "media"),
        (with_field(b'"keystrokes":[1]', outcome()), "media"),
    ],
)
def test_unusual_input_is_refused_with_its_reason(raw: bytes, code: str) -> None:
    problem = refusal(raw)
    assert problem.code == code
    assert MARKER not in problem.detail


def test_unknown_fields_are_not_validated() -> None:
    """Also if the event contains the word that triggers the search for media fields."""
    plain = decode(turn())
    assert decode(with_field(b'"x":1e400')) == plain
    assert decode(with_field(b'"x":1e400,"y":"audio"')) == plain
    assert decode(with_field(rb'"x":"\u0000"')) == plain
    assert decode(with_field(b'"x":{"audio":1}')) == plain


def test_of_duplicate_fields_the_last_one_wins() -> None:
    event = decode(with_field(b'"text":"the last word"'))
    assert isinstance(event, Turn)
    assert event.text == "the last word"


def test_the_largest_allowed_event_is_accepted() -> None:
    room = MAX_EVENT_BYTES - len(turn(text=""))
    assert isinstance(decode(turn(text="x" * room)), Turn)
    assert refusal(turn(text="x" * (room + 1))).code == "too-large"


def test_values_at_the_limits_are_accepted() -> None:
    event = decode(turn(session="s" * MAX_ID_CHARS, seq=2**31 - 1))
    assert (len(event.session_id), event.seq) == (MAX_ID_CHARS, 2**31 - 1)
    for value in (1, 5.0):
        rating = decode(outcome(value=value))
        assert isinstance(rating, Outcome)
        assert rating.value == value


def test_non_ascii_characters_are_preserved() -> None:
    text = "Ça va ? e\u0301 \U0001f9d1\u200d\U0001f91d\u200d\U0001f9d1 مرحبا"
    for ascii_only in (True, False):
        body = json.loads(turn()) | {"text": text}
        event = decode(json.dumps(body, ensure_ascii=ascii_only).encode())
        assert isinstance(event, Turn)
        assert event.text == text


def test_time_zones_do_not_change_the_instant() -> None:
    here, there = (
        decode(turn(occurred_at=at))
        for at in ("2026-01-05T10:00:00+05:30", "2026-01-05T04:30:00.000Z")
    )
    assert utc(here.occurred_at) == utc(there.occurred_at)
    assert utc(here.occurred_at).utcoffset() == utc(there.occurred_at).utcoffset()


@pytest.mark.parametrize(
    ("at", "second"),
    [
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
        ("2017-01-01T05:29:60.5+05:30", "2016-12-31T23:59:59.5Z"),
    ],
)
def test_a_leap_second_is_the_one_before_it(at: str, second: str) -> None:
    leap, before = (decode(turn(occurred_at=each, text='"at:60Z"')) for each in (at, second))
    assert leap.occurred_at == before.occurred_at
    assert isinstance(leap, Turn)
    assert leap.text == '"at:60Z"'


@pytest.mark.parametrize("consent", [True, False, None])
def test_consent_is_true_false_or_absent(consent: bool | None) -> None:
    event = decode(turn(consent=consent))
    assert isinstance(event, Turn)
    assert event.consent is consent


WORDS = st.sampled_from(
    [
        MARKER,
        f"{MARKER} - at `$.{MARKER}`",
        f"`{MARKER}`",
        f"\n{MARKER}",
        f"\x00{MARKER}",
        f"'{MARKER}'",
        f"Expected `str`, got `{MARKER}`",
        MARKER * 50,
    ]
)
VALUES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
EVENTS = st.sampled_from([turn(), end(), outcome()]).map(json.loads)
PLACES = st.sampled_from(
    [*{**json.loads(turn()), **json.loads(end()), **json.loads(outcome())}, "lang", "team", MARKER]
)


@given(EVENTS, st.dictionaries(PLACES, VALUES, max_size=3), st.sets(PLACES, max_size=2))
def test_no_reason_quotes_the_event(
    body: dict[str, Any], changes: dict[str, Any], dropped: set[str]
) -> None:
    changed = {key: value for key, value in {**body, **changes}.items() if key not in dropped}
    try:
        decode(json.dumps(changed).encode())
    except ContractError as problem:
        texts = f"{problem.code} {problem.detail} {problem} {problem!r}"
    else:
        return
    assert MARKER not in texts


@given(st.binary(max_size=40), st.integers(0, 300), st.booleans())
def test_arbitrary_bytes_never_break_the_decoder(junk: bytes, place: int, media: bool) -> None:
    raw = with_field(b'"x":"audio"') if media else turn()
    codes = {"not-json", "not-utf-8", "lone-surrogate", "schema", "nul-byte", "empty-text", "media"}
    try:
        decode(raw[:place] + junk + raw[place:])
    except ContractError as problem:
        code = problem.code
    else:
        return
    assert code in codes


def cloud_headers() -> dict[str, Any]:
    return dict(cloudevents.binary_headers(decode(turn()), "e-1", "chat"))


def test_the_headers_of_an_event_agree_with_it() -> None:
    for raw in (turn(), end(), outcome()):
        event = decode(raw)
        headers = cloudevents.headers_of(cloudevents.binary_headers(event, "e-1", "chat"))
        cloudevents.check(headers, event)


@pytest.mark.parametrize(
    "content_type",
    ["application/cloudevents+json; charset=UTF-8", "Application/CloudEvents-batch+json"],
)
def test_a_cloud_event_in_structured_mode_is_refused_by_name(content_type: str) -> None:
    data = json.loads(turn())
    value = json.dumps({"specversion": "1.0", "id": "1", "type": "rapport.turn", "data": data})
    headers = {"content-type": content_type.encode()}
    received = receive(Source("turns", 0, 0), value.encode(), headers)
    assert received.event == cloudevents.NOT_BINARY
    assert isinstance(receive(Source("turns", 0, 0), turn(), headers).event, Turn)


def test_of_duplicate_headers_the_last_one_wins() -> None:
    assert cloudevents.headers_of([("a", b"1"), ("a", b"2")]) == {"a": b"2"}
    assert cloudevents.headers_of({"a": b"1"}) == {"a": b"1"}
    assert cloudevents.headers_of(None) == {}


@pytest.mark.parametrize("name", ["ce_id", "ce_source", "ce_type", "ce_specversion"])
def test_a_required_header_without_a_value_is_refused(name: str) -> None:
    """Kafka allows a header whose value is null."""
    with pytest.raises(ContractError) as caught:
        cloudevents.check({**cloud_headers(), name: None}, decode(turn()))
    assert caught.value.code == "cloudevent"


def test_an_optional_header_without_a_value_is_ignored() -> None:
    nulls = {"content-type": None, "ce_partitionkey": None}
    cloudevents.check({**cloud_headers(), **nulls}, decode(turn()))


def test_a_content_type_may_name_its_charset() -> None:
    with_charset = {"content-type": b"application/json; charset=utf-8"}
    cloudevents.check({**cloud_headers(), **with_charset}, decode(turn()))


def test_a_type_without_the_prefix_is_accepted() -> None:
    cloudevents.check({**cloud_headers(), "ce_type": b"turn"}, decode(turn()))
