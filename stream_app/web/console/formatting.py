"""How the console says what the wire abbreviates."""

from typing import Final

from stream_app.contracts.scores import MECHANISMS
from stream_app.core.heads import badge_of, title_of
from stream_app.core.perceived import Validity

_MEASURES: Final = {
    "reflection_to_question": "Reflections to questions",
    "complex_reflection_share": "Complex reflections",
    "open_question_share": "Open questions",
}
BADGES: Final = {name: badge_of(name) for name in MECHANISMS}
SHORT_PSEUDONYM: Final = 8


def plain(name: str) -> str:
    """A head, measure or rule in words, by its name alone.

    >>> plain("reflection_to_question"), plain("talk_type")
    ('Reflections to questions', 'talk')
    """
    return _MEASURES.get(name) or title_of(name)


def pseudonym(speaker: str) -> str:
    """As much of a pseudonym as tells the people of one team apart."""
    return speaker[:SHORT_PSEUDONYM]


def number(value: float | None) -> str:
    """Two decimals; a dash where there is none.

    >>> number(0.338), number(None)
    ('0.34', '–')
    """
    return "–" if value is None else f"{value:.2f}"


def validity(found: Validity) -> str:
    """A validity coefficient with its interval and what it was measured on.

    >>> validity(Validity("ESConv empathy", "the seeker's rating", 0.17, 0.107, 0.234, 851, 851))
    "r = 0.17 (0.11 to 0.23) with the seeker's rating: ESConv empathy, 851 ratings of 851 sessions"
    """
    return (
        f"r = {number(found.r)} ({number(found.low)} to {number(found.high)}) with {found.words}: "
        f"{found.rating}, {found.n} ratings of {found.sessions} sessions"
    )


def count(value: float | None) -> str:
    """One decimal, as of an expected number; a dash where there is none.

    >>> count(6.13), count(None)
    ('6.1', '–')
    """
    return "–" if value is None else f"{value:.1f}"


def measured(value: float | None, name: str) -> str:
    """A measure of the MITI: shares in per cent, ratios to one.

    >>> measured(0.4, "open_question_share"), measured(1.25, "reflection_to_question")
    ('40 %', '1.25 : 1')
    >>> measured(None, "open_question_share")
    '–'
    """
    if value is None:
        return "–"
    if name.endswith("_share"):
        return f"{100 * value:.0f} %"
    return f"{value:.2f}".rstrip("0").rstrip(".") + " : 1"


def duration(seconds: float) -> str:
    """The largest unit that says it.

    >>> duration(42), duration(250), duration(4000), duration(7200), duration(200_000)
    ('42 s', '4 min', '1 h 6 min', '2 h', '2 d')
    """
    seconds = max(0, int(seconds))
    minutes, hours = seconds // 60, seconds // 3600
    if seconds < 60:
        return f"{seconds} s"
    if minutes < 60:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{hours // 24} d"
