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
def test_personal_details_are_masked_and_other_text_is_kept(detail: str) -> None:
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


def test_a_sentence_without_personal_details_is_unchanged() -> None:
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


def test_all_digits_of_a_turn_full_of_digits_are_masked() -> None:
    """Nobody looks for telephone numbers there, so none may be left."""
    said = "My card is 4111 1111 1111 1111, call 07911 123456. " + "I had 12 of 1999. " * 30
    masked = redact(said)
    assert not any(char.isdigit() for char in masked)
    assert masked.startswith(f"My card is {MASK * 4} {MASK * 4} {MASK * 4} {MASK * 4}, call ")
    assert len(masked) == len(said)


def test_a_few_scattered_digits_are_kept() -> None:
    said = "It was in 1999, and I was 12. " + "He was kind. " * 9 + "Now I am 41, at room 101."
    assert redact(said) == said


HARD = {
    "digits": "12345678 " * 7000,
    "single digits": "1 " * 30_000,
    "calling codes": "+1" * 30_000,
    "addresses": "a@b.co " * 8500,
    "half addresses": "a@" * 30_000,
    "an address without end": "a@" + "-" * 60_000,
    "brackets": ("[" * 400 + "1") * 149,
    "brackets near": ("(" * 20 + "1") * 149,
    "many brackets before one number": "(" * 60_000 + "1234567",
    "slashes": "1/" * 149,
    "numbers": "12345678 " * 18,
    "single digits, just few enough": "1 " * 150,
    "introductions": "I am " * 12_000,
    "an introduction without end": "I am" + " " * 60_000,
    "a long name": "My name is A" + "a" * 60_000 + "1",
    "words": "I do not know what to say. " * 2300,
}


@pytest.mark.parametrize("name", HARD)
def test_redaction_of_the_longest_event_is_fast(name: str) -> None:
    """A few milliseconds; the bound leaves room for a busy machine."""
    took = []
    for _ in range(3):
        start = time.process_time()
        redact(HARD[name])
        took.append(time.process_time() - start)
    assert min(took) < 0.05
