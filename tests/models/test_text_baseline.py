"""The text baseline: its input, and training on other folds only."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from models.data.rated_sessions import RatedSession, RatedTurn
from models.evaluate.resampling import auroc
from models.evaluate.text_baseline import cross_fitted_words, said_by
from models.labels import CLIENT, COUNSELLOR


def chat(number: int, *, low: bool) -> RatedSession:
    """Low chats differ only in the client's text after the seventh counsellor turn."""
    turns = []
    for position in range(12):
        turns.append(RatedTurn(COUNSELLOR, f"how is that {position}"))
        late = "you do not listen" if low else "thank you so much"
        turns.append(RatedTurn(CLIENT, late if position >= 7 else "it is hard"))
    return RatedSession("esconv", f"esconv:{number}", turns)


def test_the_text_ends_with_the_counsellor_turn() -> None:
    session = chat(0, low=True)
    assert said_by(session, COUNSELLOR, 2) == "how is that 0 how is that 1"
    assert said_by(session, CLIENT, 2) == "it is hard"
    assert said_by(session, CLIENT).count("you do not listen") == 5
    assert said_by(session, CLIENT, 99) == said_by(session, CLIENT)


def test_words_count_from_the_turn_in_which_they_occur() -> None:
    sessions = [chat(number, low=number % 3 == 0) for number in range(60)]
    low = np.arange(60) % 3 == 0
    fold = np.arange(60) % 5

    def found(role: int, turns: int | None) -> float:
        texts = np.array([said_by(session, role, turns) for session in sessions])
        score = cross_fitted_words(texts, low, fold)
        assert score is not None
        return auroc(low, score)

    assert found(CLIENT, None) == found(CLIENT, 10) == 1.0
    assert found(CLIENT, 6) == pytest.approx(0.5)
    assert found(COUNSELLOR, None) == found(COUNSELLOR, 6) == pytest.approx(0.5)


def test_words_need_both_classes_in_the_other_folds() -> None:
    texts = np.array(["bad words here", "good words here"] * 6)
    low = np.arange(12) % 2 == 0
    assert cross_fitted_words(texts, low, np.where(low, 0, 1)) is None
