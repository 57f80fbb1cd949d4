"""`rapport db archive` moves months and deletes expired ones; `rapport erase` reaches the files."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stream_app.bootstrap import worker_process
from stream_app.cli import app
from stream_app.settings import Settings
from stream_app.store.database import clocks
from stream_app.store.lifecycle import archived, retention
from stream_app.store.lifecycle.archived import ArchiveError
from stream_app.store.stream.repository import Store
from tests.analytics.archiving import SESSIONS, facts, fill
from tests.store import databases
from tests.store.batches import prepare
from tests.store.databases import open_store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def store(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, log_settings_kept: object
) -> Iterator[Store]:
    url = databases.sqlite(tmp_path / "one.db")
    monkeypatch.setenv("RAPPORT_DATABASE_URL", url)
    monkeypatch.setenv("RAPPORT_ARCHIVE", str(folder))
    opened = open_store(url)
    fill(prepare(opened))
    yield opened
    opened.close()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments])


def moved(store: Store) -> None:
    assert run("db", "archive", "--before", "2026-03").exit_code == 0
    assert archived.count(store) == 6


def test_archive_reports_months_and_totals(store: Store, folder: Path) -> None:
    before = facts(store, None)
    lines = run("db", "archive", "--before", "2026-03").output.splitlines()
    assert lines == [
        "2026-01: 2 sessions moved (fact_session 2, fact_turn 12, fact_alert 2, fact_outcome 2)",
        "2026-02: 4 sessions moved (fact_session 4, fact_turn 24, fact_alert 4, fact_outcome 4)",
        "6 sessions moved; 6 are archived",
    ]
    assert facts(store, folder) == before


def test_by_default_three_full_months_stay(store: Store) -> None:
    assert run("db", "archive").output.splitlines()[-1] == "8 sessions moved; 8 are archived"


def test_this_month_is_not_finished(store: Store) -> None:
    after = f"{datetime.now(UTC) + timedelta(days=32):%Y-%m}"
    assert isinstance(run("db", "archive", "--before", after).exception, ArchiveError)


def test_without_a_folder_the_setting_is_named(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAPPORT_ARCHIVE")
    assert "RAPPORT_ARCHIVE" in str(run("db", "archive").exception)


def test_erase_rewrites_the_files_and_says_so(store: Store, folder: Path) -> None:
    moved(store)
    erased = run("erase", "--speaker", "client 1", "--yes")
    assert erased.exit_code == 0, erased.output
    assert "1 sessions to erase; 0 of them are stored, with 0 turns; 1 are archived" in (
        erased.output
    )
    assert "archive: 9 rows removed, 4 files rewritten or deleted" in erased.output
    assert "copies of the archive's files" in erased.output
    assert len(facts(store, folder)["fact_session"]) == SESSIONS - 1
    assert "client 1" not in erased.output


def test_archived_sessions_are_not_erased_without_their_files(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved(store)
    monkeypatch.delenv("RAPPORT_ARCHIVE")
    refused = run("erase", "--session", "session 1", "--yes")
    assert "nothing was erased" in str(refused.exception)
    assert len(facts(store, folder)["fact_session"]) == SESSIONS


def test_pseudonyms_are_rotated_in_the_archive_too(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved(store)
    before = {row["counsellor"] for row in facts(store, folder)["fact_session"]}
    monkeypatch.delenv("RAPPORT_ARCHIVE")
    assert isinstance(run("keys", "rotate-pseudonyms").exception, ArchiveError)
    assert {row["counsellor"] for row in facts(store, folder)["fact_session"]} == before
    monkeypatch.setenv("RAPPORT_ARCHIVE", str(folder))
    done = run("keys", "rotate-pseudonyms")
    assert done.exit_code == 0
    assert "pseudonyms replaced" in done.output
    assert not {row["counsellor"] for row in facts(store, folder)["fact_session"]} & before


def test_a_worker_deletes_expired_months(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved(store)
    later = datetime.now(UTC) + timedelta(days=366)
    monkeypatch.setattr(clocks, "database_now", lambda _: later)
    retention.claim_daily_run(store, later - timedelta(days=2))
    purged = list(worker_process.purge_expired(Settings(), store, later))
    assert sum(piece["archived sessions"] for piece in purged) == 6
    assert not list(folder.rglob("*.parquet"))
