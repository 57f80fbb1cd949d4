"""Reasons of alert transitions in words and numbers, without transcript text."""

import re
from collections.abc import Mapping
from typing import Final

from stream_app.contracts.scores import AlertState
from stream_app.core.rules import SEEN, Rule
from stream_app.core.variable_words import in_words, told

UNKNOWN: Final = "not known"
RULE_GONE: Final = "The rule is no longer in force."
_FIELD = re.compile(r"\{([^{}]*)\}")
_CLOSING: Final = {
    "end": "The session ended.",
    "withheld": "The session's consent no longer covers what comes.",
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
    """The reason of one transition; ``shown``: see ``rules.Rule``, ``seen``: ``empathy_words``."""
    if to in (AlertState.PENDING, AlertState.FIRING):
        return _filled(rule, value, threshold, shown, seen)
    if cause in _CLOSING:
        return _CLOSING[cause]
    numbers = "; ".join(f"{in_words(name)} {told(name, found)}" for name, found in shown.items())
    end = "The condition did not last" if to is AlertState.INACTIVE else "Cleared"
    return f"{end}: {numbers}." if numbers else f"{end}."


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
