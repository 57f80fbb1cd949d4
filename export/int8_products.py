"""8-bit matrix products that are independent of the batch and saturate on no processor.

Both versions migrate part of the largest channels' magnitude into the weights, because outliers
would otherwise set every scale (SmoothQuant, Xiao et al. 2023, equation 4), and round the weights
with the inputs in view (`export.rounding`). They differ in the activations:

- `static_int8`: one scale and zero point per product, calibrated on examples, so that nothing is
  measured at run time, and scale and bias are folded into the product. The mean rounding error is
  subtracted from the bias.
- `tokens_int8`: a scale per token (ZeroQuant, Yao et al. 2022). Slower, and more accurate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from export.quantize import quantize_embeddings
from export.rounding import Doubles, Floats, rounded
from models.model.onnx_model import session

CONTRIB = "com.microsoft"
SMALLEST_PRODUCT = 4096
"""Products with fewer weights than this stay in float."""
COVERED = 0.999
"""Share of the examples' tokens within a fixed range; the rest is clipped."""
STEPS = 255
ZERO_POINT = 128
"""Per-token activations are 1 to 255, because the fast instructions are unsigned."""


def tokens_int8(source: Path, target: Path, examples: list[list[int]]) -> None:
    """Write the graph with a scale per token; arguments as in `static_int8`."""
    _write(source, target, examples, _ByToken)


def static_int8(source: Path, target: Path, examples: list[list[int]]) -> None:
    """Write the graph with fixed scales.

    Args:
        source: the float32 graph of the encoder.
        target: path of the quantised graph.
        examples: token ids of turns for calibration; not of the test part.
    """
    _write(source, target, examples, _Fixed)


def _write(source: Path, target: Path, examples: list[list[int]], scheme: type[_Products]) -> None:
    model = onnx.load(source)
    members = _members(model)
    seen = _activations(model, list(members), examples)
    model = quantize_embeddings(model)
    model.opset_import.append(helper.make_opsetid(CONTRIB, 1))
    products = scheme(model.graph, members, seen)
    nodes: list[NodeProto] = []
    for node in model.graph.node:
        if products.replaces(node):
            nodes += products.nodes(node)
        elif node.output[0] not in products.absorbed:
            nodes.append(node)
    _replace_nodes(model.graph, nodes)
    onnx.checker.check_model(model)
    onnx.save(model, target)


def _members(model: onnx.ModelProto) -> dict[str, list[str]]:
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


def _activations(
    model: onnx.ModelProto, names: list[str], examples: list[list[int]]
) -> dict[str, Floats]:
    """The examples' activations before each product, [tokens, channels]."""
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    shown.graph.output.extend(
        helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names
    )
    running = session(shown.SerializeToString())
    found: dict[str, list[Floats]] = {name: [] for name in names}
    for ids in examples:
        feeds = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64)}
        for name, values in zip(names, running.run(names, feeds), strict=True):
            found[name].append(values.reshape(-1, values.shape[-1]))
    return {name: np.concatenate(values) for name, values in found.items()}


class _Products(ABC):
    """Converts the large products of a graph to 8 bits; every activation is quantised once."""

    alpha: float
    """SmoothQuant's alpha: 0 leaves the activations unchanged, 1 equalises them."""
    alpha_gelu: float
    """Alpha after a GELU, where a few units are very large, for special tokens only."""

    def __init__(
        self, graph: onnx.GraphProto, members: dict[str, list[str]], seen: dict[str, Floats]
    ) -> None:
        self.graph = graph
        self.members = members
        self.seen = seen
        self.weights = {tensor.name: tensor for tensor in graph.initializer}
        self.gelus = {node.output[0] for node in graph.node if node.op_type == "Gelu"}
        self.factors: dict[str, Doubles] = {}
        """By activation: the factor that divides each channel and multiplies its weights."""
        self.absorbed: set[str] = set()
        """Outputs of nodes that are folded into the products."""
        self.one = self.add("quantise_one", np.array(1, np.float32))

    def add(self, name: str, values: npt.NDArray[np.generic]) -> str:
        """Add a constant to the graph; return its name."""
        self.graph.initializer.append(numpy_helper.from_array(values, name))
        return name

    def replaces(self, node: NodeProto) -> bool:
        """Whether the node is one of the products."""
        return node.op_type == "MatMul" and node.input[1] in self.members.get(node.input[0], [])

    def nodes(self, node: NodeProto) -> list[NodeProto]:
        """The nodes that replace a product."""
        x, nodes = node.input[0], []
        if x not in self.factors:
            self.factors[x] = _migration(
                np.abs(self.seen[x]).max(axis=0),
                [self.array(name) for name in self.members[x]],
                self.alpha_gelu if x in self.gelus else self.alpha,
            )
            inverse = self.add(f"{x}_inverse", (1 / self.factors[x]).astype(np.float32))
            nodes.append(helper.make_node("Mul", [x, inverse], [f"{x}_even"]))
            nodes += self.quantise(x)
        weight = self.array(node.input[1]) * self.factors[x][:, None]
        return nodes + self.multiply(x, node.output[0], weight)

    def array(self, name: str) -> npt.NDArray[np.float32]:
        """Read a constant of the graph."""
        return numpy_helper.to_array(self.weights[name])

    def even(self, x: str) -> Floats:
        """The examples' activation after equalising its channels, [tokens, channels]."""
        return (self.seen[x] / self.factors[x]).astype(np.float32)

    @abstractmethod
    def quantise(self, x: str) -> list[NodeProto]:
        """Nodes from ``x_even`` to ``x_quantised``, uint8."""

    @abstractmethod
    def multiply(self, x: str, output: str, weight: Doubles) -> list[NodeProto]:
        """Nodes from ``x_quantised`` to the product."""


class _ByToken(_Products):
    alpha = alpha_gelu = 0.6

    def __init__(
        self, graph: onnx.GraphProto, members: dict[str, list[str]], seen: dict[str, Floats]
    ) -> None:
        super().__init__(graph, members, seen)
        self.step = self.add("quantise_step", np.array(1 / 127, np.float32))
        self.tiny = self.add("quantise_tiny", np.array(1e-12, np.float32))
        self.zero = self.add("quantise_zero", np.array(ZERO_POINT, np.uint8))
        self.last = self.add("quantise_last_axis", np.array([-1], np.int64))

    def quantise(self, x: str) -> list[NodeProto]:
        return [
            helper.make_node("Abs", [f"{x}_even"], [f"{x}_size"]),
            helper.make_node("ReduceMax", [f"{x}_size", self.last], [f"{x}_largest"], keepdims=1),
            helper.make_node("Mul", [f"{x}_largest", self.step], [f"{x}_bare_scale"]),
            helper.make_node("Max", [f"{x}_bare_scale", self.tiny], [f"{x}_scale"]),
            helper.make_node("Div", [f"{x}_even", f"{x}_scale"], [f"{x}_steps"]),
            helper.make_node(
                "QuantizeLinear", [f"{x}_steps", self.one, self.zero], [f"{x}_quantised"]
            ),
        ]

    def multiply(self, x: str, output: str, weight: Doubles) -> list[NodeProto]:
        values, scales = rounded(weight, self.even(x))
        inputs = [
            f"{x}_quantised",
            self.add(f"{output}_weight", values),
            self.one,
            self.add(f"{output}_weight_scale", scales),
            self.zero,
        ]
        product = f"{output}_unscaled"
        return [
            helper.make_node("MatMulIntegerToFloat", inputs, [product], domain=CONTRIB),
            helper.make_node("Mul", [product, f"{x}_scale"], [output]),
        ]


class _Fixed(_Products):
    alpha, alpha_gelu = 0.7, 0.8

    def __init__(
        self, graph: onnx.GraphProto, members: dict[str, list[str]], seen: dict[str, Floats]
    ) -> None:
        super().__init__(graph, members, seen)
        products = {node.output[0] for node in graph.node if self.replaces(node)}
        self.biases: dict[str, tuple[str, str]] = {}
        """By product: its bias, and the name of their sum."""
        for node in graph.node:
            if node.op_type != "Add":
                continue
            for product, bias in (node.input, reversed(node.input)):
                if product in products and bias in self.weights:
                    self.biases[product] = bias, node.output[0]
        self.absorbed = {total for _, total in self.biases.values()}
        self.ranges: dict[str, tuple[float, int]] = {}

    def quantise(self, x: str) -> list[NodeProto]:
        self.ranges[x] = scale, zero = fixed_range(self.even(x))
        inputs = [
            f"{x}_even",
            self.add(f"{x}_scale", np.array(scale, np.float32)),
            self.add(f"{x}_zero", np.array(zero, np.uint8)),
        ]
        return [helper.make_node("QuantizeLinear", inputs, [f"{x}_quantised"])]

    def multiply(self, x: str, output: str, weight: Doubles) -> list[NodeProto]:
        even = self.even(x)
        values, scales = rounded(weight, even)
        inputs = [
            f"{x}_quantised",
            self.add(f"{output}_weight", values),
            f"{x}_scale",
            self.add(f"{output}_weight_scale", scales),
            f"{x}_zero",
        ]
        if output in self.biases:
            bias, output = self.biases[output]
            scale, zero = self.ranges[x]
            seen = (np.clip(np.rint(even / scale) + zero, 0, STEPS) - zero) * scale
            shift = even.mean(axis=0) @ weight - seen.mean(axis=0) @ (values * scales)
            corrected = (self.array(bias) + shift).astype(np.float32)
            inputs += ["", self.add(f"{output}_bias", corrected)]
        return [helper.make_node("MatMulIntegerToFloat", inputs, [output], domain=CONTRIB)]


def fixed_range(values: Floats) -> tuple[float, int]:
    """Scale and zero point (0-255) that cover all channels of nearly all tokens, and 0 exactly.

    ``values``: [tokens, channels].
    """
    high = max(0.0, float(np.quantile(values.max(axis=1), COVERED)))
    low = min(0.0, float(np.quantile(values.min(axis=1), 1 - COVERED)))
    scale = max(high - low, 1e-6) / STEPS
    return scale, round(-low / scale)


def _migration(activations: Floats, weights: list[Floats], alpha: float) -> Doubles:
    """The factor that divides each channel and multiplies its weights; geometric mean 1."""
    rows = np.max([np.abs(weight).max(axis=1) for weight in weights], axis=0)
    factors = np.maximum(activations, 1e-3) ** alpha / np.maximum(rows, 1e-4) ** (1 - alpha)
    return np.asarray(factors / np.exp(np.log(factors).mean()), np.float64)


def _replace_nodes(graph: onnx.GraphProto, nodes: list[NodeProto]) -> None:
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.node[:], graph.initializer[:], graph.value_info[:]
    graph.node.extend(nodes)
    graph.initializer.extend(kept)
