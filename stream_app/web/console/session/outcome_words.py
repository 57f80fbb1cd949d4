"""Outcome risks in a sentence, with the interval of what they were worth on held-out sessions."""

from collections.abc import Mapping
from typing import Final

from stream_app.core.measures.heads import in_words
from stream_app.store.sessions.bundle_info import OutcomeMeasure

_WORDS: Final = {
    "chat_failed": "that this chat would be filed as failed",
    "low_satisfaction": "that readers would call this customer dissatisfied",
    "low_mi_quality": "that this would be called poor motivational interviewing",
}
CHANCE: Final = 0.5
"""Share of pairs that a risk without any information orders rightly."""


def outcome_sentences(
    risks: Mapping[str, float], measures: Mapping[str, OutcomeMeasure]
) -> list[str]:
    """A sentence for each risk that is better than chance on sessions held out from its fit.

    >>> measured = {"chat_failed": OutcomeMeasure(0.896, 0.858, 0.929, 795)}
    >>> outcome_sentences({"chat_failed": 0.34}, measured)[0][:76]
    'The model gives a chance of 34 % that this chat would be filed as failed; of'
    >>> outcome_sentences({"chat_failed": 0.34}, {})
    []
    """
    return [
        _sentence(name, risk, measures[name])
        for name, risk in risks.items()
        if name in measures and measures[name].low > CHANCE
    ]


def _sentence(name: str, risk: float, measure: OutcomeMeasure) -> str:
    what = _WORDS.get(name, f"of “{in_words(name)}”")
    return (
        f"The model gives a chance of {_percent(risk)} % {what}; of two sessions that it had not "
        "seen, one of that kind and one not, it gave the first the higher chance in "
        f"{_percent(measure.value)} % of pairs (95 % interval {_percent(measure.low)} to "
        f"{_percent(measure.high)} %, {measure.sessions} sessions)."
    )


def _percent(share: float) -> int:
    return round(100 * share)
