"""AnnoMI: can head outputs separate sessions of high and low quality?

Seventeen of 99 sessions are of low quality, and some topics have no others, so whole topics are
held out. Two baselines accompany our outputs: the codes that AnnoMI's annotators gave the same
turns (an upper bound for flawless heads), and the counsellor's words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from models.data.corpora import Conversation
from models.data.rated_sessions import RatedSession
from models.data.split import key_of
from models.evaluate.ratings import Fold
from models.evaluate.resampling import auroc, interval
from models.evaluate.text_baseline import regression_on_words, said_by
from models.labels import CLIENT, COUNSELLOR, HEADS, HEADS_BY_NAME, OUTCOME_HEADS

SPLITS, REPEATS = 5, 10
STRENGTH = 0.03


def session_features(session: RatedSession, number: int, fold: Fold) -> dict[str, float]:
    """Mean probability of every label over the turns of its role, and each side's share of talk."""
    first = int(fold.outcomes.starts[number])
    found: dict[str, float] = {}
    for head in HEADS:
        rows = [first + i for i in session.positions[head.role]]
        if not rows:
            continue
        p = softmax(fold.outcomes.logits["final"][head.name][rows], axis=-1).mean(0)
        for label, value in zip(head.labels, p, strict=True):
            if label != "no":
                found[f"{head.name}.{label}"] = float(value)
    words = {
        role: [len(session.turns[i].text.split()) for i in session.positions[role]]
        for role in (CLIENT, COUNSELLOR)
    }
    total = sum(words[CLIENT]) + sum(words[COUNSELLOR])
    found["talk_share"] = sum(words[COUNSELLOR]) / max(1, total)
    for role, name in ((CLIENT, "client"), (COUNSELLOR, "counsellor")):
        found[f"{name}_log_words"] = float(np.mean(np.log1p(words[role] or [0])))
    return found


def annotated_codes(conversations: Iterable[Conversation]) -> dict[str, dict[str, float]]:
    """Mean votes of AnnoMI's annotators for every code, by session key."""
    found = {}
    for conversation in conversations:
        labels = [turn.labels for turn in conversation.turns]
        found[key_of(conversation)] = {
            f"{name}.{label}": float(value)
            for name in sorted({name for given in labels for name in given})
            for label, value in zip(
                HEADS_BY_NAME[name].labels,
                np.mean([given[name] for given in labels if name in given], axis=0),
                strict=True,
            )
        }
    return found


def topic_of(session: RatedSession) -> str:
    """The first topic named, so that "smoking cessation; …" is held out with similar ones."""
    return (session.topic or "unknown").split(";")[0].strip().lower()


def report(
    sessions: list[RatedSession], folds: list[Fold], codes: Mapping[str, Mapping[str, float]]
) -> dict[str, Any]:
    """AUROC of low quality, with sessions and with topics held out; `codes` by session key."""
    rows, numbers = [], []
    for number, session in enumerate(sessions):
        if session.source != "annomi":
            continue
        own = [fold for fold in folds if not fold.share.trains(session.key)]
        if own:
            rows.append(session_features(session, number, own[0]))
            numbers.append(number)
    names, x = _table(rows)
    low = np.array([sessions[i].quality == "low" for i in numbers])
    topics = np.unique([topic_of(sessions[i]) for i in numbers], return_inverse=True)[1]
    found: dict[str, Any] = {
        "sessions": len(low),
        "low": int(low.sum()),
        "topics": len(np.unique(topics)),
        "target": 0.95,
        "protocol": "logistic regression on mean head outputs of the fold model that left the "
        "session out; mean rank over repeated five-fold splits, of sessions or of whole topics; "
        "the heads that make the outputs learned AnnoMI's codes, never its quality, from other "
        "sessions, some of the same topic",
    }
    if not 1 < low.sum() < len(low) - 1:
        return found
    groups = {
        "all outputs": list(range(len(names))),
        "AnnoMI's codes alone": [
            i
            for i, name in enumerate(names)
            if "." in name and HEADS_BY_NAME[name.partition(".")[0]].corpus == "annomi"
        ],
        "outcome heads alone": [
            i for i, name in enumerate(names) if name.startswith(OUTCOME_HEADS)
        ],
        "without lengths": [i for i, name in enumerate(names) if "." in name],
    }
    tables = {name: x[:, columns] for name, columns in groups.items()}
    tables["the annotators' own codes"] = _table([codes[sessions[i].key] for i in numbers])[1]
    for name, table in tables.items():
        found[name] = _both(_regression, table, low, topics)
    said = np.array([said_by(sessions[i], COUNSELLOR) for i in numbers])
    found["tf-idf of the counsellor's words"] = _both(regression_on_words, said, low, topics)
    return found


def _table(rows: Sequence[Mapping[str, float]]) -> tuple[list[str], NDArray[np.float64]]:
    names = sorted({name for row in rows for name in row})
    return names, np.array([[row.get(name, 0.0) for name in names] for row in rows])


def _regression() -> Pipeline:
    return make_pipeline(
        StandardScaler(), LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=2000)
    )


def _both(
    make: Callable[[], Pipeline],
    x: NDArray[Any],
    low: NDArray[np.bool_],
    topics: NDArray[np.int64],
) -> dict[str, Any]:
    return {
        "sessions held out": _cross_validated(make, x, low, None),
        "topics held out": _cross_validated(make, x, low, topics),
    }


def _cross_validated(
    make: Callable[[], Pipeline],
    x: NDArray[Any],
    low: NDArray[np.bool_],
    topics: NDArray[np.int64] | None,
) -> dict[str, Any]:
    score, each = np.zeros(len(low)), []
    splits = min(SPLITS, int(low.sum()))
    for seed in range(REPEATS):
        if topics is None:
            parts = StratifiedKFold(splits, shuffle=True, random_state=seed).split(x, low)
        else:
            parts = StratifiedGroupKFold(splits, shuffle=True, random_state=seed).split(
                x, low, topics
            )
        log_odds = np.zeros(len(low))
        for train, test in parts:
            if low[train].all() or not low[train].any():
                continue
            log_odds[test] = make().fit(x[train], low[train]).decision_function(x[test])
        each.append(auroc(low, log_odds))
        score += log_odds / REPEATS
    found = interval(np.arange(len(low)), lambda rows: auroc(low[rows], score[rows]))
    return {**found, "mean_of_repeats": float(np.mean(each)), "sd_of_repeats": float(np.std(each))}
