"""Prometheus alert rules from the runbook in docs/runbook.md: ``python -m servers.alert_rules``.

Prints the rules file, ``servers/monitoring/rules.yml``, of which the Helm chart has a copy in
``servers/helm/rapport/files``. A row with an alert has in its last column the alert's name,
severity, pending time and expression: ```Name`, warning after 5m: `expression```.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

from msgspec import Struct
from ruamel.yaml import YAML

RUNBOOK: Final = Path(__file__).parents[1] / "docs" / "runbook.md"
HEADING: Final = "## Runbook"
COLUMNS: Final = ["symptom", "cause", "action", "alert"]
_ALERT: Final = re.compile(r"`(\w+)`, (warning|critical) after (\d+[smh]): `(.+)`")
_COLUMN_END: Final = re.compile(r"(?<!\\)\|")
"""Markdown writes a bar inside a cell as ``\\|``."""
_WIDE: Final = 4096
"""Longer than any line, so that none is wrapped."""


class RunbookError(Exception):
    """A row of the runbook has a number of cells or an alert that cannot be read."""


class AlertRule(Struct, frozen=True):
    """``pending``: how long the expression must hold, as Prometheus writes it."""

    name: str
    severity: str
    pending: str
    expression: str
    symptom: str
    cause: str
    action: str


def alert_rules(document: str) -> Iterator[AlertRule]:
    """The alerts of the runbook's table.

    Raises:
        RunbookError: a row does not have the table's columns, or its alert is malformed.
    """
    section = document.partition(f"\n{HEADING}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    if not lines or _cells(lines[0]) != COLUMNS:
        raise RunbookError(f"the runbook needs the columns {', '.join(COLUMNS)}")
    for line in lines[2:]:
        cells = _cells(line)
        if len(cells) != len(COLUMNS):
            raise RunbookError(f"a row does not have {len(COLUMNS)} cells: {line}")
        symptom, cause, action, alert = cells
        if not alert:
            continue
        found = _ALERT.fullmatch(alert)
        if found is None:
            raise RunbookError(f"this alert cannot be read: {alert}")
        name, severity, pending, expression = found.groups()
        yield AlertRule(name, severity, pending, expression, symptom, cause, action)


def write(rules: Iterator[AlertRule], out: TextIO) -> None:
    """Write a rules file with one group."""
    yaml = YAML()
    yaml.width = _WIDE
    yaml.indent(mapping=2, sequence=4, offset=2)
    out.write("# Generated from the runbook in docs/runbook.md by python -m servers.alert_rules\n")
    yaml.dump({"groups": [{"name": "rapport", "rules": [_entry(rule) for rule in rules]}]}, out)


def _cells(line: str) -> list[str]:
    cells = _COLUMN_END.split(line.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip().replace(r"\|", "|") for cell in cells]


def _entry(rule: AlertRule) -> dict[str, object]:
    return {
        "alert": rule.name,
        "expr": rule.expression,
        "for": rule.pending,
        "labels": {"severity": rule.severity},
        "annotations": {
            "summary": _plain(rule.symptom),
            "cause": _plain(rule.cause),
            "action": _plain(rule.action),
            "runbook": "docs/runbook.md#runbook",
        },
    }


def _plain(markdown: str) -> str:
    """Without the marks of code: annotations are plain text."""
    return markdown.replace("`", "")


if __name__ == "__main__":
    write(alert_rules(RUNBOOK.read_text("utf-8")), sys.stdout)
