"""Reasons of transitions: what a pending timed rule says before its time has passed."""

import pytest

from stream_app.contracts.scores import AlertState
from stream_app.core.rules.alert_reasons import reason
from stream_app.core.rules.rule_file import parse

RULES = """
version: 1
rules:
  - name: silence
    summary: The client has waited for {waiting_seconds} s (distress {waiting_distress}).
    severity: critical
    when: waiting && waiting_distress >= 0.8
    for: 90s
  - name: low
    summary: Little empathy lately (risk {risk}).
    severity: warning
    when: risk >= 0.5
    for: 2 turns
"""
WAITING = {"waiting": 1.0, "waiting_distress": 0.93, "waiting_seconds": 0.0}


@pytest.mark.parametrize(
    ("rule", "to", "shown", "words"),
    [
        (
            "silence",
            AlertState.PENDING,
            WAITING,
            "Fires if it lasts for 90 s: distress of the waiting client 0.93.",
        ),
        (
            "silence",
            AlertState.FIRING,
            {**WAITING, "waiting_seconds": 90.0},
            "The client has waited for 90 s (distress 0.93).",
        ),
        ("silence", AlertState.INACTIVE, {"waiting": 0.0}, "The condition did not last."),
        ("low", AlertState.PENDING, {"risk": 0.61}, "Little empathy lately (risk 0.61)."),
        ("low", AlertState.RESOLVED, {"risk": 0.2}, "Cleared: low-empathy risk 0.20."),
    ],
)
def test_reason(rule: str, to: AlertState, shown: dict[str, float], words: str) -> None:
    found = {each.name: each for each in parse(RULES.encode(), "rules.yaml").rules}
    assert reason(found[rule], to, "condition", None, None, shown, None) == words
