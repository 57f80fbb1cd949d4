"""Hyper-parameters that were chosen on the folds of the evaluation.

Each row names the constant in the code, so that a test fails when its value changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from models.pages.tables import table


@dataclass(frozen=True)
class Choice:
    """One value: `place` is `module:name` or `module:name.attribute`, `seen` the data it saw."""

    what: str
    place: str
    value: object
    among: str
    seen: str


ALL_FOLDS = "all five folds"
FIRST_FOLD = "fold 0"

CHOICES: tuple[Choice, ...] = (
    Choice(
        "weight of the words alone in tempered levels",
        "models.model.heads:ALONE",
        0.4,
        "0.25, 0.4, 0.5",
        ALL_FOLDS,
    ),
    Choice(
        "which mechanisms are tempered",
        "models.labels:TEMPERED",
        ("emotional_reactions", "explorations"),
        "with or without, each mechanism",
        ALL_FOLDS,
    ),
    Choice(
        "inverse ridge penalty of the outcome heads",
        "models.model.multiple_instance:Fit.strength",
        1e-3,
        "four values",
        ALL_FOLDS,
    ),
    Choice(
        "form of the outcome heads: linear",
        "models.model.multiple_instance:Linear",
        None,
        "linear, one hidden layer of 96",
        ALL_FOLDS,
    ),
    Choice(
        "what satisfaction learns from",
        "models.model.multiple_instance:WHOLE_CHATS_ONLY",
        ("satisfaction",),
        "whole chats alone, or ratings of turns too",
        ALL_FOLDS,
    ),
    Choice(
        "prior probability of a change of level in a session",
        "models.construct.fit:CHANGE",
        0.03,
        "0.01, 0.03, 0.05, 0.1, 0.3",
        FIRST_FOLD,
    ),
    Choice(
        "weight of an exchange without an opportunity",
        "models.construct.fit:FLOOR",
        0.6,
        "0.1, 0.3, 1",
        FIRST_FOLD,
    ),
    Choice(
        "least spread of the prior of a session's level",
        "models.construct.fit:SPREAD",
        0.2,
        "0.07, 0.15, 0.25, 0.3, 0.4",
        FIRST_FOLD,
    ),
    Choice(
        "least spread of answers within a session",
        "models.construct.fit:NOISE",
        0.24,
        "0.15, 0.2, 0.24, 0.3",
        ALL_FOLDS,
    ),
    Choice(
        "how levels are decided: bias taken back, no searched offsets",
        "models.fit.calibrate:Calibration.labels",
        None,
        "with or without offsets searched for macro-F1",
        ALL_FOLDS,
    ),
    Choice("loss", "models.fit.train:Recipe.loss", "weighted", "five losses", FIRST_FOLD),
    Choice(
        "learning rate of the heads",
        "models.fit.train:Recipe.head_rate",
        1e-3,
        "3e-4, 1e-3",
        FIRST_FOLD,
    ),
)

WORDS = """\
These values were compared on the folds that the tables above are evaluated on, so the tables are
slightly optimistic. By how much is unknown: no part of the corpora is unseen by every choice.
Temperatures, biases, offsets, thresholds (rationales, strategies, abstention, alerts), answer
weights and references of the empathy index are not affected: they are fitted for each fold on the
other folds. The numbers of epochs, of passes over a corpus and of frozen layers were limited by
training time, not compared on these folds. Other constants were fixed before the first table, or no
comparison of them is known."""


def markdown() -> str:
    """The choices as a Markdown table."""
    rows = [
        [choice.what, f"`{choice.place}`", shown(choice.value), choice.among, choice.seen]
        for choice in CHOICES
    ]
    header = ["what", "where", "value", "compared", "on"]
    return f"{WORDS}\n\n{table(header, rows, left=5)}"


def shown(value: object) -> str:
    """Format a value for the table.

    >>> shown(("a", "b")), shown(0.4), shown(None)
    ('a, b', '0.4', '–')
    """
    if value is None:
        return "–"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
