"""`python -m research`, with methods that take no time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

pytest.importorskip("torch")
pytest.importorskip("interpret.glassbox")

from typer.testing import CliRunner, Result

from research import registry, results
from research.__main__ import app
from research.method import Content, Inputs, Method, MethodError, Row, Run


@dataclass(frozen=True)
class Toy(Method):
    name: ClassVar = "toy"
    paper: ClassVar = "of nobody"
    over_folds: ClassVar = False

    weight: float = 1.0
    words: tuple[str, ...] = ("one",)

    def rows(self) -> dict[str, Row]:
        return {"first": Row("the first"), "lacking": Row("needs a file", needs=Path("nowhere"))}

    def run(self, row: str, fold: int, inputs: Inputs) -> Any:
        return {"weight": self.weight, "words": list(self.words), "fold": fold}

    def stored(self, content: Content, row: str, runs: Sequence[Run]) -> Content:
        return content | {row: runs[0].found}


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("toy")
    module.Toy = Toy  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "toy", module)
    monkeypatch.setitem(registry.METHODS, "toy", "toy:Toy")


def invoke(*options: str) -> Result:
    return CliRunner().invoke(app, options)


def test_rows_and_settings_reach_the_result_file(tmp_path: Path) -> None:
    changes = ["--set=weight=0.5", "--set=words=two", "--set=words=three=3"]
    result = invoke("run", "toy", "--fold=2", f"--out={tmp_path}", *changes)
    assert result.exit_code == 0
    assert "nowhere is missing" in result.stdout
    expected = {"first": {"weight": 0.5, "words": ["two", "three=3"], "fold": 2}}
    assert results.read("toy", tmp_path) == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("other",), "no method other; there are micromodels"),
        (("toy", "--row=second"), "no row second; there are first"),
        (("toy", "--set=height=1"), "no setting height; there are weight, words"),
        (("toy", "--set=weight=much"), "weight"),
        (("toy", "--fold=0", "--fold=1"), "toy runs on one fold"),
    ],
)
def test_mistakes_are_named(options: tuple[str, ...], words: str) -> None:
    assert words in str(invoke("run", *options).exception)


def test_a_method_without_a_page_says_so() -> None:
    assert "toy has no page" in str(invoke("page", "toy").exception)
    with pytest.raises(MethodError, match="no scorer"):
        Toy().scorer("first", [])


def test_every_method_is_listed_with_its_paper_rows_and_settings() -> None:
    listed = invoke("list").stdout
    for name in registry.METHODS:
        method = registry.load(name)
        assert method.name == name
        assert f"{name}: {method.paper}" in listed
        for key, row in method.rows().items():
            assert f"  {key}: {row.words}" in listed
            assert method.row(key) == row
    assert "--set: weight=1.0" in listed
