"""Transfer between tasks: tests of significance, importance, and stacked adapters."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from sklearn.metrics import f1_score  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from research.__main__ import app  # noqa: E402
from research.transfer import page, scores  # noqa: E402
from research.transfer.importance import importances  # noqa: E402
from research.transfer.items import Data, Part, load  # noqa: E402
from research.transfer.pairs import fused, verdict  # noqa: E402
from research.transfer.scores import macro_f1, p_value, score  # noqa: E402
from research.transfer.stack import Training, Vectors, fit, predicted, task_embedding  # noqa: E402
from research.transfer.tasks import BY_NAME, TASKS, at_hand  # noqa: E402
from tests.models.tiny import write_contexts, write_rows  # noqa: E402

CHANCE = np.random.default_rng(5)


def test_the_registry_has_the_papers_eighteen_tasks_with_their_ratings() -> None:
    rated = [task for task in TASKS if task.ratings]
    assert len(rated) == 18
    assert BY_NAME["News Empathy"].ratings == (5.0, 4.5, 4.0)
    assert BY_NAME["EmpDial Role"].ratings == (1.5, 1.0, 1.5)
    assert [task.theme for task in rated].count("direct") == 6
    assert len(at_hand()) == 11
    assert all(task.publisher for task in TASKS)


def test_macro_f1_is_that_of_scikit_learn() -> None:
    gold, given = CHANCE.integers(0, 4, 200), CHANCE.integers(0, 4, 200)
    assert macro_f1(gold, given, 5) == pytest.approx(f1_score(gold, given, average="macro"))


def test_a_better_prediction_is_significant_and_an_equal_one_is_not() -> None:
    gold = CHANCE.integers(0, 2, 300)
    poor = np.where(CHANCE.random(300) < 0.4, 1 - gold, gold)
    good = np.where(CHANCE.random(300) < 0.1, 1 - gold, gold)
    assert p_value(gold, poor, good, 2) < 0.05
    assert p_value(gold, good, good, 2) == 1.0
    assert (
        verdict(score(gold, good, 2) - score(gold, poor, 2), p_value(gold, poor, good, 2))
        == "better"
    )
    assert (
        verdict(score(gold, poor, 2) - score(gold, good, 2), p_value(gold, good, poor, 2))
        == "worse"
    )
    other = gold.copy()
    other[0] = 1 - other[0]
    assert verdict(0.01, p_value(gold, gold, other, 2)) == "same"


def vectors(labels: np.ndarray, noise: float, items: int = 400) -> Vectors:
    """Inputs whose first two columns determine a nonlinear label; the last quarter is the test."""
    inputs = torch.tensor(np.random.default_rng(1).normal(size=(items, 8)), dtype=torch.float32)
    cut = 3 * items // 4
    return Vectors(
        inputs[:cut], torch.tensor(labels[:cut]), inputs[cut:], labels[cut:].astype(np.int64), 2
    )


def products(items: int = 400) -> np.ndarray:
    inputs = np.random.default_rng(1).normal(size=(items, 8))
    return (inputs[:, 0] * inputs[:, 1] > 0).astype(np.int64)


def test_an_adapter_of_the_same_task_helps_a_target_with_little_data() -> None:
    """The source has learned a product that ten target items cannot teach."""
    chosen = Training(epochs=60, batch=32, rate=3e-3, bottleneck=32)
    given = vectors(products(), 0.0)
    source = fit(given, chosen)
    known = score(given.test_labels, predicted(source, given), 2)
    few = 10 / len(given.train)
    alone = score(given.test_labels, predicted(fit(given, chosen, share=few), given), 2)
    stacked = fit(given, chosen, source.adapter, few)
    helped = score(given.test_labels, predicted(stacked, given), 2)
    assert known > 0.8
    assert helped > alone + 0.1


def test_training_a_target_leaves_the_source_adapter_as_it_was() -> None:
    chosen = Training(epochs=2)
    given = vectors(products(), 0.0)
    source = fit(given, chosen)
    before = source.adapter.down.weight.clone()
    fit(given, chosen, source.adapter)
    assert torch.equal(source.adapter.down.weight, before)


def test_equal_tasks_have_the_most_similar_embeddings() -> None:
    chosen = Training(epochs=20)
    first = vectors(products(), 0.0)
    other = vectors(
        (np.random.default_rng(1).normal(size=(400, 8))[:, 5] > 0).astype(np.int64), 0.0
    )
    tasks = [first, other, first]
    similar = fused([task_embedding(fit(given, chosen), given) for given in tasks])
    assert similar[0, 2] > similar[0, 1]
    assert similar[1].argmax() == 1


def test_importance_finds_the_feature_that_decides() -> None:
    rows = np.random.default_rng(2).normal(size=(200, 1))
    noise = np.random.default_rng(3).normal(size=(200, 2))
    found = importances({"decides": rows, "noise": noise}, 3 * rows[:, 0], permutations=5)
    assert found["r2"]["mean"] > 0.8
    assert found["loss"]["decides"]["mean"] > 0.5 > found["loss"]["noise"]["mean"]


def test_a_task_without_a_corpus_says_who_publishes_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Zhou & Jurgens"):
        load(BY_NAME["Condolence"], [], tmp_path, 0, (10, 10))


def toy(name: str, count: int = 40) -> Data:
    """ "sad" is 1, "work" is 0."""
    texts = [("i feel sad", "you work so")[number % 2] for number in range(count)]
    labels = np.array([1 - number % 2 for number in range(count)], np.int64)
    part = Part(["how is that"] * count, texts, labels)
    return Data(BY_NAME[name], part, part, 2)


@pytest.mark.parametrize("kind", ["bottleneck", "lora"])
def test_adapters_inside_the_encoder_learn_and_stack(kind: str, tiny_encoder: str) -> None:
    layers = pytest.importorskip("research.transfer.layers")
    torch.manual_seed(0)
    network = layers.Stacked(kind, tiny_encoder)  # type: ignore[arg-type]
    network.add("source")
    trained = {name for name, p in network.named_parameters() if p.requires_grad}
    assert trained
    assert not any("embeddings" in name for name in trained)
    data = toy("Epitome ER")
    output = layers.fit(network, data, 15, tiny_encoder, rate=2e-2)
    given = layers.predicted(network, output, data, tiny_encoder)
    assert (given == data.test.labels).mean() > 0.9
    kept = {name: p.clone() for name, p in network.named_parameters() if name in trained}
    network.add("target")
    layers.fit(network, data, 1, tiny_encoder)
    now = dict(network.named_parameters())
    assert all(torch.equal(now[name], value) for name, value in kept.items())
    assert {name for name, p in network.named_parameters() if p.requires_grad}.isdisjoint(trained)


@pytest.fixture(scope="module")
def corpora(tiny_corpora: Path) -> Path:
    write_contexts(tiny_corpora)
    rows = [
        {"message_id": str(n), "article_id": n // 2, "empathy": 1 + n % 7, "distress": 7 - n % 7,
         "essay": f"i feel sad about work {'so ' * (n % 7)}"}
        for n in range(40)
    ]  # fmt: skip
    write_rows(tiny_corpora / "news_reactions.jsonl.gz", rows)
    chats = [
        {
            "conversation_id": f"chat-{n}",
            "emotion": ("sad", "joyful")[n % 2],
            "utterances": [
                {
                    "speaker": ("speaker", "listener")[turn % 2],
                    "text": f"i feel {('sad', 'better')[n % 2]}",
                }
                for turn in range(4)
            ],
        }
        for n in range(40)
    ]
    write_rows(tiny_corpora / "empathetic_dialogues.jsonl.gz", chats)
    return tiny_corpora


def test_the_command_writes_results_and_page(
    tmp_path: Path, tiny_encoder: str, corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores, "RESAMPLES", 20)
    options = ["run", "transfer", f"--set=encoder={tiny_encoder}", "--set=bf16=false"]
    options += [f"--set=cache={tmp_path / 'vectors.npz'}", "--set=epochs=1", "--threads=1"]
    options += [f"--data-dir={corpora}", f"--out={tmp_path}", f"--pages={tmp_path}"]
    result = CliRunner().invoke(app, [*options, "--row=vectors"], catch_exceptions=False)
    assert result.exit_code == 0
    content = json.loads((tmp_path / "transfer.json").read_text("utf-8"))
    assert len(content["transfers"]) == 11 * 10
    assert content["importance"]["pairs"] <= 8 * 7
    text = (tmp_path / "transfer.md").read_text("utf-8")
    assert "Zhou & Jurgens" in text
    assert "Not measured here" in text
    pytest.importorskip("peft")
    options += ["--row=bottleneck", "--set=source=News Empathy", "--set=target=Rated exchanges"]
    for _ in range(2):  # a remeasured pair replaces its row
        result = CliRunner().invoke(app, options, catch_exceptions=False)
        assert result.exit_code == 0
    text = (tmp_path / "transfer.md").read_text("utf-8")
    assert text.count("| bottleneck | News Empathy | Rated exchanges |") == 1


def test_themes_count_only_tasks_that_have_one() -> None:
    transfer = {"base": 0.5, "score": 0.6, "p": 0.01, "half_score": 0.5, "half_p": 1.0}
    rows = [
        transfer | {"source": "News Empathy", "target": "Epitome ER"},
        transfer | {"source": "ESConv strategy", "target": "Epitome ER"},
    ]
    table = page.themes({"transfers": rows})
    assert "| direct | 0 ▲, 0 ▼ of 0 | 1 ▲, 0 ▼ of 1 | 0 ▲, 0 ▼ of 0 |" in table
