"""RAPPORT_BUNDLE_DIGEST: every process refuses a bundle with another digest."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from stream_app import bootstrap, cli
from stream_app.errors import BundleError
from stream_app.processes import doctor
from stream_app.processes import worker as worker_command
from stream_app.settings import Settings

OTHER = "0" * 64
run = CliRunner().invoke


def digest() -> str:
    printed = run(cli.app, ["bundle", "check"]).stdout.splitlines()
    assert printed[0].endswith("-int8")
    name, _, value = printed[1].partition("=")
    assert name == "RAPPORT_BUNDLE_DIGEST"
    return value


def test_the_printed_digest_is_accepted_and_shown_by_the_doctor() -> None:
    pinned = Settings(bundle_digest=digest())
    assert bootstrap.bundle(pinned).digest == digest()
    assert f"digest {digest()} (pinned)" in doctor._bundle(pinned)
    assert f"digest {digest()} (not pinned" in doctor._bundle(Settings())


@pytest.mark.parametrize("start", [worker_command.run, bootstrap.web, bootstrap.scorer])
def test_worker_console_and_scorer_refuse_another_digest(start: Callable[[Settings], None]) -> None:
    with pytest.raises(BundleError) as refused:
        start(Settings(bundle_digest=OTHER))
    assert OTHER in str(refused.value)
    assert digest() in str(refused.value)
    assert "`rapport bundle check " in str(refused.value)


def test_score_refuses_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAPPORT_BUNDLE_DIGEST", OTHER)
    (tmp_path / "log.jsonl").write_text("", "utf-8")
    ended = run(cli.app, ["score", str(tmp_path / "log.jsonl")])
    assert isinstance(ended.exception, BundleError)


def test_a_value_that_is_no_digest_is_invalid() -> None:
    with pytest.raises(ValidationError):
        Settings(bundle_digest="abc")
