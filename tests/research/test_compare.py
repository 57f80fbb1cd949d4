"""The table of all methods: what it reads, and speed and memory of real processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

import typer  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from models.data.corpora import Conversation, Turn, one_hot  # noqa: E402
from models.labels import CLIENT, COUNSELLOR, RATIONALE_ORDER  # noqa: E402
from research import results  # noqa: E402
from research.baselines import frozen_levels  # noqa: E402
from research.bi_encoder.design import DESIGNS  # noqa: E402
from research.compare import __main__ as command  # noqa: E402
from research.compare import cost, figures, page  # noqa: E402
from research.compare.entries import Entry, entries  # noqa: E402
from research.sentence_vectors import SentenceEncoder  # noqa: E402
from stream_app.core.measures.heads import LEVELS  # noqa: E402
from tests.models.tiny import WORDS  # noqa: E402

EVALUATION = Path(__file__).parents[2] / "docs" / "evaluation"


def by_key() -> dict[str, Entry]:
    return {entry.key: entry for entry in entries()}


def pair(number: int, seeker: str, response: str, level: int) -> Conversation:
    turn = Turn(COUNSELLOR, response)
    for head in RATIONALE_ORDER:
        turn.labels[head] = one_hot(head, LEVELS[level])
    return Conversation("epitome", str(number), [Turn(CLIENT, seeker), turn])


def embed(texts: Sequence[object]) -> np.ndarray:
    joined = [text if isinstance(text, str) else " ".join(text) for text in texts]  # type: ignore[call-overload]
    counts = np.array([[text.split().count(word) for word in WORDS] for text in joined], float)
    return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)


def test_published_evaluation_files_are_read() -> None:
    """The figures of the committed evaluation, against its own means."""
    found = {
        key: figures.read(by_key()[key], evaluation=EVALUATION)
        for key in ("majority", "words", "micromodels", "bge-small-en-v1.5", "ours")
    }
    assert all(found.values())
    levels = json.loads((EVALUATION / "levels.json").read_text("utf-8"))
    own = levels["views"]["final"]["shipped"]["mean"]["macro_f1"]
    ours = found["ours"]
    assert ours is not None
    assert ours.figures["macro_f1"].mean == pytest.approx(own["mean"], abs=1e-4)
    assert ours.figures["macro_f1"].sd == pytest.approx(own["sd"], abs=1e-4)
    assert "token_f1" in ours.figures
    majority = found["majority"]
    assert majority is not None
    assert majority.figures["mcc"].mean == 0.0
    second = found["bge-small-en-v1.5"]
    assert second is not None
    assert second.figures["macro_f1"].sd is None, "pooled over its folds"


def test_a_missing_result_is_not_measured(tmp_path: Path) -> None:
    method = by_key()["bi_encoder"]
    assert figures.read(method, tmp_path, tmp_path) is None
    assert page.cells(method, None, None)[2] == "not measured here"


def test_every_design_of_the_bi_encoder_has_a_row_with_its_command() -> None:
    rows = by_key()
    for key in DESIGNS:
        assert rows[key].command == "python -m research run bi_encoder"


def test_figures_are_means_over_the_mechanisms_by_fold(tmp_path: Path) -> None:
    heads = {
        head: {"macro_f1": {"folds": [0.1 * (i + 1), 0.5]}}
        for i, head in enumerate(RATIONALE_ORDER)
    }
    row = {"words": "", "context": "", "parameters": 7, "folds": [0, 3], "heads": heads}
    results.write("bi_encoder", {"rows": {"bi_encoder": row}}, tmp_path)
    found = figures.read(by_key()["bi_encoder"], tmp_path, tmp_path)
    assert found is not None
    assert found.figures["macro_f1"].by_fold == pytest.approx({0: 0.2, 3: 0.5})
    assert found.parameters == 7
    assert found.folds == [0, 3]


def test_frozen_rows_learn_what_their_input_shows() -> None:
    """Levels follow the seeker post; the response says nothing."""
    data = [
        pair(n, ("i feel sad", "you talk about work")[n % 2], "tell me more", 2 * (n % 2))
        for n in range(60)
    ]
    gold = np.array([2 * (n % 2) for n in range(60)])
    dialogues = [item.turns for item in data]
    for view, reached in (("alone", 0.5), ("two_vectors", 1.0), ("window", 1.0)):
        reader = frozen_levels.Embedder(embed, view)  # type: ignore[arg-type]
        levels = frozen_levels.FrozenLevels(reader, data).levels(dialogues)
        assert levels.shape == (60, 3)
        assert (levels[:, 0] == gold).mean() == pytest.approx(reached)


def test_pairs_are_encoded_together_and_cached(tmp_path: Path, tiny_encoder: str) -> None:
    cache = tmp_path / "vectors.npz"
    encode = SentenceEncoder(cache, tiny_encoder)
    texts = [("i feel sad", "why"), ("why", "i feel sad"), "why", ("sad " * 600, "so " * 600)]
    vectors = encode(texts)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert not np.allclose(vectors[0], vectors[1], atol=1e-3)
    assert np.array_equal(SentenceEncoder(cache, tiny_encoder)(texts), vectors)


def test_speed_and_memory_are_of_separate_processes(tiny_corpora: Path) -> None:
    rows = by_key()
    chosen = [rows["majority"], rows["independent"]]
    found = cost.measure(chosen, tiny_corpora, rounds=2, turns=2)
    assert set(found) == {"majority", "independent"}
    assert all(len(each.rounds) == 2 for each in found.values())
    assert found["majority"].turns_a_second > found["independent"].turns_a_second
    more = found["independent"].memory - found["majority"].memory
    assert more > 100, "six encoders of 22 M weights"


def test_the_command_writes_table_and_picture(tmp_path: Path, tiny_corpora: Path) -> None:
    app = typer.Typer()
    app.command()(command.main)
    out = tmp_path / "comparison.md"
    options = [f"--data-dir={tiny_corpora}", f"--results={tmp_path}", f"--pages={tmp_path}"]
    options += [f"--evaluation={EVALUATION}", "--only=majority", "--rounds=2", "--turns=2"]
    result = CliRunner().invoke(app, options, catch_exceptions=False)
    assert result.exit_code == 0
    text = out.read_text("utf-8")
    assert text.count("not measured here") > 5
    assert "| ours: multi-task context head, shipped bundle | seeker post | 0, 1, 2, 3, 4 |" in text
    assert (tmp_path / "comparison.svg").read_text("utf-8").startswith("<?xml")
    again = CliRunner().invoke(app, [*options, "--no-cost"], catch_exceptions=False)
    assert again.exit_code == 0
    assert out.read_text("utf-8") == text, "the stored measurement gives the same page"


def test_an_unknown_row_is_an_error() -> None:
    app = typer.Typer()
    app.command()(command.main)
    assert "no method roberta" in str(CliRunner().invoke(app, ["--only=roberta"]).exception)
