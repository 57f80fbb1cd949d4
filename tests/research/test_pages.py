"""The pages in docs/methods are those of the committed result files."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

import typer
from typer.testing import CliRunner

from research import baselines_page
from research.compare import __main__ as compare
from research.instruction_seq2seq import page as instruction_seq2seq
from research.low_resource import page as low_resource
from research.micromodels import page as micromodels
from research.transfer import page as transfer
from research.window_classifier import page as window_classifier

DOCS = Path(__file__).parents[3] / "docs"
PAGES = DOCS / "methods"
RESULTS = PAGES / "results"


def result(name: str) -> dict[str, object]:
    path = RESULTS / f"{name}.json"
    content: dict[str, object] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return content


def test_the_page_on_baselines(tmp_path: Path) -> None:
    written = baselines_page.write(RESULTS, DOCS / "evaluation", tmp_path)
    assert written.read_text("utf-8") == (PAGES / written.name).read_text("utf-8")


def test_the_page_on_transfer(tmp_path: Path) -> None:
    written = transfer.write(result("transfer"), result("transfer_layers"), tmp_path)
    assert written.read_text("utf-8") == (PAGES / written.name).read_text("utf-8")


def test_the_page_on_low_resource(tmp_path: Path) -> None:
    written = low_resource.write(result("low_resource"), tmp_path)
    assert written.read_text("utf-8") == (PAGES / written.name).read_text("utf-8")


def test_the_page_on_micromodels(tmp_path: Path) -> None:
    written = micromodels.write(result("micromodel_seeds"), tmp_path)
    assert written.read_text("utf-8") == (PAGES / written.name).read_text("utf-8")


@pytest.mark.parametrize("page", [window_classifier, instruction_seq2seq])
def test_the_pages_on_windows_and_instructions(page: ModuleType, tmp_path: Path) -> None:
    written = page.write(RESULTS, tmp_path)
    assert written.read_text("utf-8") == (PAGES / written.name).read_text("utf-8")


def test_the_comparison(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(compare.main)
    out = tmp_path / "comparison.md"
    options = ["--no-cost", f"--results={RESULTS}", f"--evaluation={DOCS / 'evaluation'}"]
    result = CliRunner().invoke(app, [*options, f"--out={out}"], catch_exceptions=False)
    assert result.exit_code == 0
    assert out.read_text("utf-8") == (PAGES / "comparison.md").read_text("utf-8")
