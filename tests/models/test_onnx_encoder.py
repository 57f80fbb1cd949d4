"""A BERT encoder exported to ONNX and loaded again has the same outputs."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
transformers = pytest.importorskip("transformers")

from typer.testing import CliRunner  # noqa: E402

from models.model import onnx_encoder  # noqa: E402
from models.model.encoder import load_backbone, pretrained_tokenizer  # noqa: E402
from tests.models.tiny import tiny_tokenizer  # noqa: E402

VOCABULARY = 1200
"""The check draws token ids from 1,000 on."""
CONFIG = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 96,
    "max_position_embeddings": 64,
}
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def bert() -> torch.nn.Module:
    torch.manual_seed(5)
    config = transformers.BertConfig(**CONFIG, attn_implementation="eager")
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    with torch.no_grad():  # equal initial biases would be deduplicated in the file
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return model


@pytest.fixture(scope="module")
def exported(bert: torch.nn.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ONNX file as in registries: by the tracing exporter, with its tokenizer."""
    file = tmp_path_factory.mktemp("onnx") / "model.onnx"
    export(bert, file)
    tiny_tokenizer().save(str(file.with_name("tokenizer.json")))
    return file


class States(torch.nn.Module):
    """Returns only the token states."""

    def __init__(self, bert: torch.nn.Module) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def export(model: torch.nn.Module, file: Path) -> None:
    ids = torch.randint(4, 30, (2, 7))
    mask = (torch.arange(7) < torch.tensor([[7], [3]])).long()
    axes = {0: "batch", 1: "tokens"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            States(model).eval(),
            (ids, mask),
            file,
            input_names=["input_ids", "attention_mask"],
            output_names=["last_hidden_state"],
            dynamic_axes={"input_ids": axes, "attention_mask": axes, "last_hidden_state": axes},
            dynamo=False,
        )


def converted(*arguments: object) -> tuple[int, str]:
    app = onnx_encoder.typer.Typer()
    app.command()(onnx_encoder.main)
    result = CliRunner().invoke(app, list(map(str, arguments)))
    return result.exit_code, result.output + str(result.exception or "")


def same(bert: torch.nn.Module, folder: Path) -> None:
    found = load_backbone(encoder=str(folder)).eval()
    ids = torch.randint(0, VOCABULARY, (4, 12), generator=torch.Generator().manual_seed(2))
    mask = (torch.arange(12) < torch.tensor([[12], [7], [3], [1]])).long()
    with torch.no_grad():
        expected = bert(input_ids=ids, attention_mask=mask).last_hidden_state
        given = found(input_ids=ids, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(given * mask[..., None], expected * mask[..., None],
                               atol=1e-4, rtol=0)  # fmt: skip


def test_a_bert_model_round_trips(bert: torch.nn.Module, exported: Path, tmp_path: Path) -> None:
    code, output = converted(exported, f"--out={tmp_path}")
    assert (code, "differ from the ONNX file by at most" in output) == (0, True), output
    same(bert, tmp_path)
    text = "i feel sad"
    found = pretrained_tokenizer(str(tmp_path))
    assert found.encode(text).ids == tiny_tokenizer().encode(text).ids


def test_an_archive_contains_the_model_and_its_tokenizer(
    bert: torch.nn.Module, exported: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "encoder.jar"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(exported, "encoder.onnx")
        file.write(exported.with_name("tokenizer.json"), "encoder-tokenizer.json")
    code, output = converted(archive, f"--out={tmp_path / 'out'}")
    assert code == 0, output
    same(bert, tmp_path / "out")
    with zipfile.ZipFile(archive, "a") as file:
        file.write(exported, "second.onnx")
    code, output = converted(archive, f"--out={tmp_path / 'again'}")
    assert code != 0
    assert "must contain one .onnx file and one tokenizer.json" in output


def test_a_file_of_another_model_is_refused(tmp_path: Path) -> None:
    linear = torch.nn.Linear(8, 8)
    file = tmp_path / "model.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(linear, (torch.zeros(1, 8),), file, dynamo=False)
    code, output = converted(file, f"--out={tmp_path / 'out'}")
    assert code != 0
    assert "error: model.onnx holds no BERT encoder" in output
    assert not (tmp_path / "out").exists()


def test_weights_with_different_results_are_refused(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_encoder, "largest_difference", lambda *_: 0.5)
    with pytest.raises(onnx_encoder.EncoderFileError, match=r"differs from model\.onnx by 0\.5"):
        onnx_encoder.convert(exported, exported.with_name("tokenizer.json"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
