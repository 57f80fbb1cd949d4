"""Templates can be read in an editor: no line is longer than 120 columns."""

from pathlib import Path

import stream_app

ROOT = Path(stream_app.__file__).parent


def test_lines_of_templates_are_short() -> None:
    templates = list(ROOT.rglob("templates/*.html"))
    assert len(templates) > 50
    long = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in templates
        for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1)
        if len(line) > 120
    ]
    assert not long
