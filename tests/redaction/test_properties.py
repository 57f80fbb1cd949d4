"""What holds for any text: masks keep the length, and masking twice changes nothing."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stream_app.plain_text.mapped import MASK
from stream_app.redaction import mask
from stream_app.redaction.rules import Rules

DETAILS = [
    "joan@example.org",
    "joan at example dot org",
    "https://example.org/u/joan?x=1",
    "@joan_ark",
    "my username is joanark",
    "07911 123456",
    "4111 1111 1111 1111",
    "GB29 NWBK 6016 1331 9268 19",
    "QQ 12 34 56 C",
    "999 323 7418",
    "born on 12/03/1985",
    "account number 10294736",
    "AB12 CDE",
    "Flat 3, 27 Elm Grove, Leeds LS6 2AB",
    "Musterstraße 12, 12345 Musterstadt",
    "I live in Huddersfield",
    "St Mary's Hospital",
    "My name is Joan van der Ark",
    "my son jayden",
    "with Mark and Rose",
]
PIECES = st.sampled_from(
    [
        *DETAILS,
        *(word for detail in DETAILS for word in detail.split()),
        *(" ", ", ", "\n", "@", "+", "-", "’", "'s", ".", "12", "7", "A", "İ", "ß", "٣٤٥٦٧٨٩٠"),
        *("\U0001f642", "é", "I'm", "call me", MASK),
    ]
)
TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(PIECES, max_size=10).map("".join),
    st.lists(PIECES, max_size=10).map(" ".join),
)


@settings(deadline=None)
@given(TEXTS)
@example("I'm Joan Joan@example.org 020 7946 0958 4111111111111111")
@example("İ" * 10 + " I'm Joan")
def test_masks_keep_the_length_and_every_other_character(text: str) -> None:
    masked = mask.redact(text, Rules())
    assert len(masked) == len(text)
    assert all(new in (MASK, old) for old, new in zip(text, masked, strict=True))


@settings(deadline=None)
@given(TEXTS)
def test_masking_twice_changes_nothing(text: str) -> None:
    once = mask.redact(text, Rules())
    assert mask.redact(once, Rules()) == once


@settings(deadline=None)
@given(TEXTS)
def test_spans_lie_in_the_text(text: str) -> None:
    assert all(0 <= start < end <= len(text) for start, end, _ in Rules().find(text))


@pytest.mark.parametrize(
    "detail", ["joan@example.org", "07911 123456", "4111 1111 1111 1111", "Flat 3, 27 Elm Grove"]
)
@settings(max_examples=40, deadline=None)
@given(st.text("ab .,é", max_size=20), st.text("ab .,é", max_size=20))
def test_details_are_found_between_any_words(detail: str, before: str, after: str) -> None:
    assert detail not in mask.redact(f"{before} {detail} {after}", Rules())
