"""The pages in docs/methods are those of the committed result files."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")
pytest.importorskip("interpret.glassbox")

import typer
from typer.testing import CliRunner

from research import page
from research.compare import __main__ as compare
from research.registry import METHODS, load

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "methods"
RESULTS = ROOT / "research" / "results"


@pytest.mark.parametrize("name", [name for name in METHODS if load(name).page])
def test_a_page_is_that_of_the_results(name: str, tmp_path: Path) -> None:
    written = page.write(load(name), RESULTS, tmp_path)
    assert written is not None
    assert written.read_text("utf-8") == (PAGES / written.name).read_text("utf-8")


def test_the_comparison(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(compare.main)
    options = ["--no-cost", f"--results={RESULTS}", f"--pages={tmp_path}"]
    options.append(f"--evaluation={ROOT / 'docs' / 'evaluation'}")
    result = CliRunner().invoke(app, options, catch_exceptions=False)
    assert result.exit_code == 0
    for name in ("comparison.md", "comparison.svg"):
        assert (tmp_path / name).read_bytes() == (PAGES / name).read_bytes()


def test_results_are_kept_out_of_the_pages() -> None:
    assert not list(PAGES.rglob("*.json"))
