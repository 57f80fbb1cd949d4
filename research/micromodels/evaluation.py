"""Figures of the micromodels on the models' folds, beside Table 1 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

import numpy as np

from models.data.corpora import Conversation
from models.evaluate import metrics
from models.labels import RATIONALE_ORDER
from research.micromodels.model import PUBLISHED_THETA, Micromodels, rationale_f1


def evaluate(fitted: Micromodels, test: Sequence[Conversation]) -> dict[str, dict[str, float]]:
    """Figures (0-1) by mechanism on a fold's test part."""
    responses = [fitted.read(pair.turns[-1], fitted.seeds) for pair in test]
    rows = {}
    for head in RATIONALE_ORDER:
        gold = np.array([response.level(head) for response in responses])
        given = fitted.level(head, responses)
        tokens, spans = rationale_f1(responses, head, fitted.thetas[head])
        published_tokens, published_spans = rationale_f1(responses, head, PUBLISHED_THETA)
        marked = rationale_f1(responses, head, fitted.thetas[head], marked_only=True)
        nothing = rationale_f1(responses, head, theta=1.1)
        rows[head] = {
            "responses": len(responses),
            "accuracy": metrics.accuracy(gold, given),
            "macro_f1": metrics.macro_f1(gold, given),
            "theta": fitted.thetas[head],
            "token_f1": tokens,
            "iou_f1": spans,
            "token_f1_gold": marked[0],
            "iou_f1_gold": marked[1],
            "token_f1_at_published_theta": published_tokens,
            "iou_f1_at_published_theta": published_spans,
            "token_f1_without_rationales": nothing[0],
            "iou_f1_without_rationales": nothing[1],
            "majority_accuracy": float(np.bincount(gold).max() / len(gold)),
        }
    return rows


def summary(rows: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Mean and standard deviation over the folds, and the values per fold."""
    result: dict[str, Any] = {}
    for head, folds in rows.items():
        columns = {name: [row[name] for row in folds] for name in folds[0]}
        result[head] = {
            name: {"mean": mean(values), "sd": stdev(values) if len(values) > 1 else 0.0}
            for name, values in columns.items()
        }
        result[head]["folds"] = folds
    return result
