"""Commands are audited under the name of the operating system's user."""

import getpass
import os
import pwd
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stream_app.cli import app
from stream_app.store.accounts import audit
from stream_app.store.database.operator import operator
from tests.store import databases
from tests.store.databases import open_store


def test_the_operator_is_the_process_owner_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner = pwd.getpwuid(os.getuid()).pw_name
    for name in ("LOGNAME", "USER", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    assert getpass.getuser() == "somebody-else"
    assert operator({}) == f"(command line) {owner}"


def test_under_sudo_the_caller_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = pwd.getpwnam("daemon")
    monkeypatch.setattr(os, "getuid", lambda: 0)
    expected = f"(command line) {pwd.getpwuid(0).pw_name}, for daemon"
    assert operator({"SUDO_UID": str(daemon.pw_uid)}) == expected
    monkeypatch.setattr(os, "getuid", lambda: daemon.pw_uid)
    assert operator({"SUDO_UID": "0"}) == "(command line) daemon", "only root is believed"


def test_a_user_without_a_name_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 987654)
    assert operator({}) == "(command line) uid 987654"


def test_a_command_is_audited_with_the_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_settings_kept: object
) -> None:
    url = databases.sqlite(tmp_path / "rapport.db")
    monkeypatch.setenv("RAPPORT_DATABASE_URL", url)
    arguments = ["people", "add", "ana", "--role", "analyst", "--no-password"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    store = open_store(url)
    [entry] = audit.latest(store)
    assert (entry.person, entry.action) == (operator(), "change account")
    store.close()
