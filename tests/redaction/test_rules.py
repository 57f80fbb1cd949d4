"""What redaction finds, what it leaves, and that it keeps the length."""

import pytest

from stream_app.plain_text.mapped import MASK
from stream_app.redaction import mask
from stream_app.redaction.bank import cards
from stream_app.redaction.rules import Rules
from stream_app.redaction.spans import Kind, Span

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
INTRODUCTIONS = [
    "I’m {}",
    "I'm {}",
    "my name is {}",
    "My name's {}",
    "I'm called {}",
    "Call me {}",
    "This is {}",
]


def redact(text: str) -> str:
    return mask.redact(text, Rules())


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


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("I am <b>Jo</b>an", "I am <b>••••••••"),
        ("write to joan＠example．org", "write to ••••••••••••••••"),
        ("call 07700\u200b900123", "call ••••••••••••"),
        ("&gt; my name&#39;s Joan", "&gt; my name&#39;s ••••"),
        ("my name is Jose\u0301 A\u0301lvarez", "my name is ••••••••••••••"),
    ],
)
def test_details_are_found_in_markup_and_odd_characters(text: str, hidden: str) -> None:
    assert redact(text)[: len(hidden)] == hidden
    assert len(redact(text)) == len(text)


@pytest.mark.parametrize("behind", [" 123", " 12/26", ", 12/26", " 12 26 123"])
def test_a_card_is_found_when_its_code_or_expiry_date_follows(behind: str) -> None:
    for card in ("4111 1111 1111 1111", "4111111111111111"):
        masked = redact(f"it is {card}{behind}")
        assert "1111" not in masked
        assert len(masked) == len(f"it is {card}{behind}")


@pytest.mark.parametrize("text", ["in 2019", "room 12345", "I am 41", "about " + "9" * 23])
def test_digits_that_are_neither_card_nor_telephone_stay(text: str) -> None:
    assert redact(text) == text


def test_only_a_valid_luhn_number_counts_as_a_card() -> None:
    assert list(cards("6011 0000 0000 0004")) == [Span(0, 19, Kind.CARD)]
    assert list(cards("6011 0000 0000 0005")) == []
    assert list(cards("0" * 12)) == []
    assert list(cards("0" * 20)) == []


def test_a_sentence_without_details_stays() -> None:
    for text in (
        "I am so tired of this, and I'm not sure it will end.",
        "You said it @ four, didn't you?",
        "This is hard.",
        "",
    ):
        assert redact(text) == text


def test_in_a_turn_full_of_digits_all_of_them_are_masked() -> None:
    """Nobody looks for telephone numbers there, so none may be left."""
    said = "My card is 4111 1111 1111 1111, call 07911 123456. " + "I had 12 of 1999. " * 30
    masked = redact(said)
    assert not any(char.isdigit() for char in masked)
    assert masked.startswith(f"My card is {MASK * 4} {MASK * 4} {MASK * 4} {MASK * 4}, call ")
    assert len(masked) == len(said)


def test_a_few_digits_far_from_each_other_stay() -> None:
    said = "It was in 1999, and I was 12. " + "He was kind. " * 9 + "Now I am 41, at room 101."
    assert redact(said) == said
