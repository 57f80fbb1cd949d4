"""Every line of docs/threat-model.md names a test that exists, or says accepted or open."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROWS = [
    [cell.strip() for cell in line.strip("|\n").split(" | ")]
    for line in (ROOT / "docs" / "threat-model.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| threat", "| ---"))
]


def test_every_threat_has_a_test_or_an_open_word() -> None:
    assert len(ROWS) > 20
    without = [row[0] for row in ROWS if not re.search(r"`tests/|\*\*(accepted|open)\*\*", row[-1])]
    assert without == []


def test_the_named_tests_exist() -> None:
    named = [name for row in ROWS for name in re.findall(r"`(tests/[^`]+)`", row[-1])]
    assert len(named) > 15
    for name in named:
        file, _, function = name.partition("::")
        text = (ROOT / file).read_text("utf-8")
        assert not function or f"def {function}(" in text, name
