"""8-bit matrix products with a scale for each token, cut off on no processor.

- Each token's activations get a scale of their own (ZeroQuant, Yao et al. 2022), so that a
  turn's result depends on no other turn, whatever batch it is in.
- A few channels are far larger than the rest and would set every scale: part of their size is
  moved into the weights (SmoothQuant, Xiao et al. 2023, equation 4).
- Processors without VNNI add two products of neighbouring rows in 16 bits and cut off what is too
  large. Weights are scaled so that this cannot happen.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from export.parity import session
from export.quantize import quantize_embeddings

CONTRIB = "com.microsoft"
SMALLEST_PRODUCT = 4096
"""Products with fewer weights than this stay in float."""
MIGRATION = 0.6
"""Alpha of SmoothQuant: 0 leaves the activations as they are, 1 levels them."""
ZERO_POINT = 128
"""Activations are unsigned, 1 to 255, because that is what the fast instructions take."""
LARGEST_NEIGHBOURS = 127.4
"""Of |w1| + |w2| before rounding: (127.4 + 1) * 255 < 2 ** 15."""

Array = npt.NDArray[np.float32]


def tokens_int8(source: Path, target: Path, examples: list[list[int]]) -> None:
    """Write the quantised graph.

    Args:
        source: the float32 graph of the encoder.
        target: where the quantised one is written.
        examples: token ids of turns that show how large each channel gets; not of the test part.
    """
    model = onnx.load(source)
    products = _products(model)
    largest = _largest_activations(model, list(products), examples)
    model = quantize_embeddings(model)
    model.opset_import.append(helper.make_opsetid(CONTRIB, 1))
    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    added = _Initializers(graph)
    nodes: list[NodeProto] = []
    quantised: dict[str, npt.NDArray[np.float64]] = {}
    for node in graph.node:
        members = products.get(node.input[0], []) if node.input else []
        if node.op_type != "MatMul" or node.input[1] not in members:
            nodes.append(node)
            continue
        x = node.input[0]
        if x not in quantised:
            tables = [numpy_helper.to_array(weights[name]) for name in members]
            quantised[x] = _migration(largest[x], tables)
            nodes += _quantise(x, quantised[x], added)
        weight = numpy_helper.to_array(weights[node.input[1]]) * quantised[x][:, None]
        nodes += _multiply(x, node.output[0], weight, added)
    _replace_nodes(graph, nodes)
    onnx.checker.check_model(model)
    onnx.save(model, target)


class _Initializers:
    """Adds constants to a graph, and those that all products share once."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._graph = graph
        self.one = self.add("quantise_one", np.array(1, np.float32))
        self.step = self.add("quantise_step", np.array(1 / 127, np.float32))
        self.tiny = self.add("quantise_tiny", np.array(1e-12, np.float32))
        self.zero = self.add("quantise_zero", np.array(ZERO_POINT, np.uint8))
        self.last = self.add("quantise_last_axis", np.array([-1], np.int64))

    def add(self, name: str, values: npt.NDArray[np.generic]) -> str:
        self._graph.initializer.append(numpy_helper.from_array(values, name))
        return name


def _products(model: onnx.ModelProto) -> dict[str, list[str]]:
    """Names of the weights that each activation is multiplied with."""
    large = {
        tensor.name
        for tensor in model.graph.initializer
        if tensor.data_type == TensorProto.FLOAT and np.prod(tensor.dims) >= SMALLEST_PRODUCT
    }
    found: dict[str, list[str]] = {}
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1] in large:
            found.setdefault(node.input[0], []).append(node.input[1])
    return found


def _largest_activations(
    model: onnx.ModelProto, names: list[str], examples: list[list[int]]
) -> dict[str, Array]:
    """Largest absolute value of each channel over all tokens of the examples."""
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    shown.graph.output.extend(
        helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names
    )
    running = session(shown.SerializeToString())
    largest: dict[str, Array] = {}
    for ids in examples:
        feeds = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)}
        for name, values in zip(names, running.run(names, feeds), strict=True):
            seen = np.abs(values).reshape(-1, values.shape[-1]).max(axis=0)
            largest[name] = np.maximum(largest.get(name, 0.0), seen)
    return largest


def _migration(
    activations: Array, weights: list[npt.NDArray[np.float32]]
) -> npt.NDArray[np.float64]:
    """What each channel is divided by, and its weights multiplied with; geometric mean 1."""
    rows = np.max([np.abs(weight).max(axis=1) for weight in weights], axis=0)
    factors = np.maximum(activations, 1e-3) ** MIGRATION / np.maximum(rows, 1e-4) ** (1 - MIGRATION)
    return np.asarray(factors / np.exp(np.log(factors).mean()), np.float64)


def _quantise(
    x: str, factors: npt.NDArray[np.float64], constants: _Initializers
) -> list[NodeProto]:
    """Nodes from activations to their 8-bit values and each token's scale."""
    inverse = constants.add(f"{x}_inverse", (1 / factors).astype(np.float32))
    return [
        helper.make_node("Mul", [x, inverse], [f"{x}_even"]),
        helper.make_node("Abs", [f"{x}_even"], [f"{x}_size"]),
        helper.make_node("ReduceMax", [f"{x}_size", constants.last], [f"{x}_largest"], keepdims=1),
        helper.make_node("Mul", [f"{x}_largest", constants.step], [f"{x}_bare_scale"]),
        helper.make_node("Max", [f"{x}_bare_scale", constants.tiny], [f"{x}_scale"]),
        helper.make_node("Div", [f"{x}_even", f"{x}_scale"], [f"{x}_steps"]),
        helper.make_node(
            "QuantizeLinear", [f"{x}_steps", constants.one, constants.zero], [f"{x}_quantised"]
        ),
    ]


def _multiply(
    x: str, output: str, weight: npt.NDArray[np.float64], constants: _Initializers
) -> list[NodeProto]:
    """Nodes of one product, in the place of the float one."""
    values, scales = quantise_columns(weight)
    inputs = [
        f"{x}_quantised",
        constants.add(f"{output}_weight", values),
        constants.one,
        constants.add(f"{output}_weight_scale", scales),
        constants.zero,
    ]
    product = f"{output}_unscaled"
    return [
        helper.make_node("MatMulIntegerToFloat", inputs, [product], domain=CONTRIB),
        helper.make_node("Mul", [product, f"{x}_scale"], [output]),
    ]


def quantise_columns(weight: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int8], Array]:
    """Weights [inputs, outputs] as int8 and the scale of each output.

    No two neighbouring rows (2i, 2i + 1) have |w1| + |w2| of more than 128.
    """
    sizes = np.abs(weight)
    odd = np.zeros_like(sizes[0::2])
    odd[: len(sizes) // 2] = sizes[1::2]
    scales = np.maximum(
        sizes.max(axis=0) / 127, (sizes[0::2] + odd).max(axis=0) / LARGEST_NEIGHBOURS
    )
    scales[scales == 0] = 1
    return np.rint(weight / scales).astype(np.int8), scales.astype(np.float32)


def _replace_nodes(graph: onnx.GraphProto, nodes: list[NodeProto]) -> None:
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.node[:], graph.initializer[:], graph.value_info[:]
    graph.node.extend(nodes)
    graph.initializer.extend(kept)
