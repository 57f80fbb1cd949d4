"""Reasons of alert transitions in words and numbers, without transcript text."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from stream_app.contracts.scores import AlertState
from stream_app.core.rules.rules import SEEN, Rule
from stream_app.core.rules.variable_words import in_words, is_elapsed, is_flag, told

UNKNOWN: Final = "not known"
RULE_GONE: Final = "The rule is no longer in force."
BUNDLE_GONE: Final = "The bundle that scored the session is no longer in force."
_FIELD = re.compile(r"\{([^{}]*)\}")
_CLOSING: Final = {
    "end": "The session ended.",
    "withheld": "The client's consent does not cover the turns that follow.",
    "language": "A turn followed in a language that is not scored.",
    "hand-over": "Another counsellor speaks now.",
}


def reason(
    rule: Rule,
    to: AlertState,
    cause: str,
    value: float | None,
    threshold: float | None,
    shown: Mapping[str, float],
    seen: str | None,
) -> str:
    """The reason of one transition; ``shown``: see ``rules.Rule``, ``seen``: ``empathy_words``.

    The summary of a timed rule describes the time that has passed, so it is the reason only once
    the rule fires.
    """
    if to is AlertState.PENDING and rule.lasts.time:
        return _with_numbers(f"Fires if it lasts for {_span(rule.lasts.time)}", shown)
    if to in (AlertState.PENDING, AlertState.FIRING):
        return _filled(rule, value, threshold, shown, seen)
    if cause in _CLOSING:
        return _CLOSING[cause]
    end = "The condition did not last" if to is AlertState.INACTIVE else "Cleared"
    return _with_numbers(end, shown)


def _with_numbers(start: str, shown: Mapping[str, float]) -> str:
    """A sentence with the measured values; flags and elapsed times say nothing here."""
    numbers = "; ".join(
        f"{in_words(name)} {told(name, found)}"
        for name, found in shown.items()
        if not (is_flag(name) or is_elapsed(name))
    )
    return f"{start}: {numbers}." if numbers else f"{start}."


def _span(time: timedelta) -> str:
    """A rule's duration.

    >>> _span(timedelta(seconds=90)), _span(timedelta(minutes=5)), _span(timedelta(hours=2))
    ('90 s', '5 min', '2 h')
    """
    seconds = int(time.total_seconds())
    if seconds % 3600 == 0:
        return f"{seconds // 3600} h"
    return f"{seconds // 60} min" if seconds % 60 == 0 else f"{seconds} s"


def _filled(
    rule: Rule,
    value: float | None,
    threshold: float | None,
    shown: Mapping[str, float],
    seen: str | None,
) -> str:
    own = {"value": value, "threshold": threshold}

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if name == SEEN:
            return seen or UNKNOWN
        if name in own:
            found = own[name]
            return UNKNOWN if found is None else f"{found:.2f}"
        return told(name, shown[name]) if name in shown else UNKNOWN

    text = rule.summary.replace("{{", "\0").replace("}}", "\1")
    return _FIELD.sub(fill, text).replace("\0", "{").replace("\1", "}")
