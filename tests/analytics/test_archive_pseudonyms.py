"""Rotating the pseudonym key with an archive: files and database change together."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from stream_app.analytics.archive import archive, archive_pseudonyms
from stream_app.sealing import sources
from stream_app.sealing.envelope import new_key
from stream_app.sealing.sources import KeySource
from stream_app.store.database import tables
from stream_app.store.database.privacy import pseudonym_of
from stream_app.store.keys import pseudonym_key
from stream_app.store.lifecycle import archived
from stream_app.store.lifecycle.archived import ArchiveError
from stream_app.store.stream.repository import Store
from stream_app.work import keys
from tests.analytics.archiving import facts, fill, move
from tests.store.batches import prepare
from tests.store.databases import open_store
from tests.store.reading import rows


class Stopped(Exception):
    """Stands for a process that was killed."""


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "pseudonym-key"
    sources.create(file, new_key())
    return file


@pytest.fixture
def moved(upgraded_url: str, key_file: Path, tmp_path: Path) -> Iterator[Store]:
    """A store with two archived months, whose pseudonym key is in a file."""
    store = prepare(open_store(upgraded_url, pseudonym=KeySource("PSEUDONYM_KEY", file=key_file)))
    fill(store)
    assert len(move(store, tmp_path / "archive")) == 2
    yield store
    store.close()


def renamed(found: dict[str, list[dict[str, Any]]], key: bytes) -> dict[str, list[dict[str, Any]]]:
    """The facts with the pseudonyms that a new key makes."""
    columns = archive_pseudonyms.COLUMNS
    return {
        fact: [
            {n: pseudonym_of(v, key) if n in columns and v else v for n, v in row.items()}
            for row in some
        ]
        for fact, some in found.items()
    }


def in_order(found: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    return {
        fact: sorted(json.dumps(row, default=str, sort_keys=True) for row in some)
        for fact, some in found.items()
    }


def rotate(store: Store, folder: Path) -> int:
    return archive_pseudonyms.rotate(store, store.secrets.pseudonym, folder)


def test_files_and_database_get_the_new_pseudonyms(
    moved: Store, key_file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "archive"
    before = facts(moved, folder)
    old = {row["speaker"] for row in rows(moved, tables.session_speakers)}
    assert rotate(moved, folder) == len(old)
    [_, key] = sources.parse(key_file.read_text("utf-8"), "it")
    assert in_order(facts(moved, folder)) == in_order(renamed(before, key))
    written = repr([pq.read_table(file).to_pylist() for file in archived.files(folder)])
    assert not any(name in written for name in old)
    assert not [path for path in folder.rglob(".*") if path.is_file()]
    assert rotate(moved, folder) == len(old), "again, with a third key"


def test_a_rotation_that_was_stopped_before_the_commit_is_repeated(
    moved: Store, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "archive"
    before = facts(moved, folder)

    def stop(*_: object) -> int:
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(pseudonym_key, "apply", stop)
        with pytest.raises(Stopped):
            rotate(moved, folder)
    assert [path for path in folder.rglob(".*") if path.is_file()]
    assert facts(moved, folder) == before, "prepared files are not read"
    assert rotate(moved, folder)
    [_, key] = sources.parse(key_file.read_text("utf-8"), "it")
    assert in_order(facts(moved, folder)) == in_order(renamed(before, key))


@pytest.mark.parametrize("by", ["rotate", "archive"])
def test_a_rotation_that_was_stopped_after_the_commit_is_finished(
    moved: Store, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    folder = tmp_path / "archive"
    before = facts(moved, folder)
    finish, calls = archived.finish_rotation, []

    def stop_at_the_second(*given: Any) -> int:
        calls.append(given)
        if len(calls) == 2:
            raise Stopped
        return finish(*given)

    with monkeypatch.context() as patched:
        patched.setattr(archived, "finish_rotation", stop_at_the_second)
        with pytest.raises(Stopped):
            rotate(moved, folder)
    with pytest.raises(ArchiveError, match="interrupted"):
        facts(moved, folder)
    if by == "rotate":
        assert rotate(moved, folder) == 0, "no third key"
    else:
        archive.sweep(moved, folder)
    [_, key] = sources.parse(key_file.read_text("utf-8"), "it")
    assert in_order(facts(moved, folder)) == in_order(renamed(before, key))


def test_the_command_needs_the_folder(moved: Store, key_file: Path) -> None:
    with pytest.raises(ArchiveError, match="RAPPORT_ARCHIVE"):
        keys.rotate_pseudonyms(moved, None)
    assert len(sources.parse(key_file.read_text("utf-8"), "it")) == 1
