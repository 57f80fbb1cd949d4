"""Hyper-parameters that were chosen on the folds that the evaluation also uses.

Each row names the constant in the code, so that a test can say when the code has moved on.
"""

from __future__ import annotations

from dataclasses import dataclass

from models.evaluate.tables import table


@dataclass(frozen=True)
class Choice:
    """One value: `place` is `module:name` or `module:name.attribute`, `seen` what decided it."""

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
        "models.heads:ALONE",
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
        "models.listening:Fit.strength",
        1e-3,
        "four values",
        ALL_FOLDS,
    ),
    Choice(
        "form of the outcome heads: linear",
        "models.listening:Linear",
        None,
        "linear, one hidden layer of 96",
        ALL_FOLDS,
    ),
    Choice(
        "what satisfaction learns from",
        "models.listening:WHOLE_CHATS_ONLY",
        ("satisfaction",),
        "whole chats alone, or ratings of turns too",
        ALL_FOLDS,
    ),
    Choice(
        "inverse penalty of the closing risk",
        "models.session_risk:CLOSING.strength",
        0.03,
        "not recorded",
        ALL_FOLDS,
    ),
    Choice(
        "how levels are decided: bias taken back, no searched offsets",
        "models.calibrate:Calibration.labels",
        None,
        "with or without offsets searched for macro-F1",
        ALL_FOLDS,
    ),
    Choice(
        "passes over EPITOME in an epoch",
        "models.train:REPEATS",
        2,
        "1, 2, 3",
        FIRST_FOLD,
    ),
    Choice("loss", "models.train:Recipe.loss", "weighted", "five losses", FIRST_FOLD),
    Choice(
        "frozen layers",
        "models.train:Recipe.frozen_layers",
        2,
        "0, 2",
        FIRST_FOLD,
    ),
    Choice(
        "learning rate of the heads",
        "models.train:Recipe.head_rate",
        1e-3,
        "3e-4, 1e-3",
        FIRST_FOLD,
    ),
)

WORDS = """\
These values were compared on the very folds that the tables above are measured on, so the tables
are a little too good for them. How much is not known: there is no part of the corpora that no
choice has seen, except that temperatures, biases, offsets, thresholds (rationales, strategies,
abstention, alerts) are fitted for each fold on the other folds. Other constants were fixed before
the first table or are not known to have been compared."""


def markdown() -> str:
    """The choices as a table."""
    rows = [
        [choice.what, f"`{choice.place}`", shown(choice.value), choice.among, choice.seen]
        for choice in CHOICES
    ]
    header = ["what", "where", "value", "compared", "on"]
    return f"{WORDS}\n\n{table(header, rows, left=5)}"


def shown(value: object) -> str:
    """A value for the table.

    >>> shown(("a", "b")), shown(0.4), shown(None)
    ('a, b', '0.4', '–')
    """
    if value is None:
        return "–"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
