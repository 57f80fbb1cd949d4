"""What is said is stored encrypted under the session's key, which erasing destroys."""

import random
import sqlite3
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from stream_app.errors import RowRefused, SealingError, StaleState
from stream_app.sealing import sources
from stream_app.sealing.envelope import new_key
from stream_app.sealing.sources import KeySource
from stream_app.store.alerts import alert_actions
from stream_app.store.database import tables
from stream_app.store.lifecycle import encrypting, erasure, erasure_receipts
from stream_app.store.sessions import transcripts
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store
from tests.store import batches, databases, judging
from tests.store.batches import BUNDLE, end, prepare, process, turn
from tests.store.databases import open_store
from tests.store.reading import SEALED, rows, stored_rows

NOW = datetime(2026, 1, 6, tzinfo=UTC)
WORD = "quagmirelle"
SEALED_TABLES = (tables.turns, tables.window_turns, tables.session_states)


def said(store: Store, session_id: str = "s") -> list[str | None]:
    return [each.text for each in transcripts.read(store, ALL_SESSIONS, session_id)]


def stored_dump(store: Store) -> str:
    return repr([stored_rows(store, table) for table in tables.metadata.sorted_tables])


def mute(store: Store, **changes: Any) -> alert_actions.Mute:
    until = datetime.now(UTC) + timedelta(hours=1)
    nothing = {"rule": None, "session_id": None, "team": None}
    return alert_actions.create_mute(
        store, **{**nothing, "until": until, "reason": WORD, "person": "sue", **changes}
    )


def test_nothing_that_is_said_is_stored_in_plain(store: Store) -> None:
    store.commit(process([turn(0, text=WORD), turn(1, text=WORD), end(reason=WORD)]))
    mute(store, rule="eager")
    assert WORD not in stored_dump(store)
    assert said(store) == [WORD, WORD]
    assert rows(store, tables.sessions)[0]["end_reason"] == WORD
    assert [each.reason for each in alert_actions.mutes_in_force(store, ALL_SESSIONS)] == [WORD]


def test_the_list_of_sealed_columns_is_that_of_the_tests() -> None:
    assert {item.column for item in encrypting.COLUMNS} == {column for column, _ in SEALED}


def test_a_text_moved_to_another_turn_does_not_open(store: Store) -> None:
    store.commit(process([turn(0, text="yes"), turn(1, text="no")]))
    table = tables.turns
    with store.transaction() as connection:
        other = sa.select(table.c.text).where(table.c.seq == 0).scalar_subquery()
        connection.execute(sa.update(table).where(table.c.seq == 1).values(text=other))
    assert said(store) == ["yes", None]


def test_a_damaged_state_is_refused_by_itself(store: Store) -> None:
    store.commit(process([turn(session_id=name) for name in "ab"]))
    table = tables.session_states
    with store.transaction() as connection:
        other = sa.select(table.c.state).where(table.c.session_id == "a").scalar_subquery()
        connection.execute(sa.update(table).where(table.c.session_id == "b").values(state=other))
    with pytest.raises(RowRefused, match="the state of a session is damaged"):
        store.load_states(["b"], BUNDLE)
    assert store.load_states(["a"], BUNDLE).keys() == {"a"}


def test_bundles_share_the_key_of_a_session(store: Store) -> None:
    store.commit(process([turn(0)]))
    [before] = stored_rows(store, tables.session_keys)
    assert store.load_states(["s"], "another") == {}
    result = process([turn(1)])
    for versioned in result.sessions.values():
        versioned.state.bundle = "another"
    store.commit(result)
    assert stored_rows(store, tables.session_keys) == [before]
    assert len(said(store)) == 2
    assert None not in said(store)


def test_of_two_workers_that_make_a_key_one_reads_that_of_the_other(
    store: Store, other: Store
) -> None:
    mine, theirs = process([turn(0)]), process([turn(1)])
    for versioned in theirs.sessions.values():
        versioned.state.bundle = "another"
    prepared = other._prepared(theirs)
    store.commit(mine)
    with pytest.raises(StaleState), other.transaction() as connection:
        other.keys.write(connection, prepared.new_keys)
    other.commit(theirs)
    assert None not in said(store)


def test_a_note_on_a_session_that_was_erased_makes_no_key(store: Store) -> None:
    judging.fill(store, 1)
    erasure.erase(store, ["north-0"], NOW)
    with store.transaction() as connection:
        assert store.keys.get_or_create(connection, "north-0", NOW) is None
    assert "north-0" not in {row["session_id"] for row in rows(store, tables.session_keys)}


def test_the_reason_of_a_mute_that_covers_an_erased_session_is_deleted(store: Store) -> None:
    store.commit(process([turn(seq, team="north") for seq in range(4)]))
    [rule, *_] = {row["rule"] for row in rows(store, tables.alerts)}
    covering = [mute(store, rule=rule), mute(store, team="north"), mute(store, session_id="s")]
    others = [mute(store, rule="another"), mute(store, team="south")]
    erased = erasure.erase(store, ["s"], NOW)
    assert erased.reasons == 2
    left = {row["mute_id"]: row["reason"] for row in rows(store, tables.mutes)}
    assert left == {
        covering[0].mute_id: None,
        covering[1].mute_id: None,
        **{each.mute_id: WORD for each in others},
    }
    keys = {row["session_id"] for row in stored_rows(store, tables.session_keys)}
    assert keys == {each.mute_id for each in others}


def test_a_reason_from_shortly_before_the_session_may_be_about_it(store: Store) -> None:
    """Clocks differ by a little; much earlier ones cannot refer to it."""
    store.commit(process([turn(seq) for seq in range(4)]))
    began = min(row["stored_at"] for row in rows(store, tables.turns))
    made = {minutes: mute(store, team=None).mute_id for minutes in (9, 11)}
    with store.transaction() as connection:
        for minutes, mute_id in made.items():
            at = {"at": began - timedelta(minutes=minutes)}
            this = tables.mutes.c.mute_id == mute_id
            connection.execute(sa.update(tables.mutes).where(this).values(at))
    assert erasure.erase(store, ["s"], NOW).reasons == 1
    left = {row["mute_id"]: row["reason"] for row in rows(store, tables.mutes)}
    assert left == {made[9]: None, made[11]: WORD}


def test_rotating_wraps_every_key_anew_and_may_be_interrupted(
    upgraded_url: str, tmp_path: Path
) -> None:
    file, old, new = tmp_path / "master", new_key(), new_key()
    sources.create(file, old)
    store = prepare(open_store(upgraded_url, master=KeySource("MASTER_KEY", file=file)))
    names = [f"s{number}" for number in range(7)]
    store.commit(process([turn(session_id=name, text=name) for name in names]))
    sources.replace(file, [new, old])
    assert store.keys.rewrap(limit=4) == 4
    assert sorted(store.keys.counts().values()) == [3, 4]
    assert [said(store, name) for name in names] == [[name] for name in names]
    sources.replace(file, [new])
    with pytest.raises(SealingError, match="is missing"):
        [said(store, name) for name in names]
    sources.replace(file, [new, old])
    assert store.keys.rewrap(limit=4) == 3
    assert store.keys.rewrap(limit=4) == 0
    sources.replace(file, [new])
    assert [said(store, name) for name in names] == [[name] for name in names]
    store.close()


def test_what_an_earlier_release_stored_is_read_and_can_be_encrypted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.commit(process([turn(seq, text=WORD) for seq in range(3)]))
    opened = {table: rows(store, table) for table in SEALED_TABLES}
    with store.transaction() as connection:  # as an earlier release leaves it
        for table, found in opened.items():
            for row in found:
                keys = [column == row[column.name] for column in table.primary_key]
                connection.execute(sa.update(table).where(*keys).values(row))
        connection.execute(sa.update(tables.turns).values(chars=None))
        connection.execute(sa.delete(tables.session_keys))
    assert said(store) == [WORD] * 3
    before = {table.name: rows(store, table) for table in (tables.turns, tables.session_states)}
    assert encrypting.oldest_are_plain(store)
    monkeypatch.setattr(encrypting, "AT_A_TIME", 2)
    assert sum(encrypting.encrypt_batches(store, NOW), Counter()) == {
        "turns.text": 3,
        "session_states.state": 1,
        "window_turns.turn": len(rows(store, tables.window_turns)),
    }
    assert not list(encrypting.encrypt_batches(store, NOW))
    assert not encrypting.oldest_are_plain(store)
    assert WORD not in stored_dump(store)
    for table in (tables.turns, tables.session_states):
        assert rows(store, table) == before[table.name]
    states = store.load_states(["s"], BUNDLE)
    store.commit(batches.process([turn(3, text=WORD)], states))
    assert said(store) == [WORD] * 4


def test_a_server_without_keys_says_how_to_make_them(server: Any) -> None:
    url = databases.postgresql(server)
    store = open_store(url, master=KeySource("MASTER_KEY"))
    with pytest.raises(SealingError, match=r"RAPPORT_MASTER_KEY_FILE is not set.*rapport keys new"):
        prepare(store)
    store.close()
    store = open_store(url, pseudonym=KeySource("PSEUDONYM_KEY"))
    with pytest.raises(SealingError, match=r"RAPPORT_PSEUDONYM_KEY_FILE is not set"):
        prepare(store)
    store.close()
    server.drop(url)


def test_files_of_an_sqlite_database_are_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    store = open_store(f"sqlite:///{file}")
    schema.upgrade(store)
    prepare(store).commit(process([turn()]))
    with store.reading():
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert set(modes) >= {"new.db", "new.db-wal", "new.db.master-key", "new.db.pseudonym-key"}
    assert set(modes.values()) == {0o600}
    store.close()
    file.chmod(0o644)
    store = open_store(f"sqlite:///{file}")
    store.ping()
    assert file.stat().st_mode & 0o777 == 0o600, "as an earlier release left it"
    store.close()


def test_a_lost_key_file_is_not_replaced(tmp_path: Path) -> None:
    url = databases.sqlite(tmp_path / "one.db")
    store = prepare(open_store(url))
    store.commit(process([turn()]))
    store.close()
    for name in ("master-key", "pseudonym-key"):
        (tmp_path / f"one.db.{name}").rename(tmp_path / name)
        again = open_store(url)
        with pytest.raises(SealingError, match=f"one.db.{name} is missing.*restore the file"):
            again.load_privacy(redact=True)
        again.close()
        (tmp_path / name).rename(tmp_path / f"one.db.{name}")


def test_an_erasure_leaves_no_byte_of_a_session_in_sqlites_files(tmp_path: Path) -> None:
    url = databases.sqlite(tmp_path / "one.db")
    store = prepare(open_store(url))
    name = "a-name-of-its-own"
    store.commit(process([turn(seq, session_id=name) for seq in range(6)]))
    store.commit(process([turn(seq, session_id="other") for seq in range(6)]))
    [key] = [r for r in stored_rows(store, tables.session_keys) if r["session_id"] == name]

    def bytes_of_it() -> int:
        files = [path.read_bytes() for path in tmp_path.iterdir()]
        return sum(raw.count(name.encode()) + raw.count(key["wrapped"]) for raw in files)

    assert bytes_of_it()
    erasure.erase(store, [name], NOW)
    assert store.scrub()
    assert bytes_of_it() == 1, "the receipt has its id until the topics are handled"
    [receipt] = erasure_receipts.unfinished(store)
    erasure_receipts.finish(store, receipt.id, erasure_receipts.Lines([], []))
    store.scrub()
    assert bytes_of_it() == 0
    assert len(said(store, "other")) == 6
    store.close()


def test_no_copy_stays_where_sqlite_has_moved_rows_between_pages(tmp_path: Path) -> None:
    store = prepare(open_store(databases.sqlite(tmp_path / "one.db")))
    lengths = random.Random(5)
    names = [
        f"{'gone' if number % 3 else 'kept'}-{lengths.randrange(10 ** lengths.randrange(4, 40))}"
        for number in range(120)
    ]
    gone = [name for name in names if name.startswith("gone")]
    for seq in range(4):
        for some in (names[first : first + 7] for first in range(0, len(names), 7)):
            states = store.load_states(some, BUNDLE)
            store.commit(process([turn(seq, session_id=name) for name in some], states))
    erasure.erase(store, gone, NOW)
    for receipt in erasure_receipts.unfinished(store, limit=len(gone)):
        erasure_receipts.finish(store, receipt.id, erasure_receipts.Lines([], []))
    assert store.scrub()
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert [name for name in gone if name.encode() in raw] == []
    assert all(name.encode() in raw for name in set(names) - set(gone))
    store.close()


def test_a_file_that_others_write_is_not_rewritten_and_keeps_everything(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    store = prepare(open_store(databases.sqlite(path)))
    store.commit(process([turn(0, text=WORD)]))
    with store.reading() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout=50")  # the pool has one connection
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert not store.scrub()
    other.close()
    assert said(store) == [WORD]
    assert store.scrub()
    store.close()
