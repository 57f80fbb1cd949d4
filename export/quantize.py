"""Two 8-bit versions of the encoder graph.

`export.int8_products` has two more, which are usually better.

- `dynamic_int8`: weights and activations of the matrix products in 8 bits. An activation's range
  is taken over the whole batch, so a turn's score depends on the other turns unless it is encoded
  alone.
- `weights_int8`: weights in blocks of 64 with a scale each; every turn has the same result in any
  batch.

Both store the word embeddings as 8-bit rows with one scale per row.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

BLOCK = 64
ACCURACY_LEVEL = 4
"""accuracy_level of MatMulNBits: activations in 8 bits per block, independent of other turns."""


LARGE = 4096
"""Tables with fewer weights than this stay in float."""


def dynamic_int8(source: Path, target: Path) -> None:
    """Dynamic 8-bit matrix products, one weight scale per channel."""
    small = target.with_suffix(".embeddings.onnx")
    onnx.save(quantize_embeddings(onnx.load(source)), small)
    quantize_dynamic(
        small,
        target,
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        weight_type=QuantType.QInt8,
        extra_options={"DefaultTensorType": TensorProto.FLOAT},
    )
    small.unlink()


def weights_int8(source: Path, target: Path) -> None:
    """8-bit weights in blocks, symmetric."""
    quantizer = MatMulNBitsQuantizer(
        quantize_embeddings(onnx.load(source)),
        bits=8,
        block_size=BLOCK,
        is_symmetric=True,
        accuracy_level=ACCURACY_LEVEL,
    )
    quantizer.process()
    onnx.save(quantizer.model.model, target)


def half_weights(source: Path, target: Path) -> None:
    """Store the graph's large weights as 16-bit floats; it still computes in 32 bits.

    The runtime casts them once, at load time.
    """
    model = onnx.load(source)
    graph = model.graph
    casts = []
    for tensor in list(graph.initializer):
        values = numpy_helper.to_array(tensor)
        if tensor.data_type != TensorProto.FLOAT or values.size < LARGE:
            continue
        stored = f"{tensor.name}_half"
        graph.initializer.remove(tensor)
        graph.initializer.append(numpy_helper.from_array(values.astype(np.float16), stored))
        casts.append(helper.make_node("Cast", [stored], [tensor.name], to=TensorProto.FLOAT))
    for position, node in enumerate(casts):
        graph.node.insert(position, node)
    onnx.checker.check_model(model)
    onnx.save(model, target)


def quantize_embeddings(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace the largest gathered table by 8-bit rows with one scale each.

    A gathered row q and its scale s give q * s, at most s / 2 from the float value.
    """
    graph = model.graph
    tables = {tensor.name: tensor for tensor in graph.initializer}
    gathers = [node for node in graph.node if node.op_type == "Gather" and node.input[0] in tables]
    gather = max(gathers, key=lambda node: np.prod(tables[node.input[0]].dims))
    table = tables[gather.input[0]]
    rows, scales = quantize_rows(numpy_helper.to_array(table))
    name = table.name
    graph.initializer.remove(table)
    graph.initializer.extend(
        [
            numpy_helper.from_array(rows, f"{name}_rows"),
            numpy_helper.from_array(scales, f"{name}_scales"),
        ]
    )
    ids, output = gather.input[1], gather.output[0]
    nodes = [
        helper.make_node("Gather", [f"{name}_rows", ids], [f"{name}_q"]),
        helper.make_node("Gather", [f"{name}_scales", ids], [f"{name}_s"]),
        helper.make_node("Cast", [f"{name}_q"], [f"{name}_f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{name}_f", f"{name}_s"], [output]),
    ]
    del graph.value_info[:]  # the exporter's recorded shapes are wrong for folded weights
    position = list(graph.node).index(gather)
    graph.node.remove(gather)
    for offset, node in enumerate(nodes):
        graph.node.insert(position + offset, node)
    onnx.checker.check_model(model)
    return model


def quantize_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows as int8 -127..127, and their scales float32 [rows, 1]."""
    largest = np.abs(table).max(axis=1, keepdims=True)
    scales = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    return np.rint(table / scales).astype(np.int8), scales
