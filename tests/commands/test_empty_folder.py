"""A command that needs a database leaves nothing in a folder that has none."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stream_app.cli import app
from stream_app.settings import Settings

COMMANDS = [
    "erase --session s-1 --yes",
    "erase --speaker joan@example.org --yes",
    "erase --session s-1 --receipt",
    "export --speaker joan@example.org -o joan.zip",
    "hold list",
    "people list",
    "db purge",
    "analyse drift",
    "db rollups",
    "keys rotate-pseudonyms",
    "keys encrypt",
    "db views",
    "web",
    "doctor",
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("url", ["sqlite:///rapport.db", "sqlite:///data/rapport.db"])
def test_nothing_is_left_in_an_empty_folder(
    command: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [each for each in os.environ if each.startswith("RAPPORT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RAPPORT_DATABASE_URL", url)
    monkeypatch.setenv("RAPPORT_KAFKA_BROKERS", "127.0.0.1:1")
    assert Settings().database == url
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 1, result.output
    said = f"{result.output}{result.exception}"
    assert "rapport.db does not exist: run `rapport db upgrade`" in said.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []


def test_the_upgrade_makes_the_database_and_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "data" / "rapport.db"
    monkeypatch.setenv("RAPPORT_DATABASE_URL", f"sqlite:///{file}")
    assert CliRunner().invoke(app, ["db", "upgrade"]).exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert CliRunner().invoke(app, ["people", "list"]).exit_code == 0
