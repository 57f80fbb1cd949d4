"""Decoding: accepted and refused events; no error quotes dialogue."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app import client
from stream_app.contracts import cloudevents
from stream_app.contracts.events import (
    MAX_EVENT_BYTES,
    ROLE_ALIASES,
    Approach,
    Domain,
    Outcome,
    Role,
    SessionEnd,
    Turn,
    WireRole,
    decode,
    peek_session_id,
)
from stream_app.errors import ContractError
from tests import fuzz
from tests.contracts.refusal import refusal
from tests.fakes import end, outcome, turn

SECRET = "zanzibar"


def test_the_three_event_types_are_accepted() -> None:
    assert isinstance(decode(turn()), Turn)
    assert isinstance(decode(end()), SessionEnd)
    assert isinstance(decode(outcome()), Outcome)


def test_a_byte_order_mark_is_ignored() -> None:
    marked = b"\xef\xbb\xbf" + turn("s-1")
    assert decode(marked) == decode(turn("s-1"))
    assert peek_session_id(marked) == "s-1"


def test_a_turn_may_name_its_approach() -> None:
    event = decode(turn(approach="motivational-interviewing"))
    assert isinstance(event, Turn)
    assert event.approach is Approach.MOTIVATIONAL_INTERVIEWING
    assert decode(turn()).approach is None  # type: ignore[union-attr]
    refused = refusal(turn(approach=SECRET))
    assert refused.code == "schema"
    assert "$.approach" in refused.detail
    assert SECRET not in refused.detail


def test_every_role_alias_maps_to_a_role() -> None:
    assert {role.value for role in WireRole} == ROLE_ALIASES.keys()
    for word, role in ROLE_ALIASES.items():
        event = decode(turn(role=word))
        assert isinstance(event, Turn)
        assert event.speaker_role is role
    assert ROLE_ALIASES["therapist"] is Role.COUNSELLOR


@pytest.mark.parametrize(
    ("written", "role"),
    [
        ("Counselor", Role.COUNSELLOR),
        ("AGENT", Role.COUNSELLOR),
        (" Customer ", Role.CLIENT),
        ("Bot", Role.SYSTEM),
        ("Supervisor", Role.SUPERVISOR),
    ],
)
def test_a_role_is_understood_as_people_write_it(written: str, role: Role) -> None:
    event = decode(turn(role=written))
    assert isinstance(event, Turn)
    assert event.speaker_role is role
    assert event.is_aside is (role in (Role.SYSTEM, Role.SUPERVISOR))
    sent = client.turn("s", written, "Hello.", speaker_id="a")
    assert ROLE_ALIASES[sent.role.value] is role
    assert Role(written) is role


@pytest.mark.parametrize(
    ("written", "domain"),
    [
        ("counseling", Domain.COUNSELLING),
        ("Counselling", Domain.COUNSELLING),
        ("peer_support", Domain.PEER_SUPPORT),
        ("Peer Support", Domain.PEER_SUPPORT),
        ("customer_service", Domain.CUSTOMER_SERVICE),
    ],
)
def test_a_domain_is_understood_as_people_write_it(written: str, domain: Domain) -> None:
    event = decode(turn(domain=written))
    assert isinstance(event, Turn)
    assert event.domain is domain


@pytest.mark.parametrize(
    ("event", "valid"),
    [
        (turn(role=SECRET), "client, seeker, patient, customer, user, counsellor, counselor"),
        (turn(domain=SECRET), "counselling, peer-support, customer-service"),
        (turn(approach=SECRET), "motivational-interviewing"),
        (outcome(kind=SECRET), "like, reply, follow, rating"),
    ],
)
def test_a_refusal_lists_the_valid_values(event: bytes, valid: str) -> None:
    refused = refusal(event)
    assert f"one of {valid}" in refused.detail
    assert SECRET not in refused.detail


@pytest.mark.parametrize("at", ["2026-03-02T09:00:00", "2 March", "2026-03-02T09:00Z", 5, None])
def test_a_refusal_of_a_time_says_how_to_write_it(at: object) -> None:
    assert refusal(turn(occurred_at=at)).detail == (
        "a time such as 2026-03-02T09:00:00Z, with an offset, is needed - at `$.occurred_at`"
    )


def test_unknown_fields_are_ignored() -> None:
    assert isinstance(decode(turn(mood="fine")), Turn)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "not-json"),
        (b"zanzibar", "not-json"),
        (b"{}", "schema"),
        (b"[]", "schema"),
        (b"7", "schema"),
        (b"null", "schema"),
        (turn() + turn(), "not-json"),
        (b"[" * 5000, "schema"),
        (b'{"type":"turn","x":' + b"[" * 60_000, "schema"),
        (turn()[:-1] + b',"x":' + b"[" * 30_000 + b"]" * 30_000 + b"}", "schema"),
        (b'{"type":"turn","seq":1e400}', "schema"),
        (turn(text="x" * 10_000_000), "too-large"),
        (turn(text=""), "empty-text"),
        (turn(text=" \n\u2003"), "empty-text"),
        (turn(text=None), "schema"),
        (turn(text=["zanzibar"]), "schema"),
        (turn(text="a\x00b"), "nul-byte"),
        (turn().replace(b"I say", b"I \x00say"), "not-json"),
        (turn(session="a\x00b"), "nul-byte"),
        (turn().replace(b"I say", b"I \xc3\x28say"), "not-utf-8"),
        (turn().replace(b"I say", b"\\ud800 say"), "lone-surrogate"),
        (turn(seq=-1), "schema"),
        (turn(seq=2**31), "schema"),
        (turn(seq=1.5), "schema"),
        (turn(seq="zanzibar"), "schema"),
        (turn(role="zanzibar"), "schema"),
        (turn(type="zanzibar"), "schema"),
        (turn(domain="zanzibar"), "schema"),
        (turn(session="z" * 10_000), "schema"),
        (turn(session=""), "schema"),
        (turn(occurred_at="2026-01-05T10:00:00"), "schema"),
        (turn(occurred_at="zanzibar"), "schema"),
        (turn(consent="zanzibar"), "schema"),
        (turn(audio="zanzibar"), "media"),
        (turn(video={}), "media"),
        (turn(keystrokes=[]), "media"),
        (outcome(value=0.5), "schema"),
        (outcome(value=5.5), "schema"),
        (outcome(kind="zanzibar"), "schema"),
    ],
)
def test_invalid_input_is_refused_with_its_reason(raw: bytes, code: str) -> None:
    problem = refusal(raw)
    assert problem.code == code
    assert problem.detail
    assert SECRET not in problem.detail


def test_a_missing_field_is_named() -> None:
    body = json.loads(turn())
    del body["text"]
    assert "`text`" in refusal(json.dumps(body).encode()).detail


def test_the_word_media_inside_the_text_is_accepted() -> None:
    assert isinstance(decode(turn(text='He said "audio" to me.')), Turn)


SECRETS = st.sampled_from([SECRET, [SECRET], {SECRET: SECRET}, f"\x00{SECRET}", SECRET * 10_000])
JSON = st.recursive(st.none() | st.booleans() | st.integers() | SECRETS, st.lists, max_leaves=3)


@given(st.dictionaries(st.sampled_from([*json.loads(turn()), SECRET]), JSON))
def test_no_error_quotes_the_input(changes: dict[str, Any]) -> None:
    body = {**json.loads(turn()), **changes}
    try:
        decode(json.dumps(body).encode())
    except ContractError as problem:
        refused = problem
    else:
        return
    assert SECRET not in refused.detail


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(raw: bytes) -> None:
    assert refusal(raw).code in {"not-json", "not-utf-8", "lone-surrogate", "schema"}


@given(st.data())
def test_a_mutated_turn_is_accepted_or_refused(data: st.DataObject) -> None:
    raw = bytearray(turn())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        event = decode(bytes(raw))
    except ContractError:
        return
    assert event.session_id


def headers(**changes: bytes | None) -> dict[str, bytes]:
    good = dict(cloudevents.binary_headers(decode(turn()), "e-1", "chat"))
    merged = {**good, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def test_a_cloud_event_that_agrees_with_its_data_is_accepted() -> None:
    assert cloudevents.is_cloud_event(headers())
    cloudevents.check(headers(), decode(turn()))
    assert not cloudevents.is_cloud_event({})


@pytest.mark.parametrize(
    "change",
    [
        {"ce_specversion": b"0.3"},
        {"ce_id": None},
        {"ce_source": b""},
        {"ce_type": b"rapport.outcome"},
        {"ce_partitionkey": b"zanzibar"},
        {"content-type": b"text/plain"},
    ],
)
def test_a_cloud_event_that_contradicts_its_data_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ContractError) as caught:
        cloudevents.check(headers(**change), decode(turn()))
    assert caught.value.code == "cloudevent"
    assert SECRET not in caught.value.detail


def test_the_session_of_an_event_can_be_peeked_at() -> None:
    """In any order of names, repeated ones included, and whatever else is wrong."""
    compared = 0
    for value in fuzz.messages(3000, seed=7):
        peeked = peek_session_id(value)
        with suppress(ContractError):
            assert decode(value).session_id == peeked
            compared += 1
    assert compared > 500
    twice = turn()[:-1] + b', "session_id": "last"}'
    assert decode(twice).session_id == peek_session_id(twice) == "last"


@pytest.mark.parametrize(
    "value",
    [b"", b"\xff", b"[]", b'{"session_id": 7}', b"[" * 100_000, b"9" * (MAX_EVENT_BYTES + 1)],
)
def test_what_is_no_event_has_no_session(value: bytes) -> None:
    assert peek_session_id(value) is None
