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


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("my name is sarah whitcombe", "sarah whitcombe"),
        ("my name's tom hale, hello", "tom hale"),
        ("My name is S. K. Iyer", "S. K. Iyer"),
        ("my name is A.P.J. Kalam", "A.P.J. Kalam"),
        ("I'm J. R. Hartley", "J. R. Hartley"),
        ("My name is S K Iyer", "S K Iyer"),
        ("signed by R.T. Holloway", "R.T. Holloway"),
        ("i spoke to dr patel yesterday", "patel"),
        ("mr smith at school", "smith"),
        ("mr and mrs fairweather", "fairweather"),
        ("I saw DR PATEL", "PATEL"),
        ("mrs o'brien next door", "o'brien"),
        ("Miss Hargreaves left", "Hargreaves"),
        ("Rev. Hargreaves left", "Hargreaves"),
        ("name: sarah whitcombe", "sarah whitcombe"),
        ("my name is priya jain", "priya jain"),
        ("My PAN is ABCPE1234F", "ABCPE1234F"),
        ("aadhaar 2345 6789 0124", "2345 6789 0124"),
        ("pay lakshmi@okaxis", "lakshmi@okaxis"),
        ("my upi is ravi.k@mybank", "ravi.k@mybank"),
    ],
)
def test_names_and_numbers_as_people_type_them_are_masked(text: str, name: str) -> None:
    assert redact(text) == text.replace(name, MASK * len(name))


@pytest.mark.parametrize(
    "text",
    [
        "I'm Bipolar",
        "I'm Anorexic",
        "I'm Dyslexic",
        "I'm Trans",
        "I'm Nonbinary",
        "I'm Neurodivergent",
        "I'm Menopausal",
        "I'm Sikh",
        "I'm Punjabi",
        "I'm Hypomanic",
        "I'm Pentecostal",
        "I'm Jain",
        "I'm Orthorexic",
        "I'm Basque",
        "I'm Insomniac",
        "file name: report",
        "the dr said no, dr appointment tomorrow",
        "the doctor just says it will pass, doctor will call",
        "I miss Chocolate, we miss you",
        "The U.S. Army and the I.T. Department, P.S. Thanks",
        "Raymond MS battle, my MS diagnosis",
        "I AM THE KING and I AM A WORKAHOLIC",
        "Im up. Im fine",
        "vitamin B. Then sleep",
        "we met @home and @work",
        "my name is mud",
    ],
)
def test_what_people_are_and_abbreviations_stay(text: str) -> None:
    assert redact(text).replace("Raymond", "•••••••") == text.replace("Raymond", "•••••••")


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
