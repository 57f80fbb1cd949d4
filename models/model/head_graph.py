"""Read a bundle's context head into torch, and write a task network back into its graph.

The shipped bundle is the only source of the weights. Its head graph has all of them, some as 16-bit
floats; the exporter dropped the names of the attention's weights, which are identified by the
biases added after them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import Tensor, nn

from models.labels import HEADS
from models.model.heads import ContextHead
from models.model.onnx_model import HEAD_INPUTS, TOLERANCE, example_windows, session

HALF = "_half"
PROJECTIONS = ("query", "key", "value")


class HeadGraphError(ValueError):
    """The graph is not a context head that this version exports."""


def read_head(path: Path) -> ContextHead:
    """Load the head of a bundle; HeadGraphError if torch and graph score differently.

    Tasks missing from the graph get random weights.
    """
    model = onnx.load(path)
    weights = _weights(model)
    head = ContextHead(weights["role.weight"].shape[1])
    state = head.state_dict()
    found = {**_attention(model.graph, weights), **{n: weights[n] for n in state if n in weights}}
    exported = {output.name for output in model.graph.output}
    for name, fresh in state.items():
        if name in found:
            if found[name].shape != fresh.shape:
                raise HeadGraphError(f"{path}: {name} has the shape {tuple(found[name].shape)}")
        elif name.startswith("tasks.") and name.split(".")[1] not in exported:
            found[name] = fresh
        else:
            raise HeadGraphError(f"{path} has no weights for {name}")
    head.load_state_dict(found)
    _check(path, head.eval())
    return head


def write_task(path: Path, name: str, task: nn.Module) -> None:
    """Replace the weights of one task network in the graph; everything else is unchanged."""
    model = onnx.load(path)
    given = {f"tasks.{name}.{key}": value for key, value in task.state_dict().items()}
    for item in model.graph.initializer:
        key = item.name.removesuffix(HALF)
        if key in given:
            kept = numpy_helper.to_array(item)
            values = given.pop(key).detach().numpy().astype(kept.dtype)
            item.CopyFrom(numpy_helper.from_array(values, item.name))
    if given:
        raise HeadGraphError(f"{path} has no weights for {', '.join(sorted(given))}")
    onnx.save(model, path)


def _weights(model: onnx.ModelProto) -> dict[str, Tensor]:
    return {
        item.name.removesuffix(HALF): torch.tensor(
            numpy_helper.to_array(item).astype(np.float32)
            if item.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
            else numpy_helper.to_array(item)
        )
        for item in model.graph.initializer
    }


def _attention(graph: onnx.GraphProto, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Identify the weights of the attention's four products by the bias added to each."""
    cast = {
        node.output[0]: node.input[0].removesuffix(HALF)
        for node in graph.node
        if node.op_type == "Cast" and node.input[0].removesuffix(HALF) in weights
    }
    products = {
        node.output[0]: weights[cast.get(node.input[1], node.input[1])].T
        for node in graph.node
        if node.op_type == "MatMul" and cast.get(node.input[1], node.input[1]) in weights
    }
    found = {}
    for node in graph.node:
        for name in PROJECTIONS:
            if node.op_type == "Add" and f"attention.{name}.bias" in node.input:
                product = next(iter(set(node.input) & products.keys()), None)
                if product is not None:
                    found[f"attention.{name}.weight"] = products.pop(product)
    if len(products) == 1:
        found["attention.output.weight"] = products.popitem()[1]
    return found


def _check(path: Path, head: ContextHead) -> None:
    """Raise HeadGraphError unless module and graph agree on random windows."""
    chance = torch.Generator().manual_seed(0)
    window = example_windows(head.norm.normalized_shape[0])
    for name in ("target", "context"):
        window[name] = torch.randn(window[name].shape, generator=chance)
    window["context_mask"][0] = 0
    graph = session(path)
    names = [output.name for output in graph.get_outputs()]
    wanted: list[NDArray[np.float32]] = graph.run(names, {n: window[n].numpy() for n in window})
    with torch.inference_mode():
        given = dict(
            zip([h.name for h in HEADS], head(*(window[n] for n in HEAD_INPUTS)), strict=True)
        )
    for name, values in zip(names, wanted, strict=True):
        gap = float(np.abs(given[name].numpy() - values).max())
        if gap > TOLERANCE:
            raise HeadGraphError(f"{path}: {name} differs by {gap:.2g} from its graph")
