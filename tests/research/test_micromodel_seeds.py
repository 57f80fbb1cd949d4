"""Fewer seeds, and explanations that add up, on texts with known similarities."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("interpret.glassbox")

import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from models.data.corpora import Turn, one_hot
from models.labels import COUNSELLOR, RATIONALE_ORDER
from research.__main__ import app
from research.micromodels import explain as explain_command
from research.micromodels import method
from research.micromodels.explanation import explain, importances, in_words
from research.micromodels.model import Micromodels
from research.micromodels.seed_sizes import drawn, most_triggered, over_all_folds, study
from tests.models.tiny import tiny_tokenizer
from tests.research.test_micromodels import embed, few_steps, pairs  # noqa: F401  # a fixture

THETA = 0.7


def test_the_most_triggered_seeds_are_kept_and_counted_again_after_each_step() -> None:
    """Seed 2 inherits the sentences of seed 1, which is removed first."""
    products = np.array(
        [
            [0.9, 0.8, 0.1, 0.1],
            [0.9, 0.8, 0.1, 0.1],
            [0.1, 0.1, 0.1, 0.8],
            [0.1, 0.9, 0.8, 0.1],
            [0.1, 0.2, 0.8, 0.1],
            [0.6, 0.1, 0.1, 0.1],
        ]
    )
    kept = most_triggered(products, THETA, [3, 2, 1])
    assert kept[3].tolist() == [0, 1, 2], "seeds 1, 2 and 3 tie and keep their order"
    assert set(kept[2].tolist()) == {0, 1}
    assert kept[1].tolist() == [0]
    # Without seed 1, seed 2 is nearest to two sentences and outdoes seed 3.
    assert most_triggered(products[:, [0, 2, 3]], THETA, [2])[2].tolist() == [0, 1]


@given(st.integers(1, 40), st.lists(st.integers(1, 40), min_size=1, max_size=5, unique=True))
def test_smaller_sets_are_within_larger_ones(count: int, sizes: list[int]) -> None:
    sizes = sorted((size for size in sizes if size <= count), reverse=True)
    products = np.random.default_rng(count).random((30, count))
    for kept in (most_triggered(products, THETA, sizes), drawn(count, sizes, "x")):
        sets = [set(kept[size].tolist()) for size in sizes]
        assert [len(each) for each in sets] == sizes
        assert all(small <= large for large, small in itertools.pairwise(sets))


@pytest.fixture(scope="module")
def fitted() -> Micromodels:
    return Micromodels(pairs(), embed, tiny_tokenizer())


def test_fewer_seeds_find_fewer_rationales_and_all_seeds_find_those_of_the_model(
    fitted: Micromodels,
) -> None:
    found = study(fitted, pairs(), pairs(12), fold=0, sizes=(15, 5, 1))
    rows = over_all_folds([found, found])
    for head in RATIONALE_ORDER:
        for choice in ("published", "training", "random"):
            shares = [rows[head][choice][size]["found"]["mean"] for size in rows[head][choice]]
            assert shares == sorted(shares, reverse=True), "fewer seeds, fewer sentences above"
            assert shares[0] <= rows[head]["all"]["found"]["mean"]
    explorations = rows["explorations"]
    assert explorations["all"]["iou_f1_gold"]["mean"] == 1.0
    assert explorations["published"]["1"]["found"]["mean"] > 0
    assert explorations["kept_words"] == [[], []], "no size of three was asked for"


@pytest.fixture(scope="module")
def three_levels() -> Micromodels:
    data = pairs()
    for number, pair in enumerate(data):
        if number % 4 == 0:
            pair.turns[-1].labels = {head: one_hot(head, "weak") for head in RATIONALE_ORDER}
    return Micromodels(data, embed, tiny_tokenizer())


@pytest.mark.parametrize("model", ["fitted", "three_levels"])
def test_contributions_add_up_to_the_machines_probabilities(
    model: str, request: pytest.FixtureRequest
) -> None:
    fitted: Micromodels = request.getfixturevalue(model)
    turns = [Turn(COUNSELLOR, t) for t in ("i am sorry really .", "why more is that ?", "sleep")]
    for turn in turns:
        found = explain(fitted, turn)
        features = fitted.read(turn, fitted.seeds).features[None, :]
        for decision in found.decisions:
            machine = fitted.machines[decision.mechanism]
            np.testing.assert_allclose(
                decision.probabilities, machine.predict_proba(features)[0], atol=1e-6
            )
            assert decision.level == int(machine.predict(features)[0])
        for mechanism, match in enumerate(found.matches):
            assert match.similarity == pytest.approx(features[0, mechanism])


def test_an_explanation_names_the_sentence_and_the_seed(fitted: Micromodels) -> None:
    found = explain(fitted, Turn(COUNSELLOR, "work work . i am sorry really ."))
    match = found.matches[RATIONALE_ORDER.index("emotional_reactions")]
    assert match.sentence == "i am sorry really ."
    assert match.seed.startswith("i am sorry")
    assert found.rationales["emotional_reactions"] == ["i am sorry really ."]
    text = in_words(found)
    assert '"i am sorry really ." is most similar to the seed "i am sorry' in text
    assert "emotional_reactions: strong" in text
    hidden = in_words(found, seeds=False)
    assert '"i am sorry really ." is most similar to a seed of 4 words' in hidden
    assert match.seed not in hidden.replace(match.sentence, "")
    assert "micromodel emotional_reactions: none +0.00  strong +" in text
    assert "rationale: i am sorry really ." in text


def test_the_own_micromodel_contributes_most(fitted: Micromodels) -> None:
    found = importances(fitted)["explorations"]
    assert max(found, key=lambda name: found[name]) == "explorations"


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Word counts instead of the encoder, and no cache."""
    for module in (method, explain_command):
        monkeypatch.setattr(module, "warmed", lambda _: embed)
        monkeypatch.setattr(module, "load_tokenizer", tiny_tokenizer)


@pytest.mark.usefixtures("encoded")
def test_the_commands_write_the_page_and_explain_a_text(tmp_path: Path, tiny_corpora: Path) -> None:
    options = [f"--data-dir={tiny_corpora}", f"--out={tmp_path}", "--fold=0", "--fold=1"]
    seeds = ["run", "micromodel_seeds", f"--pages={tmp_path}", *options]
    assert CliRunner().invoke(app, seeds, catch_exceptions=False).exit_code == 0
    content = json.loads((tmp_path / "micromodel_seeds.json").read_text("utf-8"))
    assert content["folds"] == [0, 1]
    text = (tmp_path / "micromodels.md").read_text("utf-8")
    assert "| ER | most triggered in the training part |" in text
    explainer = typer.Typer()
    explainer.command()(explain_command.main)
    result = CliRunner().invoke(
        explainer, ["i am sorry", f"--data-dir={tiny_corpora}"], catch_exceptions=False
    )
    assert result.exit_code == 0
    assert "micromodel explorations:" in result.stdout


@pytest.mark.usefixtures("encoded")
def test_levels_are_stored_row_by_row_for_the_evaluation(
    tmp_path: Path, tiny_corpora: Path
) -> None:
    options = [f"--data-dir={tiny_corpora}", f"--out={tmp_path}", "--fold=0", "--fold=1"]
    for row in ("own_seeds", "micromodels"):
        found = CliRunner().invoke(
            app, ["run", "micromodels", f"--row={row}", *options], catch_exceptions=False
        )
        assert found.exit_code == 0
    content = json.loads((tmp_path / "micromodels.json").read_text("utf-8"))
    assert content["folds"] == 2
    for row in ("own_seeds", "micromodels"):
        assert len(content[row]["explorations"]["folds"]) == 2
        assert 0 <= content[row]["explorations"]["accuracy"]["mean"] <= 1
