"""The key of pseudonyms: out of the database, the right one, and replaced without losing links."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from stream_app.analytics.rollups import rollups
from stream_app.errors import SealingError
from stream_app.sealing import sources
from stream_app.sealing.envelope import new_key
from stream_app.sealing.sources import KeySource, as_text
from stream_app.store.accounts import audit, saved_views
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.saved_views import SavedView
from stream_app.store.database import tables
from stream_app.store.keys import pseudonym_key
from stream_app.store.lifecycle import erasure
from stream_app.store.stream.repository import Store
from tests.store import databases, judging
from tests.store.batches import prepare
from tests.store.databases import open_store
from tests.store.reading import rows, stored_rows

NOW = datetime(2026, 1, 6, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pseudonyms"


def opened(url: str, file: Path) -> Store:
    return open_store(url, pseudonym=KeySource("PSEUDONYM_KEY", file=file))


def installation(store: Store) -> dict[str, str]:
    return {row["name"]: row["value"] for row in stored_rows(store, tables.installation)}


def put_inside(store: Store, key: bytes) -> None:
    """As a release before 0.2 leaves it."""
    row = {"name": pseudonym_key.IN_DATABASE, "value": key.hex()}
    with store.transaction() as connection:
        connection.execute(sa.insert(tables.installation).values(row))


def test_the_key_is_not_in_the_database(store: Store) -> None:
    store.load_privacy(redact=True)
    values = repr(installation(store))
    assert store.privacy.key.hex() not in values
    assert as_text(store.privacy.key) not in values


def test_a_key_in_an_sqlite_database_moves_to_the_file_beside_it(tmp_path: Path) -> None:
    store, key = open_store(databases.sqlite(tmp_path / "one.db")), new_key()
    put_inside(store, key)
    prepare(store)
    assert store.privacy.key == key
    assert sources.parse((tmp_path / "one.db.pseudonym-key").read_text(), "it") == [key]
    assert pseudonym_key.IN_DATABASE not in installation(store)
    store.scrub()
    assert key.hex().encode() not in (tmp_path / "one.db").read_bytes()
    store.close()


def test_a_key_on_a_server_is_moved_by_command(upgraded_url: str, file: Path) -> None:
    store, key = open_store(upgraded_url, pseudonym=KeySource("PSEUDONYM_KEY")), new_key()
    put_inside(store, key)
    with pytest.raises(SealingError, match="rapport keys move"):
        prepare(store)
    with pytest.raises(SealingError, match="RAPPORT_PSEUDONYM_KEY_FILE"):
        pseudonym_key.move(store, store.secrets.pseudonym)
    store.close()
    store = opened(upgraded_url, file)
    pseudonym_key.move(store, store.secrets.pseudonym)
    assert pseudonym_key.IN_DATABASE not in installation(store)
    assert prepare(store).privacy.key == key
    with pytest.raises(SealingError, match="nothing to move"):
        pseudonym_key.move(store, store.secrets.pseudonym)
    store.close()


def test_another_key_than_that_of_the_database_is_refused(upgraded_url: str, file: Path) -> None:
    sources.create(file, new_key())
    prepare(opened(upgraded_url, file)).close()
    sources.replace(file, [new_key()])
    other = opened(upgraded_url, file)
    with pytest.raises(SealingError, match="is not the key that made the pseudonyms"):
        prepare(other)
    put_inside(other, new_key())
    with pytest.raises(SealingError, match="holds another key than the database"):
        prepare(other)
    other.close()


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_rotation_replaces_every_pseudonym_and_keeps_what_belongs_together(
    upgraded_url: str, file: Path, interrupted: bool
) -> None:
    old_key = new_key()
    sources.create(file, old_key)
    store = prepare(opened(upgraded_url, file))
    judging.fill(store, 2)
    noor = store.privacy.pseudonym(judging.NOOR)
    erasure.erase(store, ["north-1"], NOW)
    audit.record(store, "sue", AuditAction.READ_TRANSCRIPT, "south-0")
    audit.record(store, "sue", AuditAction.READ_COUNSELLOR, counsellor=noor)
    audit.record(store, "sue", AuditAction.READ_TRANSCRIPT, "south-1")
    erasure.erase(store, ["south-1"], NOW)
    usual = {"bundle": "b", "measure": "m", "n": 20, "mean": 1.0, "sd": 1.0, "as_of": NOW}
    with store.transaction() as connection:
        for scope, key in (("channel", "phone"), ("counsellor", noor)):
            row = {**usual, "scope": scope, "key": key}
            connection.execute(sa.insert(tables.baselines).values(row))
    saved_views.save(store, "sue", SavedView("hers", "team=north", noor))
    assert rollups.rebuild(store)
    assert noor in {row["counsellor"] for row in rows(store, tables.rollup_cells)}
    before = {row["speaker"] for row in rows(store, tables.turns)}
    assert erasure.sessions_of(store, judging.NOOR) == ["north-0"]

    if interrupted:  # after the file was written, before the transaction
        sources.replace(file, [old_key, new_key()])
        with pytest.raises(SealingError, match="is not the key"):
            prepare(store)
    count = pseudonym_key.rotate(store, store.secrets.pseudonym)
    assert count == len(before) + 2, "speakers and two erased sessions"
    assert len(sources.parse(file.read_text(), "it")) == 2

    alone = open_store(upgraded_url, pseudonym=KeySource("P", text=as_text(old_key)))
    with pytest.raises(SealingError):
        prepare(alone)
    alone.close()
    again = prepare(opened(upgraded_url, file))
    new = again.privacy.pseudonym(judging.NOOR)
    assert new != noor
    assert erasure.sessions_of(again, judging.NOOR) == ["north-0"]
    assert again.find_erased(["north-0", "north-1", "south-1"]) == {"north-1", "south-1"}
    after = {row["speaker"] for row in rows(again, tables.turns)}
    assert len(after) == len(before)
    assert not after & before
    assert {row["counsellor"] for row in rows(again, tables.rollup_means)} >= {"", new}
    assert {row["key"] for row in rows(again, tables.baselines)} == {"phone", new}
    assert saved_views.find(again, "sue") == [SavedView("hers", "team=north", new)]
    trail = [(entry.session_id, entry.detail) for entry in reversed(audit.latest(again))]
    assert trail == [
        ("south-0", None),
        (None, f"counsellor {new}"),
        (f"erased:{again.privacy.pseudonym('south-1')}", None),
    ]
    assert noor not in repr([rows(again, table) for table in tables.metadata.sorted_tables])
    store.close()
    again.close()
