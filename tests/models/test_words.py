"""The yardstick of words: what it may see, and that it learns from other folds alone."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from models.data.listeners import HeardSession, HeardTurn
from models.labels import CLIENT, COUNSELLOR
from models.words import risk_by_words, said_by


def chat(number: int, *, low: bool) -> HeardSession:
    """Low chats show in what the client says after the seventh counsellor turn, not before."""
    turns = []
    for position in range(12):
        turns.append(HeardTurn(COUNSELLOR, f"how is that {position}"))
        late = "you do not listen" if low else "thank you so much"
        turns.append(HeardTurn(CLIENT, late if position >= 7 else "it is hard"))
    return HeardSession("esconv", f"esconv:{number}", turns)


def test_what_is_said_ends_with_the_counsellor_turn() -> None:
    session = chat(0, low=True)
    assert said_by(session, COUNSELLOR, 2) == "how is that 0 how is that 1"
    assert said_by(session, CLIENT, 2) == "it is hard"
    assert said_by(session, CLIENT).count("you do not listen") == 5
    assert said_by(session, CLIENT, 99) == said_by(session, CLIENT)


def test_words_tell_from_the_moment_on_at_which_they_are_said() -> None:
    sessions = [chat(number, low=number % 3 == 0) for number in range(60)]
    low = {number: number % 3 == 0 for number in range(60)}
    own = {number: number % 5 for number in range(60)}
    found = risk_by_words(sessions, low, own)
    client = found["tf-idf of the client's words, without the model"]
    assert client["end"]["value"] == client["after_10"]["value"] == 1.0
    assert client["after_6"]["value"] == pytest.approx(0.5)
    counsellor = found["tf-idf of the counsellor's words, without the model"]
    assert all(np.isclose(row["value"], 0.5) for row in counsellor.values())
