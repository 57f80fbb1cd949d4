"""``rapport analyse``: what it prints, and what it says where it cannot."""

import csv
import io
import json
import re

import pytest
from typer.testing import CliRunner

from stream_app import cli, extras
from stream_app.store.stream.repository import Store


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


def test_tables_are_readable_on_80_columns(
    simulated: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is longer, no word is broken, and a figure stands on one line with its interval."""
    monkeypatch.setenv("RAPPORT_DATABASE_URL", str(simulated.engine.url))
    monkeypatch.setenv("COLUMNS", "80")
    for question in (["over-time", "--measure", "empathy_index"], ["associations"]):
        result = CliRunner().invoke(cli.app, ["analyse", *question])
        assert result.exit_code == 0, result.output
        lines = result.output.splitlines()
        assert max(map(len, lines)) <= 80
        figures = [
            line for line in lines if re.search(r"\[-?\d+\.\d{3}, -?\d+\.\d{3}\] +\d+ +\d+", line)
        ]
        assert len(figures) >= 4, result.output
        words = set(re.findall(r"[a-z]{4,}", " ".join(lines)))
        assert {"counsellors", "compared"} & words


def test_formats_have_the_same_figures(simulated: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAPPORT_DATABASE_URL", str(simulated.engine.url))
    asked = ["analyse", "service-levels", "--measure", "empathy_index"]

    def given(form: str) -> str:
        result = CliRunner().invoke(cli.app, [*asked, "--format", form])
        assert result.exit_code == 0, result.output
        return result.output

    found = json.loads(given("json"))
    rows = list(csv.DictReader(io.StringIO(given("csv"))))
    estimates = [row for row in rows if row["part"] == "estimate"]
    assert [float(row["value"]) for row in estimates] == [
        each["value"] for each in found["estimates"]
    ]
    points = [point for curve in found["curves"] for point in curve["points"]]
    assert len(rows) == len(estimates) + len(points)
    table = [line for line in given("md").splitlines() if line.startswith("|")]
    assert len(table) == 2 + len(estimates)
    assert len({line.count("|") for line in table}) == 1
    refused = CliRunner().invoke(cli.app, [*asked, "--json", "--format", "csv"])
    assert refused.exit_code == 2


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
