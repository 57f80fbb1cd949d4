"""What redaction finds, what it leaves, and that it keeps the length."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stream_app.store.privacy import MASK, Privacy, _cards, redact

HIDDEN = [
    "joan@example.org",
    "j.o+tag@mail.example.co.uk",
    "4111 1111 1111 1111",
    "4111-1111-1111-1111",
    "378282246310005",
    "020 7946 0958",
    "07911 123456",
    "+44 7911 123456",
    "(212) 555-0123",
    "+1 212 555 0123",
]
INTRODUCTIONS = ["my name is {}", "My name's {}", "I'm called {}", "Call me {}", "This is {}"]


@pytest.mark.parametrize("detail", HIDDEN)
def test_a_detail_is_masked_and_the_rest_stays(detail: str) -> None:
    assert (
        redact(f"Please use {detail}, will you?") == f"Please use {MASK * len(detail)}, will you?"
    )


@pytest.mark.parametrize("introduction", INTRODUCTIONS)
@pytest.mark.parametrize("name", ["Joan", "Joan Ark", "Mary-Jane Watson"])
def test_a_name_in_an_introduction_is_masked(introduction: str, name: str) -> None:
    said = introduction.format(name)
    assert redact(f"{said}, hello") == f"{introduction.format(MASK * len(name))}, hello"


@pytest.mark.parametrize("behind", [" 123", " 12/26", ", 12/26", " 12 26 123"])
def test_a_card_is_found_when_its_code_or_expiry_date_follows(behind: str) -> None:
    for card in ("4111 1111 1111 1111", "4111111111111111"):
        masked = redact(f"it is {card}{behind}")
        assert "1111" not in masked
        assert len(masked) == len(f"it is {card}{behind}")


@pytest.mark.parametrize("text", ["in 2019", "room 12345", "I am 41", "reference " + "9" * 23])
def test_digits_that_are_neither_card_nor_telephone_stay(text: str) -> None:
    assert redact(text) == text


def test_only_a_valid_luhn_number_counts_as_a_card() -> None:
    assert list(_cards("6011 0000 0000 0004")) == [(0, 19)]
    assert list(_cards("6011 0000 0000 0005")) == []
    assert list(_cards("0" * 12)) == []
    assert list(_cards("0" * 20)) == []


def test_a_sentence_without_details_stays() -> None:
    for text in (
        "I am so tired of this, and I'm not sure it will end.",
        "You said it @ four, didn't you?",
        "This is hard.",
        "",
    ):
        assert redact(text) == text


def test_redaction_can_be_switched_off() -> None:
    said = "write to joan@example.org"
    assert Privacy(key=b"k", redact=False).redacted(said) == said
    assert Privacy(key=b"k").redacted(said) != said


def test_pseudonyms_depend_on_the_key_and_the_speaker() -> None:
    one, two = Privacy(key=b"one"), Privacy(key=b"two")
    assert one.pseudonym("joan") == one.pseudonym("joan")
    assert len({one.pseudonym("joan"), one.pseudonym("john"), two.pseudonym("joan")}) == 3
    assert len(one.pseudonym("joan")) == 32


PIECES = st.sampled_from(
    [
        *HIDDEN,
        "I'm Joan",
        "call me Al",
        " ",
        ", ",
        "\n",
        "@",
        "+",
        "12",
        "٣٤٥٦٧٨٩٠",
        "\U0001f642",
        "é",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=8).map("".join)))
@example("I'm Joan Joan@example.org 020 7946 0958 4111111111111111")
def test_masks_keep_the_length_and_every_other_character(text: str) -> None:
    masked = redact(text)
    assert len(masked) == len(text)
    assert all(new in (MASK, old) for old, new in zip(text, masked, strict=True))


@settings(max_examples=50, deadline=None)
@given(st.text("ab .,é", max_size=20), st.sampled_from(HIDDEN[:5]), st.text("ab .,é", max_size=20))
def test_details_are_found_between_any_words(before: str, detail: str, after: str) -> None:
    assert detail not in redact(f"{before} {detail} {after}")


@pytest.mark.parametrize("text", ["a" * 60_000 + " @", "1 " * 30_000, "a@" * 30_000, "+1" * 30_000])
def test_the_longest_event_does_not_hold_up_a_worker(text: str) -> None:
    start = time.process_time()
    redact(text)
    assert time.process_time() - start < 4.0
