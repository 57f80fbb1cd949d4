"""The distribution's name is this project's alone; no hint names another's package.

In the public index `rapport` is a generator of work reports: who installed it by a hint of ours
would run somebody else's code.
"""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from stream_app.extras import DISTRIBUTION

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SOMEBODY_ELSES = re.compile(
    r"""
    (?<![\w./-]) rapport \[ [a-z]                            # with an extra
    | \b(?: pip | pipx | uv | uvx | poetry )\b [^\n`'"|]*?    # or to be installed
      \b(?: install | add | tool\ run | download )\b
      (?: [ ]+ -[\w-]+ )* [ ]+ ['"]? rapport (?! [\w/.-] )
    | ^\s* rapport \s* (?: [=~<>!]= | @ ) [^\n]*            # or as a requirement
    """,
    re.VERBOSE | re.MULTILINE,
)


def tracked_text() -> list[Path]:
    listed = subprocess.run(
        ["git", "-C", ROOT, "grep", "-zIl", "-F", "rapport"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_the_project_has_the_name_that_its_messages_say() -> None:
    assert PROJECT["name"] == DISTRIBUTION != "rapport"
    assert PROJECT["scripts"]["rapport"]


@pytest.mark.parametrize(
    "hint",
    [
        "rapport[web]",
        "pip install rapport",
        "pip install -U 'rapport>=1'",
        "uv tool install rapport",
        "pip download --no-deps rapport",
        "rapport==0.1.0",
        "pipx install rapport",
    ],
)
def test_a_hint_for_the_other_package_is_found(hint: str) -> None:
    assert SOMEBODY_ELSES.search(hint)


@pytest.mark.parametrize(
    "text",
    ["rapport-empathy[web]", "pip install 'rapport-empathy[cpu]'", "pip install rapport-empathy"],
)
def test_the_own_name_is_no_such_hint(text: str) -> None:
    assert not SOMEBODY_ELSES.search(text)


def test_no_hint_in_the_tree_names_the_other_package() -> None:
    files = tracked_text()
    assert len(files) > 100
    found = [
        f"{file.relative_to(ROOT)}: {hint[0].strip()}"
        for file in files
        if file != Path(__file__)
        for hint in SOMEBODY_ELSES.finditer(file.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)
