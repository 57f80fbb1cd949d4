"""AnnoMI quality: the measures that the model's outputs are compared with."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from models.data.corpora import Conversation, Turn, votes
from models.data.rated_sessions import RatedSession, RatedTurn
from models.data.split import key_of
from models.evaluate import annomi_quality
from models.evaluate.ratings import Fold
from models.fit.perceived import Outcomes, Share
from models.labels import CLIENT, COUNSELLOR, HEADS

SESSIONS = 40


def counsellor(text: str, behaviour: str) -> Turn:
    return Turn(COUNSELLOR, text, {"behaviour": votes("behaviour", [behaviour])})


def test_codes_are_shares_of_the_annotators_votes() -> None:
    said = [
        counsellor("you are torn", "reflection"),
        counsellor("how so?", "question"),
        counsellor("go on", "reflection"),
        Turn(CLIENT, "yes", {"talk_type": votes("talk_type", ["change", "neutral"])}),
        Turn(CLIENT, "hm"),
    ]
    conversation = Conversation("annomi", "1", said)
    codes = annomi_quality.annotated_codes([conversation])[key_of(conversation)]
    assert codes["behaviour.reflection"] == pytest.approx(2 / 3)
    assert codes["behaviour.question"] == pytest.approx(1 / 3)
    assert codes["talk_type.change"] == codes["talk_type.neutral"] == 0.5
    assert not any(name.startswith("reflection.") for name in codes)


def test_every_measure_is_computed_on_sessions_and_on_topics() -> None:
    """Words that differ with quality are detected, random outputs are not."""
    chance = np.random.default_rng(3)
    sessions = []
    for number in range(SESSIONS):
        low = number % 4 == 0
        words = "you should stop" if low else "you feel torn"
        turns = [RatedTurn(CLIENT, "i drink"), RatedTurn(COUNSELLOR, words)] * 2
        sessions.append(
            RatedSession(
                "annomi",
                f"annomi:{number}",
                turns,
                quality="low" if low else "high",
                topic=f"topic {number % 7}",
            )
        )
    rows = 4 * SESSIONS
    logits = {
        head.name: chance.normal(size=(rows, len(head.labels))).astype(np.float32) for head in HEADS
    }
    outcomes = Outcomes(
        [session.key for session in sessions],
        np.arange(0, rows + 1, 4),
        {"final": logits, "provisional": logits},
        {"final": {}, "provisional": {}},
    )
    folds = [Fold(k, Share(seed=17, fold=k, folds=2), outcomes) for k in range(2)]
    codes = {
        session.key: {"behaviour.reflection": float(session.quality == "high")}
        for session in sessions
    }
    found = annomi_quality.report(sessions, folds, codes)
    assert (found["sessions"], found["low"], found["topics"]) == (SESSIONS, SESSIONS // 4, 7)
    for held in ("sessions held out", "topics held out"):
        assert found["the annotators' own codes"][held]["value"] == 1.0
        assert found["tf-idf of the counsellor's words"][held]["value"] == 1.0
        assert 0.2 < found["AnnoMI's codes alone"][held]["value"] < 0.8
