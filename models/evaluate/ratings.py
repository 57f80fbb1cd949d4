"""Correlate outcome heads with listeners' ratings: Spearman on conversations of unseen folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from models.data.rated_sessions import RatedSession
from models.evaluate.resampling import interval, spearman, spread
from models.fit.perceived import TARGETS, Outcomes, Share
from models.fit.turn_features import VIEWS, View
from models.labels import HEADS_BY_NAME, OUTCOME_HEADS
from models.model.multiple_instance import POOLINGS, Bag, Pooling, bags_of, learns_from, pool


@dataclass(frozen=True)
class Fold:
    """A fold model's outputs and the conversations of its training part."""

    number: int
    share: Share
    outcomes: Outcomes


def listener_report(sessions: list[RatedSession], folds: list[Fold]) -> dict[str, Any]:
    """For each head and each rating: Spearman over the folds, and pooled with its interval.

    `own` tells whether the head learns from this rating in the other folds; otherwise the
    correlation is a transfer.
    """
    every = bags_of(sessions, folds[0].outcomes.starts)
    learned = {(bag.head, bag.kind) for bag in every if learns_from(bag)}
    ratings = _ratings(every)
    rows = []
    for head in OUTCOME_HEADS:
        for kind, bags in ratings.items():
            if _role_of(bags[0], sessions, folds[0]) != HEADS_BY_NAME[head].role:
                continue
            if kind.endswith(":reply") and head != "engagement":
                continue
            for view in VIEWS:
                row = _row(head, bags, view, "mean_log_odds", sessions, folds)
                own = any((head, bag.kind) in learned for bag in bags)
                rows.append({"head": head, "rating": kind, "own": own, **row})
    return {
        "learned_from": TARGETS,
        "protocol": "each conversation is scored by the model of the fold that left it out, both "
        "stages; a bag is the turns that a rating covers, its output the mean log-odds of "
        "theirs; intervals resample conversations",
        "views": {
            "provisional": "preceding turns only, none from which the rating could be inferred",
            "final": "also the three following turns",
        },
        "folds": [fold.number for fold in folds],
        "correlations": rows,
        "poolings": [
            {
                "head": head,
                "rating": kind,
                "pooling": pooling,
                **_row(head, ratings[kind], "final", pooling, sessions, folds),
            }
            for head, kind in (
                ("sympathy", "esconv+failed:empathy"),
                ("understanding", "esconv+failed:relevance"),
                ("helpfulness", "esconv+failed:fall"),
            )
            for pooling in POOLINGS
            if kind in ratings
        ],
    }


def _ratings(bags: list[Bag]) -> dict[str, list[Bag]]:
    """Bags by rating, with ESConv's ordinary and failed chats also pooled."""
    found: dict[str, list[Bag]] = {}
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for bag in bags:
        if bag.kind.endswith(":failed"):
            continue
        key = f"{bag.kind} ({'client' if bag.head == 'satisfaction' else 'counsellor'} turns)"
        key = bag.kind if bag.head != "satisfaction" else key
        if (key, bag.rows) in seen:
            continue
        seen.add((key, bag.rows))
        found.setdefault(key, []).append(bag)
        source, _, what = key.partition(":")
        if source in ("esconv", "esconv_failed") and not what.startswith("feedback"):
            found.setdefault(f"esconv+failed:{what}", []).append(bag)
    return found


def _role_of(bag: Bag, sessions: list[RatedSession], fold: Fold) -> int:
    first = int(fold.outcomes.starts[bag.session])
    return sessions[bag.session].turns[bag.rows[0] - first].role


def _row(
    head: str,
    bags: list[Bag],
    view: View,
    pooling: Pooling,
    sessions: list[RatedSession],
    folds: list[Fold],
) -> dict[str, Any]:
    scores, ratings, groups, by_fold = [], [], [], []
    for fold in folds:
        own = [bag for bag in bags if not fold.share.trains(sessions[bag.session].key)]
        if not own:
            continue
        logits = fold.outcomes.logits[view][head]
        score = bag_scores(logits[:, 1] - logits[:, 0], own, pooling)
        rating = np.array([bag.rating for bag in own])
        by_fold.append(spearman(score, rating) if len(own) > 2 else float("nan"))
        scores.append(score)
        ratings.append(rating)
        groups.append(np.array([bag.session for bag in own]))
    score, rating, group = map(np.concatenate, (scores, ratings, groups))
    found = interval(group, lambda rows: spearman(score[rows], rating[rows]))
    return {
        "view": view,
        "n": len(score),
        "sessions": len(np.unique(group)),
        "spearman": found,
        **spread(by_fold),
    }


def bag_scores(
    log_odds: NDArray[np.float32], bags: list[Bag], pooling: Pooling
) -> NDArray[np.float64]:
    """Pooled log-odds [bags] from those of all turns."""
    rows = np.concatenate([np.array(bag.rows) for bag in bags])
    owner = np.repeat(np.arange(len(bags)), [len(bag.rows) for bag in bags])
    values = torch.from_numpy(log_odds[rows].astype(np.float32))
    return pool(values, torch.from_numpy(owner), len(bags), pooling).double().numpy()
