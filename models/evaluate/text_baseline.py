"""Text baseline: a regression on tf-idf of single words and word pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from models.data.rated_sessions import RatedSession
from models.labels import COUNSELLOR

STRENGTH = 10.0
"""Inverse of the ridge penalty."""


def regression_on_words() -> Pipeline:
    """A pipeline from texts to a class, with balanced class weights."""
    return make_pipeline(
        TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2)),
        LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=2000),
    )


def said_by(session: RatedSession, role: int, turns: int | None = None) -> str:
    """Text of one side up to a number of counsellor turns (None: all of it)."""
    spoken = session.positions[COUNSELLOR]
    end = len(session.turns) if turns is None or turns > len(spoken) else spoken[turns - 1] + 1
    return " ".join(session.turns[i].text for i in session.positions[role] if i < end)


def cross_fitted_words(
    texts: NDArray[np.str_], truth: NDArray[np.bool_], fold: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """Log-odds [texts] from the words, each by a regression on the other folds.

    None if a fold leaves only one class.
    """
    score = np.zeros(len(texts))
    for k in np.unique(fold):
        rest = fold != k
        if not 0 < truth[rest].sum() < rest.sum():
            return None
        learned = regression_on_words().fit(texts[rest], truth[rest])
        score[~rest] = learned.decision_function(texts[~rest])
    return score
