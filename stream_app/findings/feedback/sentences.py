"""Sentences of the feedback. They describe and do not rate: no level is called good or bad."""

from typing import Final

from stream_app.contracts.events import Domain
from stream_app.findings.feedback.judgements import Answer
from stream_app.findings.feedback.phrasings import phrasings

_DESCRIPTIONS: Final = {
    "emotional_reactions": "warmth, concern or compassion",
    "interpretations": "understanding of what the client feels or goes through",
    "explorations": "interest in what the client had not said yet",
}
_CALLED: Final = "What the client had just said may have called for an emotional answer"
_PASSED_OVER: Final = {
    Answer.CLOSED_QUESTION: f"{_CALLED}; this line asks a closed question.",
    Answer.INPUT: f"{_CALLED}; this line informs or advises.",
    Answer.OTHER: f"{_CALLED}; the model doubts that this line is one.",
}
_TRY: Final = (
    "Something to try: first say in your own words what you have understood, and let the client "
    "correct you."
)
ERASED: Final = "The text of some turns has been erased, so their words are not quoted."
NO_ANSWERS: Final = (
    "The model of these turns does not judge whether an answer fits what the client said, so no "
    "strength or suggestion is given."
)
NO_STRENGTH: Final = (
    "The model is not sure enough of any line to quote it as a strength. It reads only words and "
    "may have missed what was there."
)
NO_SUGGESTION: Final = "Nothing stands out as a suggestion."


def found(mechanism: str, present: int) -> str:
    """Say in how many turns a mechanism was found; empty if in none."""
    return f"In {_turns(present)} the model found {_DESCRIPTIONS[mechanism]}." if present else ""


def missing(mechanism: str, absent: int) -> str:
    """How many answers to an emotional message lack a mechanism; empty if there are none."""
    if not absent:
        return ""
    what = _DESCRIPTIONS[mechanism]
    return f"In {_turns(absent)} after an emotional message, the model did not find {what}."


def typical(mechanism: str, domain: Domain | None) -> str:
    """Two examples of the mechanism."""
    first, second, *_ = phrasings(mechanism, domain)
    return f"It typically sounds like “{first}” or “{second}”"


def strength(mechanism: str, present: int) -> str:
    """The mechanism that was found most often, in the quoted turn and others."""
    others = present - 1
    where = f" here and in {others} other turn{'s' if others > 1 else ''}" if others else " here"
    return f"There was {_DESCRIPTIONS[mechanism]}{where}."


def suggestion(how: Answer) -> str:
    """The suggestion for an answer that passes over what the client said."""
    return f"{_PASSED_OVER[how]} {_TRY}"


def too_few(fewest: int) -> str:
    """Why no strength and no suggestion is given."""
    return f"Fewer than {fewest} turns could be analysed, so no strength or suggestion is given."


def late(count: int) -> str:
    """Number of late turns, which are left out."""
    return f"{_turns(count).capitalize()} that arrived late {_was(count)} left out."


def withheld(count: int) -> str:
    """Number of turns without consent, which are not analysed."""
    return f"{_turns(count).capitalize()} without the client's consent {_was(count)} not analysed."


def _turns(count: int) -> str:
    return "1 turn" if count == 1 else f"{count} turns"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
