"""Sentences of the feedback. They describe and do not rate: no level is called good or bad."""

from typing import Final

from stream_app.contracts.events import Domain
from stream_app.web.feedback.phrasings import phrasings

_DESCRIPTIONS: Final = {
    "emotional_reactions": "warmth, concern or compassion of your own",
    "interpretations": "your own understanding of what the client feels or goes through",
    "explorations": "interest in what the client has not said yet",
}
_ADVICE: Final = {
    "emotional_reactions": "first say what you feel when you read this",
    "interpretations": "say what you have understood, feelings first, and let them correct you",
    "explorations": "ask an open question about one thing that they mentioned",
}
_SPECIFIC_ADVICE: Final = {
    "emotional_reactions": "name the feeling: a sentence about what moves you says more than "
    "a general kind word",
    "explorations": "ask about exactly what they mentioned: a specific question says more than "
    "a general one",
}
ERASED: Final = "The text of some turns has been erased, so their words are not quoted."
NO_STRENGTH: Final = (
    "The model found none of the three mechanisms in the analysed turns. It reads only words and "
    "may have missed what was there."
)
NO_SUGGESTION: Final = "Nothing stands out as a suggestion."


def found(mechanism: str, present: int, strong: int | None, judged: int) -> str:
    """How often a mechanism was expressed; ``strong`` is None if it is not graded."""
    what = _DESCRIPTIONS[mechanism]
    if present == 0:
        return f"In {_turns(judged)} that {_was(judged)} analysed, the model did not find {what}."
    extent = ""
    if strong == present:
        extent = ", each time in specific words" if present > 1 else ", in specific words"
    elif strong:
        extent = f", in {strong} of them in specific words"
    return (
        f"In {present} of {_turns(judged)} that {_was(judged)} analysed there was {what}{extent}."
    )


def missing(absent: int, present: int, strong: int | None) -> str:
    """What is missing; empty if nothing is. ``strong`` as in ``found``."""
    sentences = []
    if present and absent:
        sentences.append(f"In {_turns(absent)} the model did not find it.")
    if strong is not None and present - strong > strong:
        sentences.append("Where it was present, it was mostly brief or general.")
    return " ".join(sentences)


def typical(mechanism: str, domain: Domain | None) -> str:
    """Two examples of the mechanism."""
    first, second, *_ = phrasings(mechanism, domain)
    return f"It typically sounds like “{first}” or “{second}”"


def strength(mechanism: str, present: int, judged: int) -> str:
    """The mechanism that was expressed most often."""
    return f"Expressed most often, in {present} of {_turns(judged)}: {_DESCRIPTIONS[mechanism]}."


def missing_suggestion(mechanism: str, absent: int, judged: int, domain: Domain | None) -> str:
    """The suggestion for a mechanism that was mostly absent."""
    return (
        f"In {absent} of {_turns(judged)} the model did not find {_DESCRIPTIONS[mechanism]}. "
        f"Something to try: {_ADVICE[mechanism]}, for example “{phrasings(mechanism, domain)[0]}”"
    )


def fuller_suggestion(mechanism: str, domain: Domain | None) -> str:
    """The suggestion for a mechanism that was mostly expressed in general words."""
    return (
        f"There was {_DESCRIPTIONS[mechanism]}, mostly brief or general. "
        f"Something to try: {_SPECIFIC_ADVICE[mechanism]}, for example "
        f"“{phrasings(mechanism, domain)[1]}”"
    )


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
