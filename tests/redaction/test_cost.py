"""The time that one text can take, whatever is in it."""

import time

import pytest

from stream_app.redaction.mask import redact
from stream_app.redaction.rules import Rules
from tests.redaction.test_properties import DETAILS

LONGEST = 64 * 1024
MOST = 24.0
"""Of the time of an eighth of the text: 8 if it grows with the length, 64 with its square."""
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
    "names": "Sarah " * 10_000,
    "unknown names": "Zq " * 20_000,
    "initials": "A." * 30_000,
    "contractions": "I’m " * 15_000,
    "streets": "Elm Street " * 5400,
    "words with dots": "a." * 30_000,
    "words with dashes": "A-" * 30_000,
    "words with apostrophes": "a’" * 30_000,
    "paths": "a.com/" * 10_000,
    "schools": "School " * 8500,
    "numbers between names": ("12 Elm " * 70 + "Abc " * 90) * 40,
    "a long word": "a" * 60_000,
    **{detail: f"{detail} " * (LONGEST // (len(detail) + 1)) for detail in DETAILS},
    **{
        f"{word} among {detail}": (f"{word} " * 40 + f"{detail} ") * 140
        for word in ("born", "account number", "live in New")
        for detail in ("7", "GB29 NWBK", "12/03")
    },
}


@pytest.mark.parametrize("name", HARD)
def test_the_time_of_the_longest_event_grows_with_its_length(name: str) -> None:
    """On a busy machine one of five attempts is enough."""
    text = HARD[name][:LONGEST]
    attempts = (cpu_time(text) / cpu_time(text[: len(text) // 8]) for _ in range(5))
    assert any(ratio < MOST for ratio in attempts)


def cpu_time(text: str) -> float:
    """Of the faster of two redactions."""
    took = []
    for _ in range(2):
        start = time.process_time()
        redact(text, Rules())
        took.append(time.process_time() - start)
    return min(took)
