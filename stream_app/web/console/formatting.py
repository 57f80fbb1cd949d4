"""Formats values and names for people."""

from typing import Final

from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.catalogue import titles
from stream_app.core.measures.heads import badge_of, title_of
from stream_app.core.measures.perceived import Validity

_MEASURES: Final = {
    **titles(),
    "first_answer": "Time to the first answer",
    "looked_at": "Sessions that somebody read",
    "acknowledge_minutes": "Time to acknowledge an alert",
    "acknowledged": "Acknowledged alerts",
    "precision": "Alerts judged right",
}
BADGES: Final = {name: badge_of(name) for name in MECHANISMS}


def plain(name: str) -> str:
    """The display name of a head, measure or rule.

    >>> plain("reflection_to_question"), plain("talk_type")
    ('Reflections to questions', 'talk')
    """
    return _MEASURES.get(name) or title_of(name)


def number(value: float | None) -> str:
    """Format with two decimals; a dash for None.

    >>> number(0.338), number(None)
    ('0.34', '–')
    """
    return "–" if value is None else f"{value:.2f}"


def validity(found: Validity) -> str:
    """Format a validity coefficient with its interval and the ratings it was measured on.

    >>> validity(Validity("ESConv empathy", "the seeker's rating", 0.17, 0.107, 0.234, 851, 851))
    "r = 0.17 (0.11 to 0.23) with the seeker's rating: ESConv empathy, 851 ratings of 851 sessions"
    """
    return (
        f"r = {number(found.r)} ({number(found.low)} to {number(found.high)}) with {found.words}: "
        f"{found.rating}, {found.n} ratings of {found.sessions} sessions"
    )


def count(value: float | None) -> str:
    """Format an expected count with one decimal; a dash for None.

    >>> count(6.13), count(None)
    ('6.1', '–')
    """
    return "–" if value is None else f"{value:.1f}"


def counted(number: int, noun: str) -> str:
    """A number with what it counts.

    >>> counted(1, "day"), counted(0, "day"), counted(1204, "turn")
    ('1 day', '0 days', '1,204 turns')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def measured(value: float | None, name: str) -> str:
    """Format a MITI measure: shares in per cent, ratios as ``x : 1``.

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


def measure_value(value: float) -> str:
    """Format a mean with three decimals; counts without.

    >>> measure_value(0.31249), measure_value(1204.0)
    ('0.312', '1204')
    """
    return f"{value:.0f}" if value == round(value) and value >= 10 else f"{value:.3f}"


def sentence(text: str) -> str:
    """Make the first letter a capital; the rest stays as it is.

    >>> sentence("talk share")
    'Talk share'
    """
    return text[:1].upper() + text[1:]


def duration(seconds: float) -> str:
    """Format a duration in its largest units.

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
