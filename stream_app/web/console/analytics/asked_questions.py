"""The seven questions in the words of the console, and the way between their pages."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """How a question is offered.

    Attributes:
        title: the question in plain words.
        link: the same in a navigation.
        at: label of the date that it takes; empty: it takes none.
        stay: whether it needs a minimum activity of counsellors.
        group: what its groups are.
        measure: the first one that is shown; empty: the first of the result.
        every: whether all measures can be shown together.
    """

    title: str
    link: str
    at: str = ""
    stay: bool = False
    group: str = ""
    measure: str = ""
    every: bool = False


ASKED: Final = {
    "service-levels": AskedQuestion(
        "Did the training help? Are we fast enough?",
        "Did the training help?",
        at="Date of the training or release",
        group="Rule",
        measure="empathy_index",
    ),
    "over-time": AskedQuestion(
        "Do counsellors express more empathy the longer they are here?",
        "Empathy over time",
        stay=True,
        group="Joined in",
        measure="empathy_index",
    ),
    "associations": AskedQuestion(
        "What goes with likes, replies, follows and ratings?", "Likes and ratings"
    ),
    "expressed-perceived": AskedQuestion(
        "Which intents go with being perceived as empathic?",
        "Expressed and perceived",
        group="Intent",
    ),
    "pairs": AskedQuestion(
        "Does it depend on who meets whom?", "Pairs", group="Pair", measure="empathy_index"
    ),
    "drift": AskedQuestion(
        "Can today's scores be compared with earlier ones?",
        "Drift",
        at="Begin of the current period",
        every=True,
    ),
    "fairness": AskedQuestion(
        "Does the model serve everybody equally?", "Fairness", group="Subgroup"
    ),
}
"""Questions by name, in the order of the navigation."""
