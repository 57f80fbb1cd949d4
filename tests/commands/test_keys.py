"""`rapport keys` and what `rapport doctor` says of keys."""

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from pydantic import SecretStr
from typer.testing import CliRunner

from stream_app.cli import app
from stream_app.processes import doctor
from stream_app.sealing.sources import parse
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.database import tables
from stream_app.store.sessions import transcripts
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store, open_store
from tests.store import databases
from tests.store.batches import prepare, process, turn

WORD = "quagmirelle"
Opened = Callable[[], Store]


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_settings_kept: object) -> str:
    url = databases.sqlite(tmp_path / "one.db")
    monkeypatch.setenv("RAPPORT_DATABASE_URL", url)
    store = prepare(open_store(url))
    store.commit(process([turn(seq, text=WORD) for seq in range(2)]))
    store.close()
    return url


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["keys", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


def said(url: str) -> list[str | None]:
    store = open_store(url)
    try:
        return [each.text for each in transcripts.read(store, ALL_SESSIONS, "s")]
    finally:
        store.close()


def of_keys(url: str) -> tuple[bool, str]:
    settings = Settings().model_copy(update={"database_url": SecretStr(url)})
    found = doctor._finding("keys", doctor._keys, settings)
    return found.healthy, found.detail


def test_new_prints_a_key_or_puts_it_first_into_a_file(tmp_path: Path) -> None:
    [key] = parse(run("new"), "it")
    assert len(key) == 32
    file = tmp_path / "keys"
    run("new", file)
    [first] = parse(file.read_text(), "it")
    run("new", file)
    assert parse(file.read_text(), "it")[1] == first
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_master_key_is_rotated_and_the_old_one_destroyed(url: str, tmp_path: Path) -> None:
    file = tmp_path / "one.db.master-key"
    [old] = parse(file.read_text(), "it")
    run("new", file)
    healthy, detail = of_keys(url)
    assert healthy
    assert "older master keys those of 1: `rapport keys rotate`" in detail
    assert "1 keys of sessions" in run("rotate")
    assert said(url) == [WORD, WORD]
    assert "destroyed: " in run("rotate", "--destroy-old")
    [new] = parse(file.read_text(), "it")
    assert new != old
    assert said(url) == [WORD, WORD]
    assert of_keys(url)[1].endswith("0 older master keys are unused")
    store = open_store(url)
    details = [entry.detail for entry in audit.latest(store)]
    store.close()
    assert any("master keys destroyed" in str(detail) for detail in details)


def test_pseudonyms_are_rotated_by_command(url: str) -> None:
    assert run("rotate-pseudonyms").startswith("1 pseudonyms replaced")
    assert of_keys(url)[0]


def test_doctor_says_what_is_wrong_with_the_keys(url: str, tmp_path: Path) -> None:
    assert of_keys(url)[0]
    file = tmp_path / "one.db.master-key"
    file.chmod(0o644)
    assert of_keys(url) == (False, f"others may read {file}: chmod 600")
    file.chmod(0o600)
    good = file.read_text()
    file.unlink()
    healthy, detail = of_keys(url)
    assert not healthy
    assert "restore the file" in detail
    assert not file.exists(), "doctor creates nothing"
    run("new", file)
    healthy, detail = of_keys(url)
    assert not healthy
    assert "the text of 1 sessions cannot be read" in detail
    file.write_text(good)
    store = open_store(url)
    with store.transaction() as connection:
        connection.execute(sa.update(tables.turns).values(text=WORD))
    store.close()
    healthy, detail = of_keys(url)
    assert not healthy
    assert "run `rapport keys encrypt`" in detail
    assert "2  turns.text" in run("encrypt")
    assert of_keys(url)[0]
    assert said(url) == [WORD, WORD]
