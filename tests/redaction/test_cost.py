"""The time that one text can take, whatever is in it."""

import gc
import time

import pytest

from stream_app.redaction.mask import redact
from stream_app.redaction.rules import Rules
from tests.redaction.test_properties import DETAILS

LENGTH = 128 * 1024
"""Twice what the text of an event may have."""
SHARE = 4
MOST = 10.0
"""Of the time of a quarter of the text: 4 if it grows with the length, 16 with its square. Python
searches strings of more than 30,000 characters in another way, so both lengths are above that."""
HARD = {
    "digits": "12345678 " * LENGTH,
    "single digits": "1 " * LENGTH,
    "calling codes": "+1" * LENGTH,
    "addresses": "a@b.co " * LENGTH,
    "half addresses": "a@" * LENGTH,
    "an address without end": "a@" + "-" * LENGTH,
    "brackets": ("[" * 870 + "1") * 149,
    "brackets near": ("(" * 20 + "1") * 149,
    "many brackets before one number": "(" * LENGTH,
    "slashes": "1/" * 149,
    "numbers": "12345678 " * 18,
    "single digits, just few enough": "1 " * 150,
    "introductions": "I am " * LENGTH,
    "an introduction without end": "I am" + " " * LENGTH,
    "a long name": "My name is A" + "a" * LENGTH,
    "words": "I do not know what to say. " * LENGTH,
    "names": "Sarah " * LENGTH,
    "unknown names": "Zq " * LENGTH,
    "initials": "A." * LENGTH,
    "contractions": "I’m " * LENGTH,
    "streets": "Elm Street " * LENGTH,
    "words with dots": "a." * LENGTH,
    "words with dashes": "A-" * LENGTH,
    "words with apostrophes": "a’" * LENGTH,
    "paths": "a.com/" * LENGTH,
    "schools": "School " * LENGTH,
    "numbers between names": ("12 Elm " * 70 + "Abc " * 90) * 200,
    "a long word": "a" * LENGTH,
    **{detail: f"{detail} " * LENGTH for detail in DETAILS},
    **{
        f"{word} among {detail}": (f"{word} " * 40 + f"{detail} ") * 280
        for word in ("born", "account number", "live in New")
        for detail in ("7", "GB29 NWBK", "12/03")
    },
}
HARD = {name: text[:LENGTH] for name, text in HARD.items()}
ENDS = {"many brackets before one number": "1234567", "a long name": "1"}


@pytest.mark.parametrize("name", HARD)
def test_the_time_of_the_longest_event_grows_with_its_length(name: str) -> None:
    """On a busy machine one of five attempts is enough."""
    text = HARD[name]
    end = ENDS.get(name, "")
    attempts = (cpu_time(text + end) / cpu_time(text[: len(text) // SHARE] + end) for _ in range(5))
    assert any(ratio < MOST for ratio in attempts)


def cpu_time(text: str) -> float:
    """Of the faster of two redactions; without the garbage collector, as `timeit` does."""
    took = []
    gc.disable()
    try:
        for _ in range(2):
            start = time.process_time()
            redact(text, Rules())
            took.append(time.process_time() - start)
    finally:
        gc.enable()
    return min(took)
