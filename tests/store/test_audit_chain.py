"""The audit trail is a hash chain that no statement of the service can change."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from servers.postgres import Server
from stream_app.errors import RapportError, StoreError
from stream_app.sealing import sources
from stream_app.sealing.envelope import new_key
from stream_app.sealing.sources import KeySource
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.database import audit_chain, tables
from stream_app.store.database.audit_chain import Head, parse_head, verify
from stream_app.store.keys import pseudonym_key
from stream_app.store.lifecycle import erasure
from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store
from tests.store import databases
from tests.store.batches import prepare
from tests.store.databases import open_store
from tests.store.reading import rows

NOW = datetime(2026, 2, 1, tzinfo=UTC)
ROOT = Path(__file__).parents[2]
ROLE = "audit_service"
READ = AuditAction.READ_TRANSCRIPT
Opened = Callable[[str], Store]


def fill(store: Store, entries: int = 6) -> None:
    for number in range(entries):
        audit.record(store, "sue", READ, f"s{number % 3}", f"read {number}")


def execute(store: Store, *statements: str) -> None:
    with store.transaction() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


def tamper(store: Store, *statements: str) -> None:
    """Change the database as an administrator can: without the triggers."""
    with store.engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("ALTER TABLE audit DISABLE TRIGGER ALL"))
        else:
            for event in ("update", "delete"):
                connection.execute(sa.text(f"DROP TRIGGER audit_{event}"))
        for statement in statements:
            connection.execute(sa.text(statement))


def test_a_trail_is_intact_and_its_head_moves_with_each_entry(store: Store) -> None:
    empty = verify(store)
    assert (empty.entries, empty.faults, empty.head) == (0, [], Head(0, audit_chain.ORIGIN))
    fill(store)
    first = verify(store)
    assert (first.entries, first.faults, first.head.entry) == (6, [], 6)
    audit.record_all(store, "ana", AuditAction.EXPORT, ["s0", None, "ü"], "\u2028 '; 𝄞")
    audit.record(store, "ana", AuditAction.READ_COUNSELLOR, counsellor="abc")
    later = verify(store, first.head)
    assert (later.entries, later.faults) == (10, [])
    assert later.head != first.head
    [newest, *_] = audit.latest(store)
    assert (newest.session_id, newest.detail) == (None, "counsellor abc")
    assert [entry.session_id for entry in audit.latest(store, "ü")] == ["ü"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET person = 'bob' WHERE id = 3",
        "UPDATE audit SET at = '2020-01-01 00:00:00+00:00' WHERE id = 3",
        "UPDATE audit SET detail = NULL WHERE id = 3",
        "UPDATE audit SET action = 'sign-in' WHERE id = 3",
        "UPDATE audit SET subject = NULL WHERE id = 3",
        "UPDATE audit SET subject = (SELECT subject FROM audit WHERE id = 1) WHERE id = 3",
        "DELETE FROM audit WHERE id = 1",
        "DELETE FROM audit WHERE id = 3",
        "UPDATE audit SET id = id + 100 WHERE id = 3",
        "INSERT INTO audit (id, at, person, action, hash) "
        "SELECT 100, at, person, action, hash FROM audit WHERE id = 6",
        "INSERT INTO audit (id, at, person, action, hash) "
        "SELECT 0, at, person, action, hash FROM audit WHERE id = 1",
    ],
)
def test_a_changed_removed_inserted_or_moved_entry_is_found(store: Store, statement: str) -> None:
    fill(store)
    tamper(store, statement)
    assert verify(store).faults


def test_swapped_entries_are_found(store: Store) -> None:
    fill(store)
    tamper(
        store, *(f"UPDATE audit SET id = {b} WHERE id = {a}" for a, b in ((2, 99), (3, 2), (99, 3)))
    )
    assert any("entry 2 does not fit" in fault for fault in verify(store).faults)


def test_a_removed_tail_is_found_by_the_recorded_head(store: Store) -> None:
    fill(store)
    tamper(store, "DELETE FROM audit WHERE id > 4")
    [fault] = verify(store).faults
    assert "the newest entry is 4, but entry 6 is recorded as the newest" in fault


@pytest.mark.parametrize("and_continue", [False, True])
def test_a_tail_removed_with_its_record_is_found_only_by_a_head_kept_elsewhere(
    store: Store, and_continue: bool
) -> None:
    fill(store)
    head = verify(store).head
    tamper(
        store,
        "DELETE FROM audit WHERE id > 4",
        "UPDATE installation SET value = (SELECT '4:' || hash FROM audit WHERE id = 4) "
        "WHERE name = 'audit-head'",
    )
    if and_continue:
        fill(store, 3)
    assert verify(store).faults == []
    [fault] = verify(store, head).faults
    assert (
        f"entry 6 of the given head {'has another hash' if and_continue else 'is missing'}" in fault
    )


def test_a_deleted_record_of_the_head_is_found_and_writing_goes_on(store: Store) -> None:
    fill(store)
    tamper(store, "DELETE FROM installation WHERE name = 'audit-head'")
    assert "(none) is recorded as the newest" in verify(store).faults[0]
    fill(store, 1)
    assert verify(store).entries == 7


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        (
            "UPDATE audit_subjects SET value = 's9' WHERE value = 's1'",
            "assigned to another session",
        ),
        ("DELETE FROM audit_subjects WHERE value = 's1'", "whose row was removed"),
        (
            "UPDATE audit_subjects SET value = 'erased:abc', salt = NULL WHERE value = 's1'",
            "never erased",
        ),
    ],
)
def test_entries_given_to_another_session_are_found(
    store: Store, statement: str, fault: str
) -> None:
    fill(store)
    tamper(store, statement)
    [found] = verify(store).faults
    assert found.startswith("2 entries")
    assert fault in found


def test_erasures_and_rotations_leave_the_chain_intact(store: Store) -> None:
    fill(store)
    counsellor = store.privacy.pseudonym("noor@example.org")
    audit.record(store, "sue", AuditAction.READ_COUNSELLOR, counsellor=counsellor)
    head = verify(store).head
    erasure.erase(store, ["s0", "s1"], NOW)
    assert verify(store, head).faults == []
    erasure.forget_counsellor(store, "noor@example.org")
    checked = verify(store, head)
    assert (checked.entries, checked.faults, checked.unnamed) == (7, [], 3)
    names = {entry.session_id for entry in audit.latest(store)}
    assert not names & {"s0", "s1"}
    assert {row["salt"] is None for row in rows(store, tables.audit_subjects)} == {True, False}
    assert audit.latest(store)[0].detail == "counsellor (erased)"
    fill(store, 1)
    assert [entry.session_id for entry in audit.latest(store, "s0")] == ["s0"]


def test_a_rotation_of_pseudonyms_leaves_the_chain_intact(
    upgraded_url: str, opened: Opened, tmp_path
) -> None:
    file = tmp_path / "pseudonyms"
    sources.create(file, new_key())
    store = prepare(open_store(upgraded_url, pseudonym=KeySource("P", file=file)))
    fill(store)
    erasure.erase(store, ["s0"], NOW)
    pseudonym_key.rotate(store, store.secrets.pseudonym)
    checked = verify(store)
    assert (checked.entries, checked.faults, checked.unnamed) == (6, [], 1)
    store.close()


def test_concurrent_writers_make_one_chain(store: Store, other: Store) -> None:
    def write(own: Store) -> None:
        for number in range(10):
            audit.record_all(own, "sue", READ, [f"s{number}", "shared"])

    writers = [threading.Thread(target=write, args=(own,)) for own in (store, other, store)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    checked = verify(store)
    assert (checked.entries, checked.faults) == (60, [])
    assert len(rows(store, tables.audit_subjects)) == 11


def test_concurrent_readers_of_pages_make_one_chain(store: Store, other: Store) -> None:
    """Entries about known subjects are appended without a lock, if no one else was faster."""
    audit.record_all(store, "sue", READ, ["s0", "s1"])

    def read(own: Store) -> None:
        for number in range(10):
            audit.record(own, "sue", READ, (None, "s0", "s1", "new")[number % 4])

    readers = [threading.Thread(target=read, args=(own,)) for own in (store, other, store, other)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    checked = verify(store)
    assert (checked.entries, checked.faults) == (42, [])
    assert len(rows(store, tables.audit_subjects)) == 3


def test_an_entry_about_an_erased_session_gets_a_new_subject(store: Store) -> None:
    fill(store)
    erasure.erase(store, ["s0"], NOW)
    audit.record(store, "sue", READ, "s0")
    checked = verify(store)
    assert (checked.entries, checked.faults, checked.unnamed) == (7, [], 1)
    assert [entry.session_id for entry in audit.latest(store, "s0")] == ["s0"]


def test_a_deleted_record_of_the_head_is_made_again(store: Store) -> None:
    fill(store)
    execute(store, f"DELETE FROM installation WHERE name = '{audit_chain.HEAD}'")
    audit.record(store, "sue", READ, "s0")
    assert (verify(store).entries, verify(store).faults) == (7, [])


@pytest.mark.parametrize(
    "statement", ["UPDATE audit SET person = 'x'", "DELETE FROM audit", "TRUNCATE audit"]
)
def test_no_statement_of_the_service_changes_entries(store: Store, statement: str) -> None:
    fill(store, 2)
    if statement.startswith("TRUNCATE") and store.engine.dialect.name == "sqlite":
        pytest.skip("SQLite has no TRUNCATE")
    with pytest.raises(StoreError, match="the audit trail cannot be changed"):
        execute(store, statement)
    assert verify(store).entries == 2


def test_a_role_that_does_not_own_the_tables_cannot_disable_the_protection(
    request: pytest.FixtureRequest, opened: Opened
) -> None:
    """The role has the grants of docs/audit.md: it can write entries, and nothing else."""
    server: Server = request.getfixturevalue("server")
    url = databases.postgresql(server)
    owner = prepare(opened(url))
    block = (ROOT / "docs" / "audit.md").read_text("utf-8").partition("```sql\n")[2]
    grants = block.partition("```")[0].replace("rapport_service", ROLE).split(";")
    execute(owner, f"DROP ROLE IF EXISTS {ROLE}", *filter(str.strip, grants))
    service = opened(sa.make_url(url).set(username=ROLE).render_as_string(hide_password=False))
    prepare(service)
    fill(service, 5)
    for statement in (
        "UPDATE audit SET person = 'x'",
        "DELETE FROM audit",
        "TRUNCATE audit",
        "ALTER TABLE audit DISABLE TRIGGER ALL",
        "DROP FUNCTION audit_refuse_change() CASCADE",
        "DROP TABLE audit",
    ):
        with pytest.raises(StoreError):
            execute(service, statement)
    execute(owner, f"GRANT ALL ON audit TO {ROLE}")
    with pytest.raises(StoreError, match="the audit trail cannot be changed"):
        execute(service, "DELETE FROM audit")
    assert verify(service).entries == 5
    service.close()
    execute(owner, f"DROP OWNED BY {ROLE}", f"DROP ROLE {ROLE}")
    owner.close()
    server.drop(url)


OLD = (
    "INSERT INTO audit (at, person, action, session_id, detail) "
    "VALUES ('2026-01-05 10:00:0{0}.00012{0}+00:00', 'sue', '{1}', {2}, {3})"
)


def test_existing_entries_are_chained_and_a_downgrade_restores_them(
    empty_url: str, opened: Opened
) -> None:
    store = opened(empty_url)
    schema.upgrade(store, "0010")
    with store.engine.begin() as connection:
        for number, (action, session, detail) in enumerate(
            [
                ("read transcript", "'s'", "'api'"),
                ("read counsellor", "NULL", "'counsellor abc'"),
                ("read transcript", "'erased:xyz'", "NULL"),
                ("read transcript", "'s'", "NULL"),
            ]
        ):
            connection.execute(sa.text(OLD.format(number, action, session, detail)))
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("DELETE FROM audit WHERE false"))
        connection.execute(
            sa.text("INSERT INTO erasures (digest, at) VALUES ('xyz', '2026-01-05 10:00:00')")
        )
    schema.upgrade(store)
    prepare(store)
    checked = verify(store)
    assert (checked.entries, checked.faults, checked.unnamed) == (4, [], 1)
    audit.record(store, "sue", READ, "s")
    assert verify(store, checked.head).faults == []
    expected = [
        ("s", "api"),
        (None, "counsellor abc"),
        ("erased:xyz", None),
        ("s", None),
        ("s", None),
    ]
    assert [(e.session_id, e.detail) for e in reversed(audit.latest(store))] == expected
    schema.downgrade(store, "0010")
    with store.engine.connect() as connection:
        query = sa.text("SELECT session_id, detail FROM audit ORDER BY id")
        assert [tuple(row) for row in connection.execute(query)] == expected
    schema.upgrade(store)
    assert verify(store).faults == []


@pytest.mark.parametrize("text", ["", "7", "7:abc", f"x:{'0' * 64}"])
def test_a_head_of_another_form_is_rejected(text: str) -> None:
    with pytest.raises(RapportError, match="ID:HASH"):
        parse_head(text)
