"""``rapport audit verify``."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner, Result

from stream_app.cli import app
from stream_app.errors import RapportError
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.stream.repository import Store
from tests.store import databases
from tests.store.databases import open_store


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    url = databases.sqlite(tmp_path / "rapport.db")
    monkeypatch.setenv("RAPPORT_DATABASE_URL", url)
    opened = open_store(url)
    for number in range(3):
        audit.record(opened, "sue", AuditAction.READ_TRANSCRIPT, f"s{number}")
    return opened


def verify(*options: str) -> Result:
    return CliRunner().invoke(app, ["audit", "verify", *options])


def test_an_intact_trail_prints_its_head_which_a_later_check_takes(store: Store) -> None:
    first = verify()
    assert first.exit_code == 0, first.output
    intact, head = first.stdout.splitlines()
    assert intact == "3 entries, chain intact"
    audit.record(store, "sue", AuditAction.EXPORT)
    assert verify("--head", head.removeprefix("head ")).exit_code == 0
    store.close()


def test_a_changed_trail_fails_with_a_line_for_each_fault(store: Store) -> None:
    head = verify().stdout.splitlines()[1].removeprefix("head ")
    with store.engine.begin() as connection:
        for event in ("update", "delete"):
            connection.execute(sa.text(f"DROP TRIGGER audit_{event}"))
        connection.execute(sa.text("DELETE FROM audit WHERE id = 3"))
    store.close()
    failed = verify("--head", head)
    assert failed.exit_code == 1
    assert isinstance(failed.exception, RapportError)
    lines = str(failed.exception).splitlines()
    assert lines[0] == "the audit trail was tampered with"
    assert "entry 3 is recorded as the newest" in lines[1]
    assert "entry 3 of the given head is missing" in lines[2]


def test_a_malformed_head_is_rejected(store: Store) -> None:
    store.close()
    assert "ID:HASH" in str(verify("--head", "newest").exception)
