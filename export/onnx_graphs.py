"""The graphs of a bundle: the turn encoder, padded or packed, and the context head."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

import onnx
import torch
from torch import Tensor, nn
from torch.export import Dim

from export.packed import PackedEncoder
from models.model.heads import ContextHead
from models.model.multitask import MultitaskModel
from models.model.onnx_model import ENCODER_OUTPUTS, HEAD_INPUTS, HEAD_OUTPUTS, example_windows

OPSET = 20
ENCODER_INPUTS = ("input_ids", "attention_mask")


class Graphs(NamedTuple):
    """Files of the graphs: the encoder in its two forms (see `export.packed`), and the head."""

    encoder: Path
    packed: Path
    head: Path


def export_graphs(model: MultitaskModel, folder: Path) -> Graphs:
    """Export the graphs in float32."""
    folder.mkdir(parents=True, exist_ok=True)
    batch, tokens = Dim("batch", min=1, max=4096), Dim("tokens", min=1, max=512)
    encoder, packed = folder / "encoder.onnx", folder / "encoder_packed.onnx"
    for module, path in ((model.encoder, encoder), (PackedEncoder(model.encoder), packed)):
        _export(
            module,
            example_turns(),
            {name: {0: batch, 1: tokens} for name in ENCODER_INPUTS},
            ENCODER_OUTPUTS,
            path,
        )
    head = folder / "head.onnx"
    export_head(model.head, model.encoder.hidden_size, head)
    return Graphs(encoder, packed, head)


def export_head(head: ContextHead, hidden_size: int, path: Path) -> None:
    """Write the graph of the context head in float32."""
    batch, slots = Dim("batch", min=1, max=4096), Dim("slots", min=1, max=64)
    shapes = {name: {0: batch, 1: slots} for name in HEAD_INPUTS}
    shapes["target"] = shapes["target_role"] = {0: batch}
    _export(head, example_windows(hidden_size), shapes, HEAD_OUTPUTS, path)


def example_turns() -> dict[str, Tensor]:
    """Three turns of up to seven tokens with ragged masks."""
    mask = (torch.arange(7) < torch.tensor([[7], [4], [2]])).long()
    return {"input_ids": torch.full((3, 7), 101) * mask, "attention_mask": mask}


def _export(
    module: nn.Module,
    example: dict[str, Tensor],
    shapes: dict[str, dict[int, Dim]],
    outputs: tuple[str, ...],
    path: Path,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            (),
            path,
            kwargs=example,
            input_names=list(example),
            output_names=list(outputs),
            dynamic_shapes=shapes,
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    strip(path)


def strip(path: Path) -> None:
    """Drop the exporter's metadata: source files and stack traces of the machine it ran on."""
    model = onnx.load(path)
    graph = model.graph
    for item in (model, graph, *graph.node, *graph.input, *graph.output, *graph.value_info):
        del item.metadata_props[:]
        item.doc_string = ""
    onnx.checker.check_model(model)
    onnx.save(model, path)
