"""Rule files for tests."""

import json

from stream_app.core.rules.rule_file import parse
from stream_app.core.rules.rules import RuleSet
from stream_app.settings import DEFAULT_RULES

HEAD = "version: 1\nrules:\n"


def rule_text(name: str = "low-empathy-risk", **fields: object) -> str:
    """One rule as YAML; fields that are None are omitted."""
    chosen = {"summary": "Something is up.", "severity": "warning", **fields}
    lines = [f"{k.rstrip('_')}: {_yaml(k, v)}" for k, v in chosen.items() if v is not None]
    return f"  - name: {name}\n" + "".join(f"    {line}\n" for line in lines)


def _yaml(key: str, value: object) -> str:
    """Strings in quotes; lists and mappings unchanged."""
    is_text = isinstance(value, str) and key not in ("labels", "domains", "teams", "channels")
    return json.dumps(value) if is_text else str(value)


def rules_of(*texts: str) -> RuleSet:
    """A parsed rule file with these rules of `rule_text`."""
    return parse((HEAD + "".join(texts)).encode(), "rules.yaml")


def risk_text(enter: float, leave: float, turns: int = 2, cooldown: int = 5) -> str:
    """The shipped risk rule with other thresholds, without its evidence."""
    return rule_text(
        summary="The risk is {low_empathy_risk}.",
        when=f"low_empathy_risk >= {float(enter)}",
        clear=f"low_empathy_risk < {float(leave)}",
        for_=f"{turns} turns",
        cooldown=f"{cooldown} turns",
        value="low_empathy_risk",
        threshold=float(enter),
    )


def risk_rules(enter: float, leave: float, turns: int = 2, cooldown: int = 5) -> RuleSet:
    """A parsed rule file with only the `risk_text` rule."""
    return rules_of(risk_text(enter, leave, turns, cooldown))


EAGER_TEXT = risk_text(0.0, 0.0, 1)
EAGER = rules_of(EAGER_TEXT)
"""A rule that fires at any risk."""

SHIPPED = parse(DEFAULT_RULES.read_bytes(), "rules.yaml")
ALL = parse(
    DEFAULT_RULES.read_bytes()
    + (
        risk_text(0.5, 0.4).replace("low-empathy-risk", "low-bar")
        + rule_text(
            "short-silence",
            summary="The client waits since {waiting_seconds} s.",
            when="waiting && waiting_distress >= 0.4",
            for_="7s",
            cooldown="20s",
            value="waiting_distress",
        )
        + rule_text(
            "brief-crisis",
            when="crisis_language >= 0.5",
            clear="client_turns_since_crisis >= 1",
            for_="0s",
        )
        + rule_text("small-drop", when="empathy.drop > 0.2 || risk_rise > 0.05", for_="1 turn")
        + rule_text(
            "at-once",
            when="client.change > 0.5 && channel == ''",
            for_="0s",
            min_scored_turns=2,
            threshold="has_baseline.channel.risk ? baseline.channel.risk_mean : 0.5",
        )
    ).encode(),
    "all.yaml",
)
"""The shipped rules, and sensitive rules of every kind."""
