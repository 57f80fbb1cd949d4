"""What each command reveals and records. Commands have no roles: see docs/threat-model.md.

An operator can read the database and its keys, and so data of every team. Each command that changes
who reads what, or what is stored about people, is audited, and none prints text.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from stream_app.analytics.views import schema
from stream_app.cli import app
from stream_app.store.accounts import audit
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.stream.repository import Store
from tests.store import databases, judging
from tests.store.batches import prepare
from tests.store.databases import open_store

PASSWORD = "seven grey herons waiting\n" * 2
TEXT = "That must have been hard"
OWN, FOREIGN = "north-0", "south-0"
"""Sessions of different teams: a command treats them alike."""


@dataclass(frozen=True)
class Row:
    """What a command does with stored sessions and accounts.

    Args:
        arguments: to run it with, after its name; None: it is not run here.
        audited: the action in the audit trail; None: it changes and reveals nothing about people.
        answers: what it asks for.
        sessions: whether it names the session that it is about.
    """

    arguments: tuple[str, ...] | None = None
    audited: str | None = None
    answers: str = ""
    sessions: bool = False


SERVICE = Row()
"""Runs until it is stopped, or works on topics alone."""
FILES = Row()
"""Works on files alone."""
NUMBERS = Row()
"""Checks, or computes numbers over many sessions; tested elsewhere."""
NEEDS_STOP = Row()
"""Needs an older database, or all processes stopped; tests/commands/test_keys.py runs it."""
ACCOUNT = "change account"
SINGLE_SIGN_ON = {
    "OIDC_ISSUER": "https://idp.example.org",
    "OIDC_CLIENT_ID": "rapport",
    "EXTERNAL_URL": "https://rapport.example.org",
}
COMMANDS = {
    "up": SERVICE,
    "worker": SERVICE,
    "web": SERVICE,
    "demo bench": SERVICE,
    "demo broker": SERVICE,
    "watch": SERVICE,
    "replay": SERVICE,
    "notify": SERVICE,
    "reviews ask": SERVICE,
    "notify test": SERVICE,
    "notify check": FILES,
    "dead-letters count": SERVICE,
    "dead-letters list": SERVICE,
    "dead-letters replay": SERVICE,
    "consent record": SERVICE,
    "demo history": SERVICE,
    "score": FILES,
    "import transcript": FILES,
    "import convokit": FILES,
    "import chat": FILES,
    "import matrix": SERVICE,
    "import webhooks": SERVICE,
    "bundle check": FILES,
    "bundle adapt": Row(("-o", "{file}", "--consent", "any"), "read records"),
    "bundle promote": Row(("nano", "--reason", "tried"), "change bundle"),
    "bundle rollback": Row(("--reason", "worse"), "change bundle"),
    "bundle routes": FILES,
    "intents check": FILES,
    "intents suggest": FILES,
    "intents test": FILES,
    "rules check": FILES,
    "rules test": FILES,
    "rules variables": FILES,
    "reviews check": FILES,
    "keys new": FILES,
    "config": Row(()),
    "doctor": NUMBERS,
    "db archive": NUMBERS,
    "report": Row(
        ("--from", "2026-01-01", "--to", "2026-02-01", "-o", "{file}"), "read statistics"
    ),
    "analyse": Row(("service-levels",), "read statistics"),
    "drift check": Row((), "read statistics"),
    "drift list": Row(()),
    "drift acknowledge": NUMBERS,
    "audit verify": Row(()),
    "db purge": NUMBERS,
    "db baselines": NUMBERS,
    "db upgrade": Row(()),
    "db views": Row(()),
    "db rollups": Row(()),
    "keys encrypt": Row((), "change keys"),
    "keys move": NEEDS_STOP,
    "keys rotate": Row((), "change keys"),
    "keys rotate-pseudonyms": NEEDS_STOP,
    "consent list": Row(("{session}",), "read records", sessions=True),
    "hold list": Row((), "read records"),
    "hold add": Row(("{session}", "--reason", "case 7"), "legal hold", sessions=True),
    "hold remove": Row(("{session}",), "legal hold", sessions=True),
    "erase": Row(("--session", "{session}", "--yes"), "erase", sessions=True),
    "export": Row(("--speaker", judging.NOOR, "-o", "{file}"), "subject access"),
    "reviews sample": Row(
        ("--team", "north", "--random", "1", "--days", "36500"), "assign session"
    ),
    "people list": Row(()),
    "people add": Row(("eve", "--role", "admin"), ACCOUNT, PASSWORD),
    "people team": Row(("sue", "--all-teams"), ACCOUNT),
    "people bind": Row(("sue", "1001"), ACCOUNT),
    "people password": Row(("sue",), ACCOUNT, PASSWORD),
    "people token": Row(("sue", "--label", "report"), ACCOUNT),
    "people revoke": Row(("sue", "--label", "old"), ACCOUNT),
    "people disable": Row(("sue",), ACCOUNT),
    "people studies admit": Row(("S-2", "stu", "--until", "2100-01-01"), ACCOUNT),
    "people studies end": Row(("S-1",), ACCOUNT),
    "people studies list": Row(()),
}
RUN = [
    pytest.param(name, row, session, id=f"{name} {session}" if row.sessions else name)
    for name, row in COMMANDS.items()
    if row.arguments is not None
    for session in ((OWN, FOREIGN) if row.sessions else (OWN,))
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of two teams and its keys."""
    folder = tmp_path_factory.mktemp("template")
    store = prepare(open_store(databases.sqlite(folder / "one.db")))
    schema.create_views(store)
    judging.fill(store, 1)
    judging.supervisor(store)
    people = People(store)
    people.add(Person("stu", PersonRole.STUDY, all_teams=True), None)
    people.create_token("sue", "old")
    store.close()
    return folder


@pytest.fixture
def store(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_settings_kept: object
) -> Iterator[Store]:
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    url = f"sqlite:///{tmp_path}/one.db"
    monkeypatch.setenv("RAPPORT_DATABASE_URL", url)
    opened = open_store(url)
    yield opened
    opened.close()


def commands(group: object, path: tuple[str, ...] = ()) -> Iterator[str]:
    inner = getattr(group, "commands", None)
    if inner is None or (path and getattr(group, "invoke_without_command", False)):
        yield " ".join(path)
    for name, command in (inner or {}).items():
        yield from commands(command, (*path, name))


def test_the_table_covers_every_command() -> None:
    assert set(commands(get_command(app))) == COMMANDS.keys()


@pytest.mark.parametrize(("name", "row", "session"), RUN)
def test_commands(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    row: Row,
    session: str,
) -> None:
    runner = CliRunner()
    if name in ("bundle promote", "bundle rollback"):
        monkeypatch.setenv("RAPPORT_BUNDLE", str(tmp_path / "in-force.json"))
    if name == "people bind":
        for setting, value in SINGLE_SIGN_ON.items():
            monkeypatch.setenv(f"RAPPORT_{setting}", value)
    if name == "bundle rollback":
        for bundle in ("default", "nano"):
            runner.invoke(app, ["bundle", "promote", bundle, "--reason", "tried"])
    if name == "hold remove":
        runner.invoke(app, ["hold", "add", session, "--reason", "case 7"])
    if name == "people studies end":
        runner.invoke(app, ["people", "studies", "admit", "S-1", "stu", "--until", "2100-01-01"])
    before = len(audit.latest(store))
    file = tmp_path / "about-noor.zip"
    assert row.arguments is not None
    filled = [each.format(session=session, file=file) for each in row.arguments]
    result = runner.invoke(app, [*name.split(), *filled], input=row.answers)
    nothing_to_adapt_to = 1 if name == "bundle adapt" else 0
    assert result.exit_code == nothing_to_adapt_to, (result.output, result.exception)
    assert TEXT not in result.output
    assert PASSWORD.splitlines()[0] not in result.output
    entries = audit.latest(store)[: len(audit.latest(store)) - before]
    if row.audited is None:
        assert entries == []
    else:
        assert {entry.action for entry in entries} - {"grant reading"} == {row.audited}
        assert all(TEXT not in str(entry) for entry in entries)
