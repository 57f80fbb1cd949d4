"""`rapport db purge` does what a worker refuses, after a person has agreed."""

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner, Result

from stream_app.bootstrap.worker_process import purge_expired
from stream_app.cli import app
from stream_app.errors import ClocksDisagree
from stream_app.settings import Settings
from stream_app.store.database import clocks, tables
from stream_app.store.lifecycle.retention import PurgeRefused
from stream_app.store.stream.repository import Store
from tests.commands.conftest import NewStore
from tests.store.reading import rows


@pytest.fixture
def now() -> datetime:
    """Clocks that differ by minutes are refused: the time of the test, not of the import."""
    return datetime.now(UTC)


@pytest.fixture
def store(new_store: NewStore, now: datetime) -> Store:
    """Its texts were stored before all retention, and no purge has run."""
    made = new_store(1)
    with made.transaction() as connection:
        connection.execute(sa.update(tables.turns).values(stored_at=now - timedelta(days=50)))
    return made


def run(*arguments: str, answer: str = "") -> Result:
    return CliRunner().invoke(app, ["db", "purge", *arguments], input=answer)


def texts(store: Store) -> int:
    return sum(row["text"] is not None for row in rows(store, tables.turns))


def test_what_a_worker_refuses_is_purged_after_a_person_has_agreed(
    store: Store, now: datetime
) -> None:
    stored = texts(store)
    with pytest.raises(PurgeRefused, match="run `rapport db purge`"):
        list(purge_expired(Settings(), store, now))
    asked = run(answer="n\n")
    assert f"{stored} of {stored} texts have expired" in asked.output
    assert texts(store) == stored
    assert f"{stored} texts" in run("--yes").output
    assert texts(store) == 0
    before, after = rows(store, tables.audit)[-2:]
    assert before["detail"].startswith(f"expired: {stored} texts")
    assert after["detail"].startswith("purged: ")
    assert f"{stored} texts" in after["detail"]
    assert {entry["action"] for entry in (before, after)} == {"erase"}
    assert list(purge_expired(Settings(), store, now)) == [], "it was today's"


def test_nobody_can_agree_to_a_wrong_clock(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "database_now", lambda _: now + timedelta(days=40))
    assert isinstance(run("--yes").exception, ClocksDisagree)
    assert texts(store) > 0
