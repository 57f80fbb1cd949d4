"""`python -m export.reader --model build/reader --bundle FOLDER`: add a reader to a bundle.

The graph has one output for each head that the service shows. Products are computed with 8 bits
and a scale for each token, so that a turn's reading is the same in any batch.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.export import Dim
from transformers import AutoConfig, AutoModel

from export.int8_products import tokens_int8
from export.onnx_graphs import OPSET, example_turns, strip
from models.bundle import CARD, MANIFEST, sha256, write_manifest
from models.card import model_card
from models.data.corpora import resolve_data_dir
from models.labels import CLIENT, COUNSELLOR, ROLE_NAMES
from models.reader import corpora, written
from models.reader.examples import (
    CLIENT_TOKENS,
    CONTEXT_TOKENS,
    CONTEXT_TURNS,
    TARGET_TOKENS,
)
from models.reader.heads import SHOWN
from models.reader.model import Reader, split
from models.reader.train import marks_of, tokenised

READER = "reader.onnx"
VERSION = "2.3.0"
"""Version of a bundle with this reader."""
EXAMPLES = 300
"""Examples for calibrating the quantiser."""


class ReaderGraph(nn.Module):
    """The reader with the outputs of the shown heads; the turn begins after the first separator."""

    def __init__(self, reader: Reader, separator: int, separators: int) -> None:
        super().__init__()
        self.reader, self.separator, self.separators = reader, separator, separators

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        """Logits [batch, 2] of no and yes for every shown head."""
        start = (input_ids == self.separator).int().argmax(1) + self.separators
        heads = split(self.reader(input_ids, attention_mask, start))
        found = [heads[head.source] for head in SHOWN]
        return tuple(torch.cat([torch.zeros_like(yes), yes], 1) for yes in found)


def load(folder: Path, encoder: str) -> Reader:
    """The reader in a folder of `models.reader.train`; frozen embeddings come from the encoder."""
    config = AutoConfig.from_pretrained(encoder, attn_implementation="eager")
    backbone = AutoModel.from_pretrained(
        encoder, dtype=torch.float32, attn_implementation="eager", add_pooling_layer=False
    )
    reader = Reader(backbone, config.hidden_size)
    state = torch.load(folder / "reader.pt", map_location="cpu", weights_only=True)
    missing, unknown = reader.load_state_dict(
        {
            name: value.float() if value.is_floating_point() else value
            for name, value in state.items()
        },
        strict=False,
    )
    if unknown or [name for name in missing if "word_embeddings" not in name]:
        message = f"{folder} was trained on another encoder than {encoder}"
        raise ValueError(message)
    return reader.eval()


def write_graph(graph: ReaderGraph, path: Path) -> None:
    """Export the graph in float32."""
    batch, tokens = Dim("batch", min=1, max=4096), Dim("tokens", min=1, max=512)
    example = example_turns()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            graph.eval(),
            (),
            path,
            kwargs=example,
            input_names=list(example),
            output_names=[head.name for head in SHOWN],
            dynamic_shapes={name: {0: batch, 1: tokens} for name in example},
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    strip(path)


def main(
    model: Annotated[Path, typer.Option(help="Folder of a trained reader.")] = Path("build/reader"),
    encoder: Annotated[str, typer.Option(help="Folder of its pretrained encoder.")] = "",
    bundle: Annotated[Path, typer.Option(help="Folder of the bundle.")] = Path(
        "stream_app/bundles/default"
    ),
    alone: Annotated[
        Path | None, typer.Option(help="Write the graph to this file, and leave the bundle.")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
) -> None:
    """Export the reader in 8 bits and add it and its heads to the bundle's manifest."""
    reader = load(model, encoder)
    marks, tokenizer = marks_of(encoder)
    folder = resolve_data_dir(data_dir)
    examples = [*corpora.load(folder), *written.load(folder)]
    reads = tokenised(examples[:: len(examples) // EXAMPLES], encoder)
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / READER
        write_graph(ReaderGraph(reader, marks.between[0], len(marks.between)), plain)
        tokens_int8(plain, alone or bundle / READER, [read.ids for read in reads])
    if alone is not None:
        return
    content: dict[str, Any] = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    own = Tokenizer.from_file(str(bundle / content["tokenizer"]["file"]))
    if own.get_vocab() != tokenizer.backend_tokenizer.get_vocab():
        message = "the reader's encoder has another vocabulary than the bundle's tokeniser"
        raise SystemExit(message)
    calibration = json.loads((model / "calibration.json").read_text(encoding="utf-8"))
    content["reader"] = {
        "file": READER,
        "start": marks.start,
        "end": marks.end,
        "between": list(marks.between),
        "roles": {ROLE_NAMES[role]: marks.roles[role] for role in (CLIENT, COUNSELLOR)},
        "turns": CONTEXT_TURNS,
        "context_tokens": CONTEXT_TOKENS,
        "target_tokens": TARGET_TOKENS,
        "client_tokens": CLIENT_TOKENS,
        "batch_independent": True,
    }
    kept = [entry for entry in content["heads"] if entry["name"] not in {h.name for h in SHOWN}]
    content["heads"] = [*kept, *(head.entry(calibration) for head in SHOWN)]
    if content.pop("crisis", None):  # the reader's head replaces the probe
        content["files"].pop("crisis.npy")
        (bundle / "crisis.npy").unlink()
    content["version"] = VERSION
    content["files"][READER] = sha256(bundle / READER)
    content["training"]["reader"] = json.loads((model / "training.json").read_text("utf-8"))
    write_manifest(bundle, content)
    (bundle / CARD).write_text(model_card(content), encoding="utf-8")
    print(f"{bundle / READER}: {(bundle / READER).stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    typer.run(main)
