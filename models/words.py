"""The usual yardstick: a regression on the words alone, tf-idf of single words and pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from models.data.listeners import HeardSession
from models.labels import CLIENT, COUNSELLOR
from models.session_risk import MOMENTS, Series, auroc_at

STRENGTH = 10.0
"""The inverse of the ridge penalty."""


def regression_on_words() -> Pipeline:
    """From texts to a class, both classes weighing the same."""
    return make_pipeline(
        TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2)),
        LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=2000),
    )


def said_by(session: HeardSession, role: int, turns: int | None = None) -> str:
    """What one side said up to a number of counsellor turns (None: all of it)."""
    spoken = session.positions[COUNSELLOR]
    end = len(session.turns) if turns is None or turns > len(spoken) else spoken[turns - 1] + 1
    return " ".join(session.turns[i].text for i in session.positions[role] if i < end)


def risk_by_words(
    sessions: list[HeardSession], low: Mapping[int, bool], own: Mapping[int, int]
) -> dict[str, Any]:
    """AUROC of a low session by what each side has said, on the folds of the risk.

    `low` says which sessions count, `own` which fold leaves a session out.
    """
    numbers = sorted(low)
    fold = np.array([own[i] for i in numbers])
    truth = np.array([low[i] for i in numbers])
    found: dict[str, Any] = {}
    for role, name in ((CLIENT, "client"), (COUNSELLOR, "counsellor")):
        by_moment = found[f"tf-idf of the {name}'s words, without the model"] = {}
        for moment, turns in MOMENTS.items():
            texts = np.array([said_by(sessions[i], role, turns) for i in numbers])
            score = np.zeros(len(numbers))
            for k in np.unique(fold):
                learned = regression_on_words().fit(texts[fold != k], truth[fold != k])
                score[fold == k] = learned.decision_function(texts[fold == k])
            series = [
                Series(i, int(k), bool(y), np.array([value]), float(value))
                for i, k, y, value in zip(numbers, fold, truth, score, strict=True)
            ]
            by_moment[moment] = auroc_at(series, None)["pooled"]
    return found
