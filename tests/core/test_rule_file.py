"""Rule files: their fields, and errors with line numbers."""

import json
import textwrap
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.contracts.scores import Severity
from stream_app.core.measures.watch import Facts
from stream_app.core.rules.rule_file import RuleFileError, parse
from stream_app.core.rules.rules import Duration
from stream_app.core.rules.yaml_file import digest_of
from stream_app.settings import DEFAULT_RULES
from tests.rule_texts import HEAD, rule_text, rules_of

WHOLE = """\
    version: 1
    rules:
      - name: slow-answers
        summary: The client has waited for {waiting_seconds} s at {risk}.
        severity: critical
        when: |
          waiting
            && waiting_seconds > 30.0
        clear: "!waiting"
        for: 5m
        cooldown: 3 turns
        min_scored_turns: 4
        labels: {team_queue: night, area: "7"}
        protocol: |
          1. Open the session.
          2. Call {the} duty manager.
        value: waiting_seconds
        threshold: 30.0
        domains: [counselling, peer-support]
        teams: [west]
"""


def faults(text: str) -> list[str]:
    with pytest.raises(RuleFileError) as refused:
        parse(textwrap.dedent(text).encode(), "r.yaml")
    assert str(refused.value) == "\n".join(refused.value.faults)
    return refused.value.faults


def faults_of(**fields: object) -> list[str]:
    """The errors of one rule whose fields start at line 3."""
    chosen = {"when": "risk > 0.5", **fields}
    with pytest.raises(RuleFileError) as refused:
        rules_of(rule_text("a", **chosen))
    return refused.value.faults


def test_every_field_is_read() -> None:
    [rule] = parse(textwrap.dedent(WHOLE).encode(), "r.yaml").rules
    assert (rule.name, rule.severity) == ("slow-answers", Severity.CRITICAL)
    assert (rule.lasts, rule.cooldown) == (Duration(time=timedelta(minutes=5)), Duration(turns=3))
    assert rule.min_scored_turns == 4
    assert rule.labels == {"area": "7", "team_queue": "night"}
    assert rule.protocol == "1. Open the session.\n2. Call {the} duty manager."
    assert rule.shown == ("waiting", "waiting_seconds", "risk")
    assert rule.applies_to.covers(Facts("counselling", None, "west"))
    assert not rule.applies_to.covers(Facts("counselling", None, None))


def test_omitted_fields_have_defaults() -> None:
    [rule] = rules_of(rule_text(when="risk > 0.5")).rules
    assert (rule.lasts, rule.cooldown, rule.clear) == (Duration(turns=1), Duration(turns=0), None)
    assert (rule.value, rule.threshold, rule.labels, rule.min_scored_turns) == (None, None, {}, 0)
    assert rule.protocol is None
    assert rule.applies_to.covers(Facts())


def test_the_shipped_rules_are_valid() -> None:
    raw = DEFAULT_RULES.read_bytes()
    found = parse(raw, "rules.yaml")
    assert found.names == {
        *("low-empathy", "sudden-drop", "silence-after-distress", "crisis-language"),
    }
    assert found.digest == digest_of(raw)
    assert len(found.digest) == 16


def test_all_errors_are_reported_at_once_in_line_order() -> None:
    found = faults("""\
        version: 1
        rules:
          - name: A b
            sumary: x
            summary: "{riks}"
            severity: bad
            when: riks >= 0.5
            for: 2 minutes
          - name: ok
            summary: x
            severity: info
            when: |
              risk >= 0.2 &&
                turns > 3.0
            domains: [counseling]
            labels: {a: 1}
          - 3
    """)
    assert [fault.split(": ", 1)[0] for fault in found] == [
        *(f"r.yaml:{line}" for line in (3, 4, 5, 6, 7, 8, 14, 15, 16, 17))
    ]
    assert "unknown key `sumary`" in found[1]
    assert "is `low_empathy_risk` meant?" in found[4]
    assert "column 9" in found[6]
    assert "a number is written 3.0, a count 3" in found[6]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 1\nrules: [\n", "r.yaml:3: not YAML"),
        ("version: 1\nversion: 1\nrules: []", "r.yaml:2: not YAML: found duplicate key"),
        ("- a", "r.yaml:1: a file of rules begins with `version: 1`"),
        ("version: 2\nrules: []", "r.yaml:1: `version: 1` is required"),
        ("rules: []", "r.yaml:1: `version: 1` is required"),
        ("version: 1\n\nrules: {}", "r.yaml:3: `rules` is a list"),
        ("version: 1\nrules: []\nmore: 1", "r.yaml:3: unknown key `more`"),
        (
            "version: 1\nrules: !!python/object/apply:os.system ['x']",
            "r.yaml:2: a rule must be a map",
        ),
        ("", "r.yaml:1: a file of rules begins"),
    ],
)
def test_an_invalid_file_is_reported_with_its_line(text: str, message: str) -> None:
    [fault] = faults(text)
    assert fault.startswith(message)


def test_invalid_text_is_reported_with_its_line() -> None:
    with pytest.raises(RuleFileError, match=r"r\.yaml:2: not valid UTF-8"):
        parse(b"version: 1\n\xff", "r.yaml")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"when": "risk"}, "a condition must be true or false; this gives double"),
        ({"when": "risk > 1"}, "a number is written 3.0, a count 3"),
        ({"when": "risk > 'a'"}, "found no matching overload"),
        ({"when": "bundle.entre > 0.1"}, "no variable or function `bundle.entre`"),
        ({"when": "system('x')"}, "no variable or function `system`"),
        ({"when": "risk >"}, "Syntax error"),
        ({"when": "''"}, "a condition must be true or false; this gives string"),
        ({"when": " "}, "`when` must be an expression"),
        ({"value": "domain"}, "a number is required; this gives string"),
        ({"threshold": "risk > 0.1"}, "a number is required; this gives bool"),
        ({"for_": "0 turns"}, "at least `1 turn`"),
        ({"for_": "25h"}, "a time up to 24h"),
        ({"cooldown": "soon"}, "`cooldown` must be counsellor turns"),
        ({"min_scored_turns": -1}, "`min_scored_turns` must be a whole number"),
        ({"min_scored_turns": "true"}, "`min_scored_turns` must be a whole number"),
        ({"severity": "high"}, "`severity` must be info, warning or critical"),
        ({"teams": "west"}, "`teams` must be a list of names"),
        ({"domains": "[therapy]"}, "`therapy` is not one of counselling"),
        ({"labels": "[a]"}, "`labels` must be a mapping"),
        ({"labels": '{"a-b": "x"}'}, "the label `a-b`"),
        ({"summary": "It is {risk:.3f}"}, "a placeholder contains only a name"),
        ({"summary": "It is {risk"}, "an unbalanced brace"),
        ({"summary": "Of {team}"}, "`team` is not a number"),
        ({"summary": "x" * 501}, "longer than 500 characters"),
        ({"protocol": "x" * 2001}, "longer than 2000 characters"),
        ({"protocol": " "}, "`protocol` is a text"),
        ({"protocol": "a\0"}, "`protocol` contains a NUL character"),
        ({"name_": "b"}, "not YAML"),
    ],
)
def test_an_invalid_field_is_reported(fields: dict[str, object], message: str) -> None:
    found = faults_of(**fields)
    assert any(message in fault for fault in found)
    assert all(fault.startswith("rules.yaml:") for fault in found)


def test_duplicate_rule_names_are_refused() -> None:
    with pytest.raises(
        RuleFileError, match=r"rules.yaml:7: the name `a` is already used .* line 3"
    ):
        rules_of(rule_text("a", when="true"), rule_text("a", when="true"))


def told_of(raw: bytes) -> list[str]:
    try:
        parse(raw, "r.yaml")
    except RuleFileError as refused:
        return refused.faults
    return []


@given(st.binary(max_size=200))
def test_any_bytes_give_rules_or_errors(raw: bytes) -> None:
    assert all(fault.startswith("r.yaml:") for fault in told_of(raw))


@given(st.text(alphabet="risk()&|!><=.+-*/?:[]{}'\" 0123abdurnst\n", max_size=60))
def test_any_expression_compiles_or_is_reported(source: str) -> None:
    text = rule_text("a", when="true").replace('"true"', json.dumps(source))
    raw = (HEAD + text).encode()
    assert all(fault.startswith("r.yaml:6: `when`") for fault in told_of(raw))
