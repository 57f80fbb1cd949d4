"""The help of the command fits a screen, and commands that moved still run."""

from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
import typer

from stream_app.cli import app, root
from tests.commands.conftest import Rapport

UPGRADING = Path(__file__).parents[2] / "docs" / "upgrading.md"
SCREEN = 40
COLUMNS = 80


def test_the_help_fits_a_screen(rapport: Rapport) -> None:
    lines = rapport("--help", COLUMNS=str(COLUMNS)).stdout.splitlines()
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= COLUMNS
    assert not [line for line in lines[1:] if line.endswith("...")]


def test_without_a_command_the_help_is_printed(rapport: Rapport) -> None:
    shown = rapport()
    assert shown.returncode == 2
    assert shown.stdout == rapport("--help").stdout


def test_every_command_has_one_heading() -> None:
    found = Counter(chain.from_iterable(root.GROUPS.values()))
    assert found == Counter(dict.fromkeys(names(), 1))


def names() -> set[str]:
    return set(getattr(typer.main.get_command(app), "commands"))  # noqa: B009


@pytest.mark.parametrize("old", root.MOVED)
def test_a_command_that_moved_runs_and_says_its_new_name(rapport: Rapport, old: str) -> None:
    new = root.MOVED[old]
    shown = rapport(*old.split(), "--help")
    assert shown.returncode == 0
    assert shown.stderr == f"rapport: `rapport {old}` is now `rapport {new}`\n"
    assert shown.stdout == rapport(*new.split(), "--help").stdout
    assert not names() & {old}


def test_arguments_of_a_command_that_moved_are_kept(rapport: Rapport, tmp_path: Path) -> None:
    missing = rapport("scorecards", "check", tmp_path / "none.yaml")
    assert missing.returncode == 1
    assert "none.yaml" in missing.stderr


def test_the_page_on_upgrades_has_every_command_that_moved() -> None:
    page = UPGRADING.read_text("utf-8")
    for old, new in root.MOVED.items():
        assert f"| `rapport {old}` | `rapport {new}`" in page
