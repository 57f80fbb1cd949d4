"""`--encoder`: other pretrained encoders, with their own tokenizers, from training to bundle."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import numpy as np  # noqa: E402
import typer  # noqa: E402
from scipy.special import log_softmax  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from models.data import load_corpora  # noqa: E402
from models.evaluate.folds import Fold  # noqa: E402
from models.evaluate.predict import HeadOutputs, Predictions  # noqa: E402
from models.fit import train  # noqa: E402
from models.fit.calibrate import Calibration  # noqa: E402
from models.labels import HEADS  # noqa: E402
from models.model import multitask  # noqa: E402
from models.model.batches import FINAL, collate, tokenise  # noqa: E402
from models.model.encoder import (  # noqa: E402
    MAX_TOKENS,
    PACKAGED,
    TurnEncoder,
    encoder_name,
    pretrained_tokenizer,
)
from models.pages import sections  # noqa: E402
from research.recipe import encoder_mean, whole_recipe  # noqa: E402
from tests.models.tiny import tiny_tokenizer, write_corpora  # noqa: E402

WIDTH = 32
SHAPE = {
    "vocab_size": 64,
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": MAX_TOKENS + 2,
}


def save(model: Any, folder: Path) -> Path:
    """Save a pretrained encoder in a folder, as `save_pretrained` does."""
    model.save_pretrained(folder)
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("cls", "sep", "pad", "unk")}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=tiny_tokenizer(), **special)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpora(tmp_path_factory.mktemp("corpora"), size=24)


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of three tiny encoders with random weights."""
    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("encoders")
    distil = {"dim": WIDTH, "hidden_dim": 40, "n_layers": 2, "n_heads": 4, "vocab_size": 64}
    return {
        "bert": save(
            transformers.BertModel(transformers.BertConfig(**SHAPE)), folder / "tiny-bert"
        ),
        "roberta": save(
            transformers.RobertaModel(transformers.RobertaConfig(pad_token_id=0, **SHAPE)),
            folder / "tiny-roberta",
        ),
        "distilbert": save(
            transformers.DistilBertModel(transformers.DistilBertConfig(**distil)),
            folder / "tiny-distilbert",
        ),
    }


def trained(corpora: Path, encoder: Path, out: Path, *options: str) -> dict[str, Any]:
    """The training.json of `python -m models.fit.train`."""
    app = train.typer.Typer()
    app.command()(train.main)
    arguments = [f"--data-dir={corpora}", f"--out={out}", f"--encoder={encoder}", "--max-steps=2"]
    arguments += ["--no-contrast", "--no-bf16", "--threads=1", *options]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads((out / "training.json").read_text(encoding="utf-8"))


def test_names_are_folders_or_hub_names(encoders: dict[str, Path]) -> None:
    assert encoder_name(None) == PACKAGED
    assert encoder_name(str(encoders["bert"])) == "tiny-bert"
    assert encoder_name("BAAI/bge-small-en-v1.5") == "BAAI/bge-small-en-v1.5"


def test_the_encoders_tokenizer_is_used_unchanged(encoders: dict[str, Path]) -> None:
    found = pretrained_tokenizer(str(encoders["bert"]))
    text = "i feel sad ."
    assert found.encode(text).ids == tiny_tokenizer().encode(text).ids
    assert len(found.encode("sad " * 500).ids) == 502
    assert found.padding is None


@pytest.mark.filterwarnings("default")  # raised by the exporter
def test_another_encoder_works_from_training_to_bundle(
    corpora: Path, encoders: dict[str, Path], tmp_path: Path
) -> None:
    pytest.importorskip("onnxscript")
    from export import __main__ as export  # noqa: PLC0415
    from stream_app.inference.bundles import bundle as reader  # noqa: PLC0415

    about = trained(corpora, encoders["bert"], tmp_path / "model", "--frozen-layers=1")
    assert about["base_model"] == "tiny-bert"
    assert about["recipe"]["frozen_layers"] == 1
    model, tokenizer = multitask.load(tmp_path / "model")
    assert model.encoder.hidden_size == WIDTH
    assert tokenizer.get_vocab() == tiny_tokenizer().get_vocab()
    Calibration().write(tmp_path / "model" / "calibration.json")
    conversations = load_corpora(corpora)
    content = export.build(
        tmp_path / "model", tmp_path / "bundle", export.Profile.fp32, conversations, [], threads=1
    )
    assert content["encoder"]["hidden_size"] == WIDTH
    assert content["training"]["base_model"] == "tiny-bert"
    assert reader.load(tmp_path / "bundle").manifest.encoder.hidden_size == WIDTH
    card = (tmp_path / "bundle" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "(tiny-bert, fine-tuned)" in card


@pytest.mark.parametrize("kind", ["roberta", "distilbert"])
def test_encoders_of_another_architecture_train_without_frozen_layers(
    kind: str, corpora: Path, encoders: dict[str, Path], tmp_path: Path
) -> None:
    about = trained(corpora, encoders[kind], tmp_path, "--frozen-layers=0")
    assert about["base_model"] == f"tiny-{kind}"
    model, tokenizer = multitask.load(tmp_path)
    segments = tokenise(load_corpora(corpora)[:3], tokenizer)
    found, _ = model(collate(segments, FINAL, random.Random(0)))
    assert all(torch.isfinite(values).all() for values in found.values())


def test_only_layers_with_berts_layout_can_be_frozen(
    corpora: Path, encoders: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"DistilBertModel cannot be frozen.*--frozen-layers 0"):
        trained(corpora, encoders["distilbert"], tmp_path, "--frozen-layers=1")


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_frozen_and_trained_layers_together_equal_the_encoder(
    kind: str, encoders: dict[str, Path]
) -> None:
    """For encoders with freezable layers, a turn has the same output as from the whole encoder."""
    model, _ = multitask.from_base(str(encoders[kind]))
    encoder: TurnEncoder = model.encoder.eval()
    ids = torch.randint(4, 30, (3, 9), generator=torch.Generator().manual_seed(0))
    mask = (torch.arange(9) < torch.tensor([[9], [5], [2]])).long()
    with torch.no_grad():
        whole, _ = encoder(ids * mask, mask)
        halves, _ = encoder.upper(encoder.lower(ids * mask, mask, 1), mask, 1)
    torch.testing.assert_close(halves, whole, atol=1e-5, rtol=0)


def test_the_mean_of_two_encoders_is_evaluated_on_the_same_answers(
    corpora: Path, encoders: dict[str, Path], tmp_path: Path
) -> None:
    first, second = (encoders[name] for name in list(encoders)[:2])
    out = tmp_path / "evaluation" / "encoder_mean.json"
    out.parent.mkdir()
    command = typer.Typer()
    command.command()(encoder_mean.main)
    arguments = ["--first", str(first), "--encoder", str(second), "--folds", "0", "--folds", "1"]
    places = ["--data-dir", str(corpora), "--cache", str(tmp_path / "cache"), "--out", str(out)]
    done = CliRunner().invoke(command, [*arguments, *places, "--no-bf16", "--threads", "1"])
    assert done.exit_code == 0, done.output
    written = json.loads(out.read_text("utf-8"))
    assert list(written["rows"]) == [first.name, second.name, "mean of both"]
    assert len({row["answers"] for row in written["rows"].values()}) == 1
    assert "## A second encoder\n\n2 folds" in (out.parent / "expressed.md").read_text("utf-8")
    again = CliRunner().invoke(command, [*arguments, *places])  # from the kept outputs
    assert again.exit_code == 0, again.output
    assert len(list((tmp_path / "cache").iterdir())) == 4
    assert json.dumps(json.loads(out.read_text("utf-8"))) == json.dumps(written)


def fold(number: int, size: int, error: float) -> Fold:
    """Predictions that err more with a larger `error`."""
    chance = np.random.default_rng([number, int(100 * error)])
    heads = {}
    for head in HEADS:
        gold = np.eye(len(head.labels))[np.arange(size) % len(head.labels)]
        heads[head.name] = HeadOutputs(gold + error * chance.normal(size=gold.shape), gold)
    return Fold(number, {"final": Predictions(heads)})


def test_trainings_are_compared_on_the_folds_that_they_share() -> None:
    trainings = {
        "plain": [fold(0, 60, 1.5), fold(1, 30, 1.5), fold(2, 60, 0.1)],
        "other": [fold(0, 60, 0.7), fold(1, 30, 0.7)],
        "student": [fold(0, 60, 0.8), fold(1, 30, 0.8)],
    }
    found = whole_recipe.compared(trainings)
    assert found["folds"] == [0, 1]
    assert list(found["rows"]) == [*trainings, whole_recipe.MEAN]
    assert {row["answers"] for row in found["rows"].values()} == {90}
    assert "gain" not in found["rows"]["plain"]
    for name in ("other", "student"):
        row = found["rows"][name]
        assert row["gain"]["low"] > 0
        assert row["accuracy_gain"]["low"] > 0
        assert row["others"]["strategy"] > found["rows"]["plain"]["others"]["strategy"]
    page = sections.whole_recipe(found)
    assert "2 folds" in page
    assert page.count("| student |") == 2
    with pytest.raises(ValueError, match="no fold in common"):
        whole_recipe.compared({"plain": [fold(0, 30, 1)], "other": [fold(1, 30, 1)]})


def test_the_mean_of_models_that_err_differently_is_better() -> None:
    gold = np.array([[level] * 3 for level in (0, 1, 2) * 20])
    chance = np.random.default_rng(3)
    right = np.eye(3)[gold]

    def noisy() -> encoder_mean.Outputs:
        noise = chance.normal(size=right.shape)
        return encoder_mean.Outputs(log_softmax(right + noise, -1), gold)

    one, other = noisy(), noisy()
    both = encoder_mean.averaged([one, other])
    assert encoder_mean.gain(one, both)["value"] > 0.01
    assert encoder_mean.figures(both)["macro_f1"] > encoder_mean.figures(one)["macro_f1"]
    assert encoder_mean.joined([one, other]).total.tolist() == [*one.total, *other.total]
    assert np.allclose(encoder_mean.averaged([one, one]).expected, one.expected)
