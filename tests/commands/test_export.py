"""`rapport export` and `rapport people studies`: files, and text for a study in progress only."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import schema
from stream_app.cli import app
from stream_app.cli.reporting import EXPORTS
from stream_app.findings.exports import tables as export
from stream_app.store.accounts import audit
from stream_app.store.stream.repository import Store, open_store
from tests import group_files
from tests.store import databases, judging
from tests.store.batches import prepare

WORDS = "That must have been hard"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_settings_kept: object) -> Any:
    url = databases.sqlite(tmp_path / "one.db")
    monkeypatch.setenv("RAPPORT_DATABASE_URL", url)
    opened = prepare(open_store(url))
    judging.fill(opened, sessions=1)
    yield opened
    opened.close()


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return done.exit_code, done.output + str(done.exception or "")


def test_the_command_names_every_table() -> None:
    assert EXPORTS == export.TABLES


@pytest.mark.parametrize("table", EXPORTS)
def test_every_table_can_be_written_without_text(store: Store, tmp_path: Path, table: str) -> None:
    schema.create_views(store)
    rollups.rebuild(store)
    file = tmp_path / "out"
    status, said = run("export", table, "-o", file)
    assert status == 0, said
    assert WORDS.encode() not in file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    [entry] = audit.find(store, person=audit.COMMAND_LINE).items
    assert entry.detail == f"{table} as csv"


def test_filters_and_formats_are_those_of_the_api(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    assert run("export", "turns", "-o", file, "--format", "jsonl", "--team", "north")[0] == 0
    found = [json.loads(line) for line in file.read_text().splitlines()]
    assert {row["session_id"] for row in found} == {"north-0"}
    later = tmp_path / "later.csv"
    assert run("export", "sessions", "-o", later, "--from", "2026-01-06")[0] == 0
    assert len(later.read_text().splitlines()) == 1


def test_text_is_exported_for_a_study_until_it_ends(store: Store, tmp_path: Path) -> None:
    assert run("people", "add", "stu", "--role", "study", "--team", "south")[0] == 0
    for_study = ("--study", "S-1", "--account", "stu")
    file = tmp_path / "first"
    status, said = run("export", "turns", "-o", file, *for_study)
    assert status != 0
    assert "not in a study with this id" in said
    assert not file.exists()
    assert run("people", "studies", "admit", "S-1", "stu", "--until", "2999-01-01")[0] == 0
    assert "S-1" in run("people", "studies", "list")[1]
    status, said = run("export", "turns", "-o", file, "--format", "jsonl", *for_study)
    assert status == 0, said
    found = [json.loads(line) for line in file.read_text().splitlines()]
    assert {row["session_id"] for row in found} == {"south-0"}
    assert all(WORDS in row["text"] for row in found)
    details = [entry.detail for entry in audit.find(store, person=audit.COMMAND_LINE).items]
    assert "turns as jsonl with text for study S-1, stu" in details
    assert "export of turns for study S-1" in details
    assert "stu in study S-1 until 2999-01-01" in details
    assert run("people", "studies", "end", "S-1")[0] == 0
    status, said = run("export", "turns", "-o", tmp_path / "second", *for_study)
    assert status != 0
    assert "ended on" in said


def test_restricted_outputs_are_left_out(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def names(file: Path) -> set[str]:
        assert run("export", "turns", "-o", file)[0] == 0
        return set(file.read_text("utf-8-sig").splitlines()[0].split(","))

    assert {"client", "expressed"} <= names(tmp_path / "all.csv")
    file = group_files.written(tmp_path, restricted_outputs={"all": ["client"]})
    monkeypatch.setenv("RAPPORT_GROUPS", str(file))
    assert "client" not in names(tmp_path / "less.csv")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("people",), "known tables"),
        ((), "either a table or --speaker"),
        (("turns", "--speaker", "noor"), "either a table or --speaker"),
        (("rollups", "--rollup", "year"), "known roll-ups"),
        (("turns", "--study", "S-1"), "belong together"),
        (("ratings", "--study", "S-1", "--account", "stu"), "have text"),
        (("turns", "--study", "S-1", "--account", "nobody"), "no account"),
        (("rollups",), "rapport db views"),
    ],
)
def test_what_does_not_fit_is_refused_and_writes_no_file(
    store: Store, tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    status, said = run("export", *arguments, "-o", tmp_path / "out")
    assert status != 0
    assert problem in " ".join(said.split())
    assert not (tmp_path / "out").exists()


def test_a_file_that_exists_is_not_overwritten(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("mine")
    assert run("export", "sessions", "-o", file)[0] != 0
    assert file.read_text() == "mine"
