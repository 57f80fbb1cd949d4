"""docs/rules.md documents every key and variable, and its examples are valid."""

import re
from pathlib import Path

from stream_app.cli.rule_tables import variables
from stream_app.core.measures.catalogue import MEASURES, Use
from stream_app.core.rules.rule_file import parse
from tests.rule_texts import HEAD

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "rules.md").read_text("utf-8")


def test_the_table_of_variables_is_the_catalogue() -> None:
    assert variables() in TEXT, "paste what `rapport rules variables` prints"


def test_the_documented_examples_are_valid() -> None:
    whole, protocol, condition = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    assert parse(whole.encode(), "docs").names == {"long-silence"}
    assert parse((whole + protocol).encode(), "docs").rules[0].protocol.startswith("1. Open")
    head = HEAD + "  - name: a\n    summary: x\n    severity: info\n"
    assert parse((head + condition).encode(), "docs").names == {"a"}


def test_the_documented_error_messages_are_the_real_ones() -> None:
    assert (
        "there is no variable or function `low_empathy_riks`; is `low_empathy_risk` meant?" in TEXT
    )


def test_old_names_of_measures_are_documented() -> None:
    text = (DOCS / "upgrading.md").read_text("utf-8")
    for each in MEASURES:
        in_cards = each.mean_of if Use.SCORECARDS in each.uses else ""
        old = " | ".join(f"`{name}`" if name else "" for name in (each.old_rule, in_cards))
        row = f"| `{each.name}` | {old} |"
        assert (row in text) is bool(each.old_rule or in_cards), row
