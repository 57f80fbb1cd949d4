"""Prompting as a classifier: accuracy and macro-F1 against the experts' labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.metrics import accuracy_score, f1_score

from research.second_coder.codebook import Variable
from research.second_coder.coding import Result

NO_ANSWER = ""


def figures(results: Sequence[Result], variables: Sequence[Variable]) -> dict[str, dict[str, Any]]:
    """By variable: `items` with an expert's label, accuracy and macro-F1 in [0, 1].

    An item without a valid answer is wrong for its class. Macro-F1 is the mean over the classes
    that occur among labels and answers, as in the evaluation of the other methods.
    """
    found: dict[str, dict[str, Any]] = {}
    for variable in variables:
        own = [each for each in results if each.variable == variable.name]
        pairs = [
            (expert, each.answer.label if each.answer is not None else NO_ANSWER)
            for each in own
            if (expert := each.item.experts.get(variable.name)) is not None
        ]
        if not pairs:
            continue
        gold, given = zip(*pairs, strict=True)
        classes = sorted({*gold, *given} - {NO_ANSWER})
        found[variable.name] = {
            "items": len(pairs),
            "accuracy": float(accuracy_score(gold, given)),
            "macro_f1": float(
                f1_score(gold, given, labels=classes, average="macro", zero_division=0.0)
            ),
        }
    return found
