"""A tiny model on synthetic data: training, resuming, calibration, saving and loading."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from typer.testing import CliRunner  # noqa: E402

from models.data import load_corpora  # noqa: E402
from models.evaluate.predict import predict, predict_views  # noqa: E402
from models.fit import train  # noqa: E402
from models.fit.optimisation import Optimisation  # noqa: E402
from models.labels import HEADS  # noqa: E402
from models.model import multitask  # noqa: E402
from models.model.batches import ALONE, FINAL, PROVISIONAL, Segment, collate, tokenise  # noqa: E402
from models.pages.report import markdown, measure  # noqa: E402
from tests.models.tiny import tiny_model, tiny_tokenizer, write_corpora  # noqa: E402

RECIPE = train.Recipe(epochs=2, pairs_a_step=8, head_rate=3e-3, encoder_rate=1e-3, bf16=False)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpora(tmp_path_factory.mktemp("corpora"), size=36)


@pytest.fixture(scope="module")
def segments(corpora: Path) -> list[Segment]:
    return tokenise(load_corpora(corpora), tiny_tokenizer())


def loss_of(model: multitask.MultitaskModel, segments: list[Segment]) -> float:
    counts = train.label_counts(segments)
    losses = {name: train.HeadLoss("cross_entropy", c) for name, c in counts.items()}
    with torch.no_grad():
        step = collate(segments, FINAL, random.Random(0))
        return train.run_step(model.eval(), step, losses, RECIPE).item()


def test_training_lowers_the_loss(segments: list[Segment]) -> None:
    model = tiny_model()
    before = loss_of(model, segments)
    train.fit(model, segments, RECIPE)
    assert loss_of(model, segments) < before - 0.1


def test_a_resumed_run_equals_an_unbroken_one(
    segments: list[Segment], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tiny_model()
    train.fit(whole, segments, RECIPE, checkpoint=tmp_path / "whole.pt")
    whole_steps = torch.load(tmp_path / "whole.pt")["steps"]

    class Interrupted(Exception):
        pass

    save, checkpoint = Optimisation.save, tmp_path / "checkpoint.pt"

    def save_and_stop(self: Optimisation, file: Path) -> None:
        save(self, file)
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(Optimisation, "save", save_and_stop)
        with pytest.raises(Interrupted):
            train.fit(tiny_model(), segments, RECIPE, checkpoint=checkpoint)
    assert 0 < torch.load(checkpoint)["steps"] < whole_steps
    resumed = tiny_model(seed=5)
    train.fit(resumed, segments, RECIPE, checkpoint=checkpoint, resume=True)
    for first, second in zip(whole.parameters(), resumed.parameters(), strict=True):
        torch.testing.assert_close(first, second)


def test_frozen_embeddings_do_not_change(segments: list[Segment]) -> None:
    model = tiny_model()
    model.encoder.freeze_embeddings()
    before = model.encoder.backbone.embeddings.word_embeddings.weight.clone()
    train.fit(model, segments, RECIPE, max_steps=2)
    assert torch.equal(before, model.encoder.backbone.embeddings.word_embeddings.weight)


def test_encoding_order_does_not_change_vectors(segments: list[Segment]) -> None:
    """Each turn's vectors are returned at the turn's position, for any chunks."""
    model = tiny_model().eval()
    small = collate(segments[:5], FINAL, random.Random(0), chunk_tokens=1)
    large = collate(segments[:5], FINAL, random.Random(0), chunk_tokens=4096)
    with torch.no_grad():
        first, _ = model.encode(small.chunks, small.turns)
        second, _ = model.encode(large.chunks, large.turns)
    torch.testing.assert_close(first, second, atol=1e-5, rtol=0)


def test_a_saved_model_scores_the_same(segments: list[Segment], tmp_path: Path) -> None:
    model = tiny_model().eval()
    multitask.save(model, tiny_tokenizer(), tmp_path, {"seed": 1})
    loaded, tokenizer = multitask.load(tmp_path)
    assert tokenizer.truncation is None
    step = collate(segments[:4], PROVISIONAL, random.Random(0))
    with torch.no_grad():
        first, _ = model(step)
        second, _ = loaded(step)
    for name, logits in first.items():
        torch.testing.assert_close(logits, second[name])


def test_the_report_has_every_labelled_head_and_rationales_for_the_mechanisms(
    segments: list[Segment],
) -> None:
    report = measure(predict(tiny_model().eval(), segments, FINAL, tiny_tokenizer()))
    assert list(report) == [head.name for head in HEADS if head.corpus != "outcomes"]
    assert [name for name in report if "rationale" in report[name]] == list(report)[:3]
    assert len(markdown(report).splitlines()) == 2 + len(report)


def test_views_encoded_together_equal_single_predictions(segments: list[Segment]) -> None:
    model, tokenizer = tiny_model().eval(), tiny_tokenizer()
    windows = {"final": FINAL, "alone": ALONE}
    together = predict_views(model, segments, windows, tokenizer)
    for view, window in windows.items():
        alone = predict(model, segments, window, tokenizer)
        for name, outputs in alone.heads.items():
            np.testing.assert_allclose(together[view].heads[name].logits, outputs.logits, atol=1e-5)
        for name, items in alone.rationales.items():
            for first, second in zip(items, together[view].rationales[name], strict=True):
                np.testing.assert_allclose(first.probabilities, second.probabilities, atol=1e-5)
                assert first.row == second.row


def test_rationale_rows_lead_to_the_level_of_the_same_response(segments: list[Segment]) -> None:
    """In the synthetic corpora a rationale implies a level above none and has three words."""
    predictions = predict(tiny_model().eval(), segments, FINAL, tiny_tokenizer())
    for name, items in predictions.rationales.items():
        gold = predictions.heads[name].gold
        assert sorted(item.row for item in items) == list(range(len(gold)))
        assert all(item.gold.any() == (gold[item.row] > 0) for item in items)


def test_the_command_writes_a_model_folder(
    corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multitask, "from_base", lambda encoder: (tiny_model(), tiny_tokenizer()))
    arguments = [f"--data-dir={corpora}", f"--out={tmp_path}", "--epochs=1", "--max-steps=2"]
    arguments.append("--no-contrast")
    app = train.typer.Typer()
    app.command()(train.main)
    result = CliRunner().invoke(app, [*arguments, "--no-bf16"], catch_exceptions=False)
    assert result.exit_code == 0
    about = json.loads((tmp_path / "training.json").read_text(encoding="utf-8"))
    assert about["seed"] == 17
    assert (about["base_model"], about["teacher"]) == ("all-MiniLM-L6-v2", None)
    assert [row["items"] for row in about["data"]][:4] == [36, 36, 36, 36]
    multitask.load(tmp_path)
