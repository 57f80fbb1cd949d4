"""Graphs for accelerators, made from a bundle's own graphs when a CUDA session opens.

A bundle's graphs are for CPUs: 8-bit products, which have no CUDA kernels, and packed tokens, whose
number is unknown before it runs. The same weights, multiplied by their scales, give a float16 graph
of padded batches in which every operator has a CUDA kernel and no shape is computed, so that one
bundle with one identity and one calibration serves both kinds of processor.

Only encoders like BERT are understood: learned positions, normalisation after each block.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
from msgspec import Struct
from onnx import NodeProto, TensorProto, helper, numpy_helper

Floats = npt.NDArray[np.float32]
CONTRIB: Final = "com.microsoft"
OPSET: Final = 17
IR_VERSION: Final = 8
PRODUCTS: Final = ("MatMulIntegerToFloat", "MatMul", "Gemm")
ATTENTION_PRODUCTS: Final = 4
"""Products of a layer's attention: query, key, value and output; two more follow."""
LAYER_PRODUCTS: Final = 6


class UnknownGraphError(ValueError):
    """The graph is not an encoder that this module understands."""


class Linear(Struct, frozen=True):
    """A product with constant weights [inputs, outputs] and its bias [outputs]."""

    weight: Floats
    bias: Floats


class Norm(Struct, frozen=True):
    """A layer normalisation."""

    scale: Floats
    shift: Floats
    epsilon: float


class Parts(Struct, frozen=True):
    """The parts of an encoder; ``tail``: the products after its layers."""

    words: Floats
    positions: Floats
    norms: list[Norm]
    layers: list[list[Linear]]
    tail: list[Linear]
    heads: int


def encoder(graph: Path) -> bytes:
    """The float16 graph of ``encoder.onnx``.

    Raises:
        UnknownGraphError: it is not built as such encoders are.
    """
    with _known(graph):
        source = _Source(onnx.load(graph))
        parts = source.parts()
        if len(parts.tail) != 3 or len(parts.norms) != 1 + 2 * len(parts.layers):
            raise UnknownGraphError(f"{len(parts.tail)} products follow its layers, not 3")
        return _Encoder(parts, source.shapes()).built()


def reader(graph: Path, between: Sequence[int]) -> bytes:
    """The float16 graph of ``reader.onnx``; ``between``: the ids before the turn that is read.

    Raises:
        UnknownGraphError: it is not built as readers are.
    """
    with _known(graph):
        source = _Source(onnx.load(graph))
        parts = source.parts()
        if len(parts.norms) != 2 + 2 * len(parts.layers):
            raise UnknownGraphError("it does not end as a reader does")
        return _Reader(parts, source.shapes(), source.answers(), between).built()


@contextmanager
def _known(graph: Path) -> Iterator[None]:
    """Name the graph whose parts are not where they are looked for."""
    try:
        yield
    except (LookupError, StopIteration, UnknownGraphError) as problem:
        words = (
            problem
            if isinstance(problem, UnknownGraphError)
            else "its parts are arranged differently"
        )
        raise UnknownGraphError(f"{graph.name} is not an encoder like BERT: {words}") from problem


class _Source:
    """Reads the parts of a graph, quantised or not."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._graph = model.graph
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self._makers: dict[str, NodeProto] = {
            name: node for node in model.graph.node for name in node.output
        }
        self._users: dict[str, list[NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                self._users.setdefault(name, []).append(node)

    def shapes(self) -> dict[str, list[int | str]]:
        """The outputs' shapes by name."""
        return {
            item.name: [d.dim_param or d.dim_value for d in item.type.tensor_type.shape.dim]
            for item in self._graph.output
        }

    def parts(self) -> Parts:
        """The parts of the encoder."""
        normal = [node for node in self._graph.node if node.op_type == "LayerNormalization"]
        found = [node for node in self._graph.node if self._is_product(node)]
        softmax = [node for node in self._graph.node if node.op_type == "Softmax"]
        count = len(softmax)
        own, tail = found[: count * LAYER_PRODUCTS], found[count * LAYER_PRODUCTS :]
        if not count or len(own) < count * LAYER_PRODUCTS or not normal:
            raise UnknownGraphError(f"{len(found)} products in {count} layers of attention")
        layers = [own[at : at + LAYER_PRODUCTS] for at in range(0, len(own), LAYER_PRODUCTS)]
        for layer, node in zip(layers, softmax, strict=True):
            self._check_order(layer, node)
        words, positions = self._embeddings(normal[0].input[0])
        return Parts(
            words,
            positions,
            [self._norm(node) for node in normal],
            [[self.linear(node) for node in layer] for layer in layers],
            [self.linear(node) for node in tail],
            words.shape[1] // self._head_size(softmax[0]),
        )

    def answers(self) -> dict[str, tuple[Linear, Linear]]:
        """The two products of each reader output, the last with logits of no and yes."""
        found = {}
        for output in self._graph.output:
            joined = self._makers[output.name]
            split = self._makers[joined.input[1]]
            whole = self._makers[split.input[0]]
            last = self._makers[whole.input[list(split.output).index(joined.input[1])]]
            hidden = self._makers[self._makers[last.input[0]].input[0]]
            yes = self.linear(last)
            both = Linear(
                np.concatenate([np.zeros_like(yes.weight), yes.weight], 1),
                np.concatenate([np.zeros_like(yes.bias), yes.bias]),
            )
            found[output.name] = (self.linear(hidden), both)
        return found

    def array(self, name: str) -> npt.NDArray[Any]:
        """A constant of the graph."""
        return np.asarray(numpy_helper.to_array(self._constants[name]))

    def linear(self, node: NodeProto) -> Linear:
        """A product in float32: 8-bit weights times their scales and the inputs' factors."""
        weight = self.array(node.input[1]).astype(np.float32)
        if node.op_type == "Gemm":
            weight = weight.T if _attribute(node, "transB") else weight
            bias = self.array(node.input[2]) if len(node.input) > 2 else None
        elif node.op_type == "MatMul":
            bias = self._added(node.output[0])
        else:
            even = self._makers[self._makers[node.input[0]].input[0]]
            steps = even.op_type == "Div"  # a scale for each token
            factors = self._makers[even.input[0]] if steps else even
            weight = weight * self.array(node.input[3]) * self.array(factors.input[1])[:, None]
            scaled = self._users[node.output[0]][0].output[0] if steps else node.output[0]
            fixed = node.input[6] if len(node.input) > 6 else ""
            bias = self.array(fixed) if fixed else self._added(scaled)
        found = np.zeros(weight.shape[1], np.float32) if bias is None else bias
        return Linear(np.ascontiguousarray(weight, np.float32), found.astype(np.float32))

    def _is_product(self, node: NodeProto) -> bool:
        return node.op_type in PRODUCTS and node.input[1] in self._constants

    def _added(self, name: str) -> Floats | None:
        """The constant that is added to a value, if any."""
        for node in self._users.get(name, []):
            for other in node.input:
                if node.op_type == "Add" and other in self._constants:
                    return self.array(other)
        return None

    def _check_order(self, layer: list[NodeProto], softmax: NodeProto) -> None:
        """Query, key and value are the first three products, in this order."""
        scores = self._back(softmax.input[0], ("MatMul",))
        value = self._users[softmax.output[0]][0].input[1]
        used = [self._back(name, PRODUCTS) for name in (*scores.input, value)]
        if used != layer[: ATTENTION_PRODUCTS - 1]:
            raise UnknownGraphError("query, key and value are not a layer's first products")

    def _back(self, name: str, kinds: Sequence[str]) -> NodeProto:
        """The nearest node of these kinds before a value, along first inputs."""
        node: NodeProto = self._makers[name]
        while node.op_type not in kinds:
            node = self._makers[node.input[0]]
        return node

    def _head_size(self, softmax: NodeProto) -> int:
        """Find the head's size from the factor of the scores, its inverse square root."""
        scores = self._back(softmax.input[0], ("Mul",))
        factor = float(self.array(next(n for n in scores.input if n in self._constants)))
        return round(factor**-2)

    def _norm(self, node: NodeProto) -> Norm:
        scale, shift = (self.array(name).astype(np.float32) for name in node.input[1:3])
        return Norm(scale, shift, float(_attribute(node, "epsilon")))

    def _embeddings(self, total: str) -> tuple[Floats, Floats]:
        """The tables of words and of positions, to which the first type's vector is added."""
        words, positions, kind = [], [], np.zeros(1, np.float32)
        for name in self._addends(total):
            node = self._makers.get(name)
            if node is None:
                kind = self.array(name)
            elif node.op_type == "Mul":  # 8-bit rows and their scales
                rows, scales = (self._back(part, ("Gather",)).input[0] for part in node.input)
                words.append(self.array(rows).astype(np.float32) * self.array(scales))
            elif "input_ids" in self._ancestors(node.input[1]):
                words.append(self.array(node.input[0]))
            elif self._constants[node.input[0]].dims[0] > 2:  # types: two at most
                positions.append(self.array(node.input[0]))
            else:
                kind = self.array(node.input[0])[0]
        if (len(words), len(positions)) != (1, 1):
            raise UnknownGraphError("its embeddings are not of words, positions and types")
        return words[0], positions[0] + kind

    def _addends(self, name: str) -> Iterator[str]:
        node = self._makers.get(name)
        if node is not None and node.op_type == "Add":
            for part in node.input:
                yield from self._addends(part)
        else:
            yield name

    def _ancestors(self, name: str) -> set[str]:
        found, waiting = set(), [name]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self._makers[name].input if name in self._makers else []
        return found


class _Graph:
    """A float16 graph under construction; a method returns the name of its result."""

    def __init__(self, parts: Parts, shapes: dict[str, list[int | str]]) -> None:
        self.parts = parts
        self._shapes = shapes
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def built(self) -> bytes:
        """The graph, serialised."""
        for name in self._shapes:
            self.node("Identity", self.outputs[name], named=name)
        graph = helper.make_graph(
            self._nodes,
            "float16",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
                for name in ("input_ids", "attention_mask")
            ],
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                for name, shape in self._shapes.items()
            ],
            self._constants,
        )
        sets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=sets, ir_version=IR_VERSION)
        return bytes(model.SerializeToString())

    outputs: dict[str, str]

    def node(self, kind: str, *inputs: str, named: str = "", domain: str = "", **more: Any) -> str:
        """Add a node with one output."""
        name = named or f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], domain=domain, **more))
        return name

    def constant(self, values: Any, kind: npt.DTypeLike = np.float16) -> str:
        """Add a constant."""
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(values, kind), name))
        return name

    def axis(self, number: int) -> str:
        """An axis as an input of reductions."""
        return self.constant([number], np.int64)

    def cast(self, name: str, kind: int) -> str:
        return self.node("Cast", name, to=kind)

    def product(self, x: str, linear: Linear, *, gelu: bool = False) -> str:
        """``x @ weight + bias``, and its GELU."""
        found = self.node("MatMul", x, self.constant(linear.weight))
        bias = self.constant(linear.bias)
        if gelu:
            return self.node("BiasGelu", found, bias, domain=CONTRIB)
        return self.node("Add", found, bias)

    def states(self) -> str:
        """The states of all tokens, [batch, tokens, hidden]."""
        parts = self.parts
        word = self.node("Gather", self.constant(parts.words), "input_ids")
        count = self.node("CumSum", "attention_mask", self.constant(1, np.int64))
        place = self.node("Sub", count, self.constant(1, np.int64))
        position = self.node("Gather", self.constant(parts.positions), place)
        norms = iter(parts.norms)
        states = self.normal(self.node("Add", word, position), next(norms))
        mask = self.mask()
        for layer in parts.layers:
            seen = self.attention(states, layer[: ATTENTION_PRODUCTS - 1], mask)
            states = self.joined(seen, states, layer[3], next(norms))
            hidden = self.product(states, layer[4], gelu=True)
            states = self.joined(hidden, states, layer[5], next(norms))
        return states

    def mask(self) -> str:
        """Which tokens attention sees."""
        return self.cast("attention_mask", TensorProto.INT32)

    def attention(self, states: str, products: list[Linear], mask: str) -> str:
        """Query, key and value in one product, and attention in one operator."""
        weight = np.concatenate([each.weight for each in products], 1)
        bias = np.concatenate([each.bias for each in products])
        return self.node(
            "Attention",
            states,
            self.constant(weight),
            self.constant(bias),
            mask,
            domain=CONTRIB,
            num_heads=self.parts.heads,
        )

    def joined(self, x: str, states: str, linear: Linear, norm: Norm) -> str:
        """A block's last product, added to what went into the block and normalised."""
        return self.node(
            "SkipLayerNormalization",
            self.node("MatMul", x, self.constant(linear.weight)),
            states,
            self.constant(norm.scale),
            self.constant(norm.shift),
            self.constant(linear.bias),
            domain=CONTRIB,
            epsilon=norm.epsilon,
        )

    def normal(self, x: str, norm: Norm) -> str:
        return self.node(
            "LayerNormalization",
            x,
            self.constant(norm.scale),
            self.constant(norm.shift),
            axis=-1,
            epsilon=norm.epsilon,
        )

    def first(self, states: str) -> str:
        """The states of first tokens, [batch, 1, hidden]."""
        return self.node("Gather", states, self.constant([0], np.int64), axis=1)

    def count(self, weights: str) -> str:
        """Sums of weights [batch, tokens], [batch, 1]."""
        sums = self.node("CumSum", weights, self.constant(1, np.int64))
        return self.node("Gather", sums, self.constant([-1], np.int64), axis=1)

    def mean(self, states: str, weights: str) -> str:
        """Means of states by weights [batch, tokens], [batch, 1, hidden]; all in float32."""
        total = self.node("MatMul", self.node("Unsqueeze", weights, self.axis(1)), states)
        count = self.node("Max", self.count(weights), self.constant(1, np.float32))
        return self.node("Div", total, self.node("Unsqueeze", count, self.axis(1)))


class _Encoder(_Graph):
    def __init__(self, parts: Parts, shapes: dict[str, list[int | str]]) -> None:
        super().__init__(parts, shapes)
        states = self.states()
        wide = self.cast(states, TensorProto.FLOAT)
        mask = self.cast("attention_mask", TensorProto.FLOAT)
        vectors = self.node("Concat", self.first(wide), self.mean(wide, mask), axis=1)
        flat = self.node("Reshape", vectors, self.constant([0, -1], np.int64))
        *projections, out = parts.tail
        of_token, of_turn = sorted(projections, key=lambda each: len(each.weight))
        turn = self.product(self.cast(flat, TensorProto.FLOAT16), of_turn)
        token = self.product(states, of_token)
        total = self.node("Add", token, self.node("Unsqueeze", turn, self.axis(1)))
        hidden = self.node("Gelu", total, domain=CONTRIB)
        logits = self.cast(self.product(hidden, out), TensorProto.FLOAT)
        self.outputs = {"vectors": vectors, "rationale_logits": logits}


class _Reader(_Graph):
    def __init__(
        self,
        parts: Parts,
        shapes: dict[str, list[int | str]],
        answers: dict[str, tuple[Linear, Linear]],
        between: Sequence[int],
    ) -> None:
        super().__init__(parts, shapes)
        wide = self.cast(self.states(), TensorProto.FLOAT)
        mask = self.cast("attention_mask", TensorProto.FLOAT)
        after = self.node("Mul", self._after(mask, between), mask)
        before = self.node("Sub", mask, after)
        ends = [self.first(wide), self.mean(wide, after), self.mean(wide, before)]
        flat = self.node("Squeeze", self.node("Concat", *ends, axis=-1), self.axis(1))
        fused = self.normal32(flat, parts.norms[-1])
        fused = self.cast(fused, TensorProto.FLOAT16)
        self.outputs = {}
        for name, (hidden, last) in answers.items():
            logits = self.product(self.product(fused, hidden, gelu=True), last)
            self.outputs[name] = self.cast(logits, TensorProto.FLOAT)

    def _after(self, mask: str, between: Sequence[int]) -> str:
        """1 from the turn's first token on: ``between`` follows the tokens before the turn."""
        separator = self.node("Equal", "input_ids", self.constant(between[0], np.int64))
        one = self.constant(1, np.int64)
        seen = self.node("CumSum", self.cast(separator, TensorProto.FLOAT), one)
        none = self.node("Equal", seen, self.constant(0, np.float32))
        start = self.count(self.cast(none, TensorProto.FLOAT))
        place = self.node("CumSum", mask, one)  # counts from 1
        limit = self.node("Add", start, self.constant(len(between) + 1, np.float32))
        return self.cast(self.node("GreaterOrEqual", place, limit), TensorProto.FLOAT)

    def normal32(self, x: str, norm: Norm) -> str:
        """Cast to float32 what ``normal`` gives."""
        return self.node(
            "LayerNormalization",
            x,
            self.constant(norm.scale, np.float32),
            self.constant(norm.shift, np.float32),
            axis=-1,
            epsilon=norm.epsilon,
        )


def _attribute(node: NodeProto, name: str) -> Any:
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), 0)
