"""The compliance pages say nothing that the code does not hold: what they name exists."""

import re
from pathlib import Path
from typing import Any

import typer

from export import technical_file
from stream_app.cli.root import app
from stream_app.settings import Settings
from stream_app.web import api
from tests.web.api.role_table import API, PAGES

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "compliance"
FILES = {path.name: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.md"))}
TEXT = "\n".join([*FILES.values(), (ROOT / "docs" / "policies.md").read_text("utf-8")])


def test_the_technical_file_is_current() -> None:
    """Else run `python -m export.technical_file`."""
    assert technical_file.text() == FILES["technical-file.md"]


def test_the_index_links_every_page() -> None:
    index = FILES["index.md"]
    for name in FILES.keys() - {"index.md"}:
        assert f"]({name})" in index, name
        assert f"\n{name.removesuffix('.md')}\n" in index, name


def test_the_named_tests_exist() -> None:
    named = set(re.findall(r"`(tests/[^`]+)`", TEXT))
    assert len(named) > 10
    for name in named:
        file, _, function = name.partition("::")
        text = (ROOT / file).read_text("utf-8")
        assert not function or f"def {function}(" in text, name


def test_the_named_settings_exist_and_have_these_defaults() -> None:
    fields = {f"RAPPORT_{name.upper()}": field for name, field in Settings.model_fields.items()}
    files = {f"{name}_FILE" for name in fields}
    for name in set(re.findall(r"RAPPORT_[A-Z_]+", TEXT)):
        assert name in fields or name in files, name
    stated = re.findall(r"`(RAPPORT_[A-Z_]+)` \(default: (\w+)\)", TEXT)
    assert len(stated) > 5
    for name, value in stated:
        default = fields[name].default
        shown = getattr(default, "value", default)
        shown = int(shown) if isinstance(shown, float) else shown
        assert value == str(shown).lower(), name


def test_the_named_commands_exist() -> None:
    root: Any = typer.main.get_command(app)
    for line in set(re.findall(r"`rapport ([a-z][^`]*)`", TEXT)):
        command = root
        for word in line.split():
            if word.startswith("-") or word.isupper() or not hasattr(command, "commands"):
                break
            assert word in command.commands, line
            command = command.commands[word]


def test_the_named_routes_exist() -> None:
    for method, path in set(re.findall(r"`(GET|POST) (/api/v1/[^`]*)`", TEXT)):
        route = path.removeprefix(api.PREFIX).replace("{id}", "{session_id}")
        assert (method.lower(), route) in API, path
    for path in set(re.findall(r"`(/[a-z][a-z/]*)`", TEXT)):
        assert ("get", path) in PAGES, path


def test_nobody_claims_to_comply() -> None:
    claims = r"\b(is|are) (fully )?(compliant|certified|in compliance)\b|\bcomplies with\b"
    assert re.findall(claims, TEXT) == []
    assert "not legal advice" in FILES["index.md"]
