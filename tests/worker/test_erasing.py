"""Workers finish erasures: dead letters, archive and receipt, whichever process began them."""

import asyncio
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from stream_app import bootstrap
from stream_app.core.session.ports import Message
from stream_app.errors import BrokerUnavailable
from stream_app.settings import Settings
from stream_app.store.database import tables
from stream_app.store.keys import pseudonyms
from stream_app.store.lifecycle import erasure, erasure_receipts
from stream_app.store.stream.repository import Store
from stream_app.worker.kafka import dead_letters
from stream_app.worker.upkeep import erasing
from tests.analytics.archiving import facts, fill, move
from tests.store.reading import rows

ARCHIVED, STORED = "session 0", "session 3"
NOW = datetime(2026, 6, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)


class Topic:
    """The topic of dead letters: ids by session, and what was published."""

    def __init__(self) -> None:
        self.ids: dict[str, set[str]] = {}
        self.withdrawn: list[bytes] = []
        self.answers = True

    async def ids_about(
        self, settings: Settings, session_ids: Collection[str]
    ) -> dict[str, set[str]]:
        if not self.answers:
            raise BrokerUnavailable("no broker answers")
        return {session_id: self.ids.get(session_id, set()) for session_id in session_ids}

    async def publish(self, client: Any, messages: list[Message]) -> None:
        assert all(message.value is None for message in messages)
        self.withdrawn += [message.key for message in messages]


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    made = Topic()
    monkeypatch.setattr(dead_letters, "ids_about", made.ids_about)
    monkeypatch.setattr(erasing, "publish", made.publish)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def erased(open_prepared: Callable[[], Store], folder: Path) -> Store:
    """Two sessions are erased, one of them archived; nothing else was done yet."""
    store = open_prepared()
    fill(store)
    move(store, folder)
    erasure.erase(store, [ARCHIVED, STORED], NOW)
    assert ARCHIVED in {row["session_id"] for row in _archived(store, folder)}
    return store


def _archived(store: Store, folder: Path) -> list[dict[str, Any]]:
    return [
        row
        for file in (folder / "fact_session").rglob("*.parquet")
        for row in pq.read_table(file).to_pylist()
    ]


def finish(store: Store, folder: Path | None, now: datetime = LATER) -> None:
    settings = Settings(archive=folder)
    asyncio.run(
        erasing.finish_due(
            settings, store, lambda: bootstrap.sweep_archive(settings, store), None, now
        )
    )


def unfinished(store: Store) -> list[str]:
    return [item.session_id for item in erasure_receipts.unfinished(store)]


def done(store: Store, session_id: str) -> str:
    [receipt] = erasure_receipts.of_session(store, session_id)
    assert receipt.lines is not None
    return "\n".join(receipt.lines.done)


def test_files_and_dead_letters_are_reached_and_the_receipt_says_so(
    erased: Store, folder: Path, topic: Topic
) -> None:
    topic.ids = {ARCHIVED: {"t:0:7", "t:1:8"}, STORED: {"t:0:7"}}
    finish(erased, folder)
    assert topic.withdrawn == [b"t:0:7", b"t:1:8"]
    assert "archive: 9 rows removed, 4 files rewritten" in done(erased, ARCHIVED)
    assert "2 dead letters withdrawn" in done(erased, ARCHIVED)
    assert "1 dead letters withdrawn" in done(erased, STORED)
    assert erasing.NO_ARCHIVED_ROWS in done(erased, STORED)
    assert ARCHIVED not in {row["session_id"] for row in _archived(erased, folder)}
    assert len(facts(erased, folder)["fact_session"]) == 6
    assert unfinished(erased) == []
    stored = repr(rows(erased, tables.erasure_receipts))
    assert ARCHIVED not in stored
    assert STORED not in stored


@pytest.mark.parametrize("rewritten", [True, False])
def test_the_receipt_says_whether_sqlites_file_was_rewritten(
    erased: Store, folder: Path, topic: Topic, monkeypatch: pytest.MonkeyPatch, rewritten: bool
) -> None:
    named: list[str] = []

    def scrub() -> bool:
        named.append(repr(rows(erased, tables.erasure_receipts)))
        return rewritten

    monkeypatch.setattr(erased, "scrub", scrub)
    finish(erased, folder)
    [before] = named
    assert ARCHIVED not in before, "its id is deleted before the file is rewritten"
    [receipt] = erasure_receipts.of_session(erased, ARCHIVED)
    assert receipt.lines is not None
    sqlite = erased.engine.dialect.name == "sqlite"
    assert ("file: rewritten" in "\n".join(receipt.lines.done)) is (sqlite and rewritten)
    not_reached = "\n".join(receipt.lines.not_reached)
    assert ("SQLite's file and log" in not_reached) is (sqlite and not rewritten)


def test_batches_in_progress_may_publish_their_dead_letters_first(
    erased: Store, folder: Path, topic: Topic
) -> None:
    finish(erased, folder, NOW + erasing.GRACE / 2)
    assert unfinished(erased) == [STORED, ARCHIVED]


def test_without_brokers_a_later_call_finishes(erased: Store, folder: Path, topic: Topic) -> None:
    topic.answers = False
    with pytest.raises(BrokerUnavailable):
        finish(erased, folder)
    assert unfinished(erased) == [STORED, ARCHIVED]
    [receipt] = erasure_receipts.of_session(erased, STORED)
    assert receipt.lines is None
    topic.answers = True
    finish(erased, folder)
    assert unfinished(erased) == [STORED, ARCHIVED], "only one worker at a time tries"
    finish(erased, folder, LATER + 2 * erasing.INTERVAL)
    assert unfinished(erased) == []


def test_an_archived_session_waits_for_a_process_that_has_the_folder(
    erased: Store, folder: Path, topic: Topic
) -> None:
    finish(erased, None)
    assert unfinished(erased) == [ARCHIVED]
    assert erasure_receipts.oldest_unfinished(erased) == NOW
    finish(erased, folder, LATER + timedelta(hours=1))
    assert unfinished(erased) == []
    assert "archive: 9 rows removed" in done(erased, ARCHIVED)


def test_a_run_of_the_archive_counts_as_well(erased: Store, folder: Path, topic: Topic) -> None:
    finish(erased, None)
    move(erased, folder)
    erasure_receipts.note_swept(erased, LATER)
    finish(erased, None, LATER + timedelta(hours=1))
    assert erasing.NO_ARCHIVED_ROWS in done(erased, ARCHIVED)


def test_receipts_follow_a_rotation_of_the_pseudonym_key(erased: Store) -> None:
    digest = erased.privacy.pseudonym(STORED)
    with erased.transaction() as connection:
        pseudonyms.replace(connection, lambda old: f"new {old[:20]}")
    found = [row["digest"] for row in rows(erased, tables.erasure_receipts)]
    assert f"new {digest[:20]}" in found
