"""Sealed values open with their key at their place, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.errors import SealingError
from stream_app.sealing.envelope import (
    is_sealed,
    new_key,
    seal,
    seal_text,
    unseal,
    unseal_text,
)

KEY = new_key()
HERE, THERE = "turns.text\0s\x000", "turns.text\0s\x001"


@given(st.text(), st.text())
def test_text_comes_back_from_its_place(text: str, place: str) -> None:
    sealed = seal_text(KEY, text, place)
    assert is_sealed(sealed)
    assert unseal_text(KEY, sealed, place) == text


@given(st.binary(), st.text())
def test_bytes_come_back_from_their_place(raw: bytes, place: str) -> None:
    assert unseal(KEY, seal(KEY, raw, place), place) == raw


def test_a_value_does_not_open_elsewhere_with_another_key_or_when_it_was_changed() -> None:
    sealed = seal_text(KEY, "I failed again.", HERE)
    for key, stored, place in (
        (KEY, sealed, THERE),
        (new_key(), sealed, HERE),
        (None, sealed, HERE),
        (KEY, sealed[:-8], HERE),
        (KEY, sealed[:1], HERE),
        (KEY, f"{sealed[:20]}!{sealed[21:]}", HERE),
        (KEY, f"{sealed[:20]}{'AB'[sealed[20] == 'A']}{sealed[21:]}", HERE),
    ):
        with pytest.raises(SealingError):
            unseal_text(key, stored, place)
    blob = seal(KEY, b"state", HERE)
    for key, place in ((KEY, THERE), (new_key(), HERE), (None, HERE)):
        with pytest.raises(SealingError):
            unseal(key, blob, place)


def test_the_same_text_is_sealed_differently_each_time() -> None:
    assert seal_text(KEY, "yes", HERE) != seal_text(KEY, "yes", HERE)
    assert seal(KEY, b"yes", HERE) != seal(KEY, b"yes", HERE)


def test_what_an_earlier_release_stored_is_read_as_it_is() -> None:
    assert unseal_text(None, "I failed again.", HERE) == "I failed again."
    assert unseal(None, b"\x81\xa1a\x01", HERE) == b"\x81\xa1a\x01"
