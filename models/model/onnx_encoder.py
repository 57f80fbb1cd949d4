"""`python -m models.model.onnx_encoder FILE --out FOLDER`: a BERT encoder from ONNX to PyTorch.

Some encoders are published to package registries as ONNX alone. Their initialisers carry the names
of `transformers.BertModel`, except for the matrices of `MatMul` nodes, which the exporter stored
transposed under generated names; those are identified by the bias that is added to their product.
`FILE` is a `.onnx` file beside its `tokenizer.json`, or an archive (`.jar`, `.zip`) that holds one
`.onnx` and one `…tokenizer.json`.
"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Annotated

import numpy as np
import onnx
import onnxruntime
import torch
import typer
from onnx import numpy_helper
from torch import Tensor
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

TOLERANCE = 1e-4
"""Largest difference allowed between the ONNX file's token states and PyTorch's."""


class EncoderFileError(ValueError):
    """The file is not a supported BERT encoder."""


def read_state(path: Path) -> dict[str, Tensor]:
    """Read the weights of a `BertModel` by name; raises EncoderFileError for another model."""
    graph = onnx.load(path).graph
    weights = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    products = {node.output[0]: node for node in graph.node if node.op_type == "MatMul"}
    state = {
        _plain(name): torch.from_numpy(np.array(value, np.float32))
        for name, value in weights.items()
        if name.removeprefix("bert.").startswith(("embeddings.", "encoder."))
        and value.dtype.kind == "f"
    }
    for node in graph.node:
        if node.op_type != "Add":
            continue
        bias = next((name for name in node.input if name.endswith(".bias")), None)
        product = next((products[name] for name in node.input if name in products), None)
        if bias is not None and product is not None and product.input[1] in weights:
            matrix = np.array(weights[product.input[1]].T, np.float32)
            state[_plain(bias).removesuffix("bias") + "weight"] = torch.from_numpy(matrix)
    if "embeddings.word_embeddings.weight" not in state:
        message = f"{path.name} holds no BERT encoder: its word embeddings were not found"
        raise EncoderFileError(message)
    return state


def _plain(name: str) -> str:
    return name.removeprefix("bert.")


def config_of(state: dict[str, Tensor], head_size: int = 32) -> BertConfig:
    """Infer the model's shape; `head_size` is an attention head's width (32 in small BERTs)."""
    words, width = state["embeddings.word_embeddings.weight"].shape
    layers = {name.split(".")[2] for name in state if name.startswith("encoder.layer.")}
    return BertConfig(
        vocab_size=words,
        hidden_size=width,
        num_hidden_layers=len(layers),
        num_attention_heads=width // head_size,
        intermediate_size=state["encoder.layer.0.intermediate.dense.weight"].shape[0],
        max_position_embeddings=state["embeddings.position_embeddings.weight"].shape[0],
        type_vocab_size=state["embeddings.token_type_embeddings.weight"].shape[0],
    )


@torch.inference_mode()
def largest_difference(model: BertModel, path: Path) -> float:
    """Largest difference of PyTorch's token states from the ONNX file's, on random token ids."""
    chance = np.random.default_rng(17)
    ids = chance.integers(1000, model.config.vocab_size, size=(3, 24))
    mask = (np.arange(24) < np.array([[24], [13], [4]])).astype(np.int64)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    wanted = {item.name for item in session.get_inputs()}
    [expected, *_] = session.run(None, {k: v for k, v in given.items() if k in wanted})
    found = model(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask))
    gap = np.abs(found.last_hidden_state.numpy() - np.asarray(expected))
    return float((gap * mask[..., None]).max())


def convert(onnx_file: Path, tokenizer: Path, out: Path) -> float:
    """Write a folder for `--encoder`; returns the largest difference from the ONNX file."""
    state = read_state(onnx_file)
    model = BertModel(config_of(state), add_pooling_layer=False).eval()
    missing, unexpected = model.load_state_dict(state, strict=False)
    missing = [name for name in missing if "position_ids" not in name]
    if missing or unexpected:
        message = f"weights of {onnx_file.name}: missing {missing[:3]}, unknown {unexpected[:3]}"
        raise EncoderFileError(message)
    difference = largest_difference(model, onnx_file)
    if difference > TOLERANCE:
        message = f"PyTorch differs from {onnx_file.name} by {difference:.2g} (> {TOLERANCE})"
        raise EncoderFileError(message)
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out)
    PreTrainedTokenizerFast(tokenizer_file=str(tokenizer)).save_pretrained(out)
    return difference


def unpack(archive: Path, folder: Path) -> tuple[Path, Path]:
    """Extract the `.onnx` file and the tokenizer of an archive into the folder."""
    with zipfile.ZipFile(archive) as file:
        names = file.namelist()
        graphs = [name for name in names if name.endswith(".onnx")]
        tokenizers = [name for name in names if name.endswith("tokenizer.json")]
        if len(graphs) != 1 or len(tokenizers) != 1:
            message = f"{archive.name} must contain one .onnx file and one tokenizer.json"
            raise EncoderFileError(message)
        return Path(file.extract(graphs[0], folder)), Path(file.extract(tokenizers[0], folder))


def main(
    file: Annotated[Path, typer.Argument(help="A .onnx file, or an archive that contains one.")],
    out: Annotated[Path, typer.Option(help="Folder for `models.fit.train --encoder`.")],
) -> None:
    """Convert an encoder and check that PyTorch computes the same."""
    with tempfile.TemporaryDirectory() as scratch:
        if zipfile.is_zipfile(file):
            graph, tokenizer = unpack(file, Path(scratch))
        else:
            graph, tokenizer = file, file.with_name("tokenizer.json")
        try:
            difference = convert(graph, tokenizer, out)
        except EncoderFileError as problem:
            raise SystemExit(f"error: {problem}") from problem
    print(f"written to {out}; token states differ from the ONNX file by at most {difference:.1e}")


if __name__ == "__main__":
    typer.run(main)
