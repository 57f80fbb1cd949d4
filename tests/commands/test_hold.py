"""`rapport hold` and `rapport consent`, and the refusal to erase a session on hold."""

import pytest
from typer.testing import CliRunner, Result

from stream_app.cli import app
from stream_app.contracts.events import Consent, ConsentStatus, decode
from stream_app.core.session.ports import Message
from stream_app.errors import BrokerUnavailable, RapportError
from stream_app.store.accounts import audit
from stream_app.store.database import tables
from stream_app.store.lifecycle.holds import HoldError, SessionHeld
from stream_app.store.stream.repository import Store
from tests.commands.conftest import NewStore
from tests.store import judging
from tests.store.reading import rows


@pytest.fixture
def store(new_store: NewStore) -> Store:
    return new_store(1)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def failure(kind: type[RapportError], *arguments: str) -> str:
    problem = run(*arguments).exception
    assert isinstance(problem, kind)
    return str(problem)


def test_a_hold_is_added_listed_and_removed(store: Store) -> None:
    assert run("hold", "add", "north-0", "--reason", "case 7").output == "on legal hold\n"
    listed = run("hold", "list").output
    assert listed.startswith("north-0  since ")
    assert listed.endswith("case 7\n")
    assert "already" in failure(HoldError, "hold", "add", "north-0", "--reason", "again")
    assert run("hold", "remove", "north-0").exit_code == 0
    assert run("hold", "list").output == ""
    assert {row["person"] for row in rows(store, tables.audit)} == {audit.COMMAND_LINE}


def test_erase_refuses_a_session_on_hold(store: Store) -> None:
    run("hold", "add", "north-0", "--reason", "case 7")
    arguments = ("erase", "--speaker", judging.NOOR, "--session", "south-0", "--yes")
    assert "1 of 2 sessions are on legal hold" in failure(SessionHeld, *arguments)
    assert len(rows(store, tables.sessions)) == 2
    assert run("erase", "--session", "south-0", "--yes").exit_code == 0


def test_a_consent_record_is_sent_and_audited(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Message] = []

    async def keep(_: object, message: Message) -> None:
        sent.append(message)

    monkeypatch.setattr("stream_app.cli.privacy._send", keep)
    options = ("--status", "withdrawn", "--version", "2", "--source", "phone", "--speaker", "c")
    assert run("consent", "record", "north-0", *options).exit_code == 0
    [message] = sent
    event = decode(message.value or b"")
    assert isinstance(event, Consent)
    assert (message.topic, message.key) == ("dialogue.turns", b"north-0")
    assert (event.status, event.version, event.source) == (ConsentStatus.WITHDRAWN, "2", "phone")
    [entry] = audit.latest(store)
    found = entry.action, entry.session_id, entry.detail
    assert found == ("record consent", "north-0", "withdrawn")
    assert "`$.version`" in failure(
        RapportError, "consent", "record", "s", "--status", "given", "--version", "v" * 60
    )


def test_without_a_broker_a_consent_record_is_an_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAPPORT_KAFKA_BROKERS", "127.0.0.1:1")
    failure(BrokerUnavailable, "consent", "record", "north-0", "--status", "given")


def test_stored_records_are_listed(store: Store) -> None:
    output = run("consent", "list", "north-0").output
    assert "given" in output
    assert "turn 0" in output
    assert "no such session" in failure(RapportError, "consent", "list", "nobody")
