"""``rapport analyse``: what it prints, and what it says where it cannot."""

import json

import pytest
from typer.testing import CliRunner

from stream_app import cli, extras
from stream_app.store.repository import Store


def run(store: Store, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    monkeypatch.setenv("RAPPORT_DATABASE_URL", str(store.engine.url))
    monkeypatch.setenv("COLUMNS", "200")
    result = CliRunner().invoke(cli.app, ["analyse", *arguments])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_a_table_with_its_method_and_agreement(
    simulated: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = run(simulated, monkeypatch, "over-time", "--measure", "empathy_index")
    assert "change per month within counsellors" in printed
    assert "Sharma et al. 2020" in printed
    assert "synthetic-1, emotional reactions: not enough ratings yet" in printed
    assert "Associations, not effects" in printed


def test_json_has_estimates_and_curves(simulated: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = run(
        simulated, monkeypatch, "over-time", "--json", "--to", "2025-04-01", "--team", "north"
    )
    found = json.loads(printed)
    assert found["until"] == "2025-04-01"
    assert found["bundles"] == ["synthetic-1", "synthetic-2"]
    assert {each["measure"] for each in found["estimates"]} >= {"empathy_index"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["why"], "known questions"), (["over-time", "--measure", "x"], "has the measures")],
)
def test_an_unknown_question_or_measure_is_refused(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(cli.app, ["analyse", *arguments])
    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", " ").split())


def test_without_the_extra_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extras, "ANALYTICS", ("pandas", "no_such_package"))
    result = CliRunner().invoke(cli.app, ["analyse", "over-time"])
    assert isinstance(result.exception, extras.ExtraMissing)
    assert "rapport-empathy[analytics]" in str(result.exception)
    assert "no_such_package" in str(result.exception)
    assert "pandas" not in str(result.exception)
