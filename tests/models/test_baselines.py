"""Baselines without a model: their test items, and figures known in advance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from typer.testing import CliRunner

from models.data import load_corpora
from models.data.corpora import Conversation, Turn, one_hot
from models.evaluate import baselines
from models.labels import CLIENT, COUNSELLOR
from models.pages import document
from tests.models.tiny import write_corpora


def exchange(number: int, behaviour: str, text: str) -> Conversation:
    turn = Turn(COUNSELLOR, text, {"behaviour": one_hot("behaviour", behaviour)})
    return Conversation("annomi", str(number), [Turn(CLIENT, "so it goes"), turn])


def exchanges() -> list[Conversation]:
    """Two thirds are questions, recognisable by their words."""
    texts = {"question": "how was that for you", "reflection": "you were sad about it"}
    kinds = ["question", "question", "reflection"]
    return [exchange(n, kinds[n % 3], texts[kinds[n % 3]]) for n in range(90)]


def test_every_item_is_tested_once_and_never_trained_on() -> None:
    splits = baselines.splits_of("behaviour", exchanges(), folds=3)
    assert sum(len(split.test.labels) for split in splits) == 90
    assert all(len(split.train.labels) + len(split.test.labels) == 90 for split in splits)


def test_the_majority_row_is_the_most_frequent_label() -> None:
    splits = baselines.splits_of("behaviour", exchanges(), folds=3)
    rows = baselines.head_rows("behaviour", splits, {"majority": baselines.majority(splits)})
    assert rows["majority"]["n"] == 90
    assert rows["majority"]["accuracy"]["pooled"] == pytest.approx(2 / 3)
    assert rows["majority"]["mcc"]["pooled"] == 0.0


def test_words_that_determine_the_label_predict_it() -> None:
    splits = baselines.splits_of("behaviour", exchanges(), folds=3)
    rows = baselines.head_rows("behaviour", splits, {"words": baselines.words(splits)})
    assert rows["words"]["accuracy"]["pooled"] == 1.0


def test_a_rating_is_a_label_from_0_to_4() -> None:
    turn = Turn(COUNSELLOR, "I am sorry to hear that", {"empathy": (0.25, 0.75)})
    items = baselines.items_of("empathy", [Conversation("empathetic_exchanges", "a", [turn])])
    assert items.labels.tolist() == [3]
    assert items.words.tolist() == [6]


def test_length_alone_has_a_separate_row() -> None:
    """Ratings that rise with the number of words, and uninformative words."""
    conversations = [
        Conversation(
            "empathetic_exchanges",
            str(number),
            [
                Turn(
                    COUNSELLOR,
                    "so " * (number % 5 + 1),
                    {"empathy": (1 - number % 5 / 4, number % 5 / 4)},
                )
            ],
        )
        for number in range(100)
    ]
    rows = baselines.rating_rows(baselines.splits_of("empathy", conversations, folds=3))
    assert rows["length"]["spearman"]["value"] == pytest.approx(1.0)
    assert rows["length"]["same_length"] is None
    assert np.isnan(rows["words"]["same_length"]["value"]), "no variance is left to explain"


def test_the_command_writes_every_task(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    corpora = write_corpora(tmp_path_factory.mktemp("corpora"), size=60)
    app = baselines.typer.Typer()
    app.command()(baselines.main)
    out = tmp_path / "evaluation"
    arguments = [f"--data-dir={corpora}", f"--out={out}"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    content = document.read_all(out)["baselines"]
    assert set(content["heads"]) == {
        *("emotional_reactions", "interpretations", "explorations", "strategy", "behaviour"),
        *("question", "reflection", "input", "talk_type", "empathic_intent"),
    }
    tasks = content["strategies"]["majority"]["tasks"]
    assert {row["recall"]["pooled"] for row in tasks.values()} == {0.5}, "never yes"
    rated = sum("empathy" in turn.labels for item in load_corpora(corpora) for turn in item.turns)
    assert content["ratings"]["words"]["n"] == rated
    page = (out / "perceived.md").read_text(encoding="utf-8")
    assert "| number of words in the answer |" in page
    assert "Our head is not measured yet" in page
