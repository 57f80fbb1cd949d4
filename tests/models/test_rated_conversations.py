"""The head of rated empathy against ratings of whole conversations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from models.construct.__main__ import rated
from models.construct.benchmark import BenchmarkSessions, Known
from models.construct.fit import Part
from models.construct.traces import Features
from models.data.rated_sessions import RatedSession, RatedTurn
from models.labels import CLIENT, COUNSELLOR, RATED
from models.pages import low_empathy

CONVERSATIONS, ANSWERS = 120, 3


def part_with(noise: float) -> Part:
    """Conversations with one rating each; the head sees it with noise, answer by answer."""
    chance = np.random.default_rng(3)
    made, head = BenchmarkSessions(), []
    for number in range(CONVERSATIONS):
        rating = 1 + number % 5
        turns = []
        for _ in range(ANSWERS):
            words = " ".join(["word"] * int(chance.integers(3, 30)))
            turns += [RatedTurn(CLIENT, "Something happened."), RatedTurn(COUNSELLOR, words)]
            head += [np.nan, rating + chance.normal(0, noise)]
        session = RatedSession("esconv", f"rated:{number}", turns)
        made.add(session, Known("rated", "peer-support", 0, totals=(rating,) * ANSWERS))
    starts = np.arange(CONVERSATIONS + 1) * 2 * ANSWERS
    return Part(made, starts, Features({}, {RATED: np.array(head)}))


def width(found: dict[str, Any]) -> float:
    return float(found["spearman"]["high"] - found["spearman"]["low"])


def test_a_conversation_is_rated_once_and_its_answers_are_averaged() -> None:
    found = rated([part_with(noise=3.0)])
    whole = found["conversations"]
    assert (found["answers"], whole["number"]) == (CONVERSATIONS * ANSWERS, CONVERSATIONS)
    assert whole["one_rating"] == CONVERSATIONS
    assert whole["spearman"]["value"] > found["spearman"]["value"] > 0.2
    assert abs(whole["length_alone"]) < 0.2


def test_intervals_resample_conversations_and_not_their_answers() -> None:
    """Without noise between the answers of a conversation, three of them say no more than one."""
    part = part_with(noise=3.0)
    table = part.features.counsellor[RATED].reshape(CONVERSATIONS, 2 * ANSWERS)
    table[:, 1::2] = table[:, 1:2]
    found = rated([part])
    assert width(found) == pytest.approx(width(found["conversations"]), rel=0.2)


def test_the_document_says_both() -> None:
    text = low_empathy.rated(rated([part_with(noise=1.0)]))
    assert f"{CONVERSATIONS * ANSWERS} answers" in text
    assert f"In {CONVERSATIONS} of {CONVERSATIONS} conversations all answers have the same" in text
