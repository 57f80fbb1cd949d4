"""The sentences of the feedback. They describe and never rate: no level is called good or bad."""

from typing import Final

from stream_app.contracts.events import Domain

_WHAT: Final = {
    "emotional_reactions": "warmth, concern or compassion of your own",
    "interpretations": "your own words for what the client feels or goes through",
    "explorations": "an opening towards what the client has not said yet",
}
_HOW: Final = {
    "emotional_reactions": "say what it stirs in you, before anything else",
    "interpretations": "say back what you have understood, feeling first, and let them correct it",
    "explorations": "ask about one thing that they touched on, and leave the answer open",
}
_FULLER: Final = {
    "emotional_reactions": "name the feeling: a sentence about what moves you says more than "
    "a general kind word",
    "explorations": "ask about the very thing that they named: a particular question says more "
    "than a general one",
}
_TYPICAL: Final = {
    "emotional_reactions": (
        "It makes me sad to hear how alone you were with this.",
        "I am really glad that you are telling me.",
    ),
    "interpretations": (
        "It sounds as if every evening has become a test for you.",
        "So you were relieved and angry at the same time.",
    ),
    "explorations": (
        "What was that hour like, before you wrote to us?",
        "You said “again”: what happened the other time?",
    ),
}
_TYPICAL_SERVICE: Final = {
    "emotional_reactions": (
        "I am sorry that you stayed at home all morning for nothing.",
        "I would be worried in your place, too.",
    ),
    "interpretations": (
        "So what hurts is not the price, it is that nobody called you back.",
        "You had planned the whole day around this.",
    ),
    "explorations": (
        "What would help you most today?",
        "How did you find out that it had gone wrong?",
    ),
}
ERASED: Final = "The text of some turns has been erased, so their words are not quoted."
NO_STRENGTH: Final = (
    "None of the three mechanisms was heard in the turns that were judged; the model listens to "
    "words only and may have missed what was there."
)
NO_SUGGESTION: Final = "Nothing stands out that would be a suggestion."


def found(mechanism: str, present: int, strong: int | None, judged: int) -> str:
    """What was there; ``strong`` is None where the levels above 0 are not told apart."""
    what = _WHAT[mechanism]
    if present == 0:
        return f"In {_turns(judged)} that {_was(judged)} judged, the model did not hear {what}."
    extent = ""
    if strong == present:
        extent = ", each time in specific words" if present > 1 else ", in specific words"
    elif strong:
        extent = f", in {strong} of them in specific words"
    return f"In {present} of {_turns(judged)} that {_was(judged)} judged there was {what}{extent}."


def missing(absent: int, present: int, strong: int | None) -> str:
    """What is missing, empty if nothing is; ``strong`` as for ``found``."""
    sentences = []
    if present and absent:
        sentences.append(f"In {_turns(absent)} it was not heard.")
    if strong is not None and present - strong > strong:
        sentences.append("Where it was heard, it was mostly brief or general.")
    return " ".join(sentences)


def typical(mechanism: str, domain: Domain | None) -> str:
    """How it typically sounds."""
    first, second = _examples(mechanism, domain)
    return f"It typically sounds like “{first}” or “{second}”"


def strength(mechanism: str, present: int, judged: int) -> str:
    """The strength."""
    return f"What came through most, in {present} of {_turns(judged)}: {_WHAT[mechanism]}."


def missing_suggestion(mechanism: str, absent: int, judged: int, domain: Domain | None) -> str:
    """The suggestion where a mechanism was mostly absent."""
    return (
        f"In {absent} of {_turns(judged)} the model did not hear {_WHAT[mechanism]}. "
        f"Something to try: {_HOW[mechanism]}, for example “{_examples(mechanism, domain)[0]}”"
    )


def fuller_suggestion(mechanism: str, domain: Domain | None) -> str:
    """The suggestion where a mechanism was there, in general words."""
    return (
        f"There was {_WHAT[mechanism]}, mostly brief or general. "
        f"Something to try: {_FULLER[mechanism]}, for example "
        f"“{_examples(mechanism, domain)[1]}”"
    )


def too_few(fewest: int) -> str:
    """Why neither is named."""
    return f"Fewer than {fewest} turns could be judged, so no strength and no suggestion is named."


def late(count: int) -> str:
    """Late turns are left out."""
    return f"{_turns(count).capitalize()} that arrived late {_was(count)} left out."


def withheld(count: int) -> str:
    """Turns that nobody may look at."""
    return f"{_turns(count).capitalize()} without the client's consent {_was(count)} not looked at."


def _examples(mechanism: str, domain: Domain | None) -> tuple[str, str]:
    examples = _TYPICAL_SERVICE if domain is Domain.CUSTOMER_SERVICE else _TYPICAL
    return examples[mechanism]


def _turns(count: int) -> str:
    return "1 turn" if count == 1 else f"{count} turns"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
