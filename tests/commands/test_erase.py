"""`rapport erase` asks, reports removed rows, and refuses unknown speakers."""

import pytest
from typer.testing import CliRunner, Result

from stream_app.cli import app, main
from stream_app.errors import RapportError
from stream_app.processes import doctor
from stream_app.settings import Settings
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from tests.commands.conftest import NewStore
from tests.store import judging
from tests.store.reading import rows


@pytest.fixture
def store(new_store: NewStore) -> Store:
    return new_store(2)


def run(*arguments: str, answer: str = "") -> Result:
    return CliRunner().invoke(app, ["erase", *arguments], input=answer)


def sessions(store: Store) -> list[str]:
    return [row["session_id"] for row in rows(store, tables.sessions)]


def test_erase_asks_for_confirmation(store: Store) -> None:
    result = run("--session", "north-0", answer="n\n")
    assert result.exit_code == 1
    assert "with 12 turns" in result.output
    assert len(sessions(store)) == 4
    assert run("--session", "north-0", answer="y\n").exit_code == 0
    assert sessions(store) == ["north-1", "south-0", "south-1"]


def test_erase_reports_what_it_removed_and_kept_without_text(store: Store) -> None:
    result = run("--speaker", judging.NOOR, "--session", "south-1", "--yes").output
    assert sessions(store) == ["south-0"]
    assert "3 sessions to erase; 3 of them are stored, with 36 turns" in result
    assert "      36  turns\n" in result
    assert "keys: 3 destroyed" in result
    assert "database file: rewritten without the deleted rows, log truncated" in result
    assert "dead-letters: no broker answered" in result
    assert "dialogue.turns: the original events, with their text, until retention.ms (7" in result
    assert "hard" not in result
    stored = run("--session", "south-1", "--receipt").output
    assert stored.startswith("south-1, erased ")
    assert "      12  turns\n" in stored
    assert "Not finished: a worker is still to remove dead letters" in stored
    assert sessions(store) == ["south-0"]


def test_what_was_not_erased_has_no_receipt(store: Store) -> None:
    result = run("--session", "north-0", "--receipt")
    assert "there is no receipt" in str(result.exception)
    assert run("--speaker", judging.NOOR, "--receipt").exit_code == 2
    assert len(sessions(store)) == 4


def test_later_events_of_an_erased_unknown_session_are_ignored(store: Store) -> None:
    result = run("--session", "not-yet", "--yes")
    assert result.exit_code == 0
    assert "1 sessions to erase; 0 of them are stored" in result.output
    assert store.find_erased(["not-yet"]) == {"not-yet"}


def test_erase_needs_a_session_or_a_speaker(store: Store) -> None:
    assert run("--yes").exit_code == 2
    assert len(sessions(store)) == 4


def test_a_speaker_without_sessions_is_an_error_without_the_name(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["rapport", "erase", "--speaker", "joan@example.org", "--yes"]
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert "check the speaker_id" in error
    assert "joan" not in error
    assert len(sessions(store)) == 4


def test_doctor_reports_an_erasure_that_no_worker_finishes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert doctor._erasures(Settings()) == "all are finished"
    run("--session", "south-1", "--yes")
    assert doctor._erasures(Settings()) == "a worker is about to finish one"
    monkeypatch.setattr(doctor, "ERASURE_HOURS", 0)
    with pytest.raises(RapportError, match="is not finished: check that a worker runs"):
        doctor._erasures(Settings())
