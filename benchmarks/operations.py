"""Count an encoder graph's operations and layers: ``python -m benchmarks.operations encoder.onnx``.

Runs in the training environment, which has the ``onnx`` package. Counts two operations per token
for each weight of a matrix product; attention between tokens, a few percent at a turn's length, is
ignored.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from benchmarks import environments
from benchmarks.load import processes

WEIGHT_PRODUCTS: Final = frozenset(
    (
        *("MatMul", "Gemm", "MatMulInteger", "DynamicQuantizeMatMul", "QLinearMatMul", "QGemm"),
        *("FusedMatMul", "FusedGemm", "MatMulIntegerToFloat", "Attention", "QAttention"),
    )
)
SOFTMAX: Final = frozenset(("Softmax", "Attention", "QAttention"))
PASS_ON: Final = frozenset(("Cast", "DequantizeLinear", "Identity", "Transpose"))
"""Operators that pass a weight through unchanged."""


class EncoderSize(Struct, frozen=True):
    """Millions of operations per token in products with weights, and layers."""

    mega_operations: float
    layers: int


def size(graph: Path) -> EncoderSize:
    """Count in the training environment.

    Raises:
        Unavailable: there is no training environment.
    """
    done = subprocess.run(  # noqa: S603  # no shell
        [environments.train(), "-m", "benchmarks.operations", graph],
        cwd=processes.REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=EncoderSize)


def counted(graph: Path) -> EncoderSize:
    """Count here. A layer has one softmax, that of its attention."""
    import onnx  # noqa: PLC0415  # only in the training environment

    model: Any = onnx.load(graph)
    sizes = {
        item.name: int(item.dims[0]) * int(item.dims[1])
        for item in model.graph.initializer
        if len(item.dims) == 2
    }
    total = 0
    for node in model.graph.node:
        if node.op_type == "MatMulNBits":
            shape = {item.name: item.i for item in node.attribute}
            total += shape["K"] * shape["N"]
        elif node.op_type in PASS_ON and node.input[0] in sizes:
            sizes[node.output[0]] = sizes[node.input[0]]
        elif node.op_type in WEIGHT_PRODUCTS:
            total += next((sizes[name] for name in node.input if name in sizes), 0)
    layers = sum(node.op_type in SOFTMAX for node in model.graph.node)
    return EncoderSize(2.0 * total / 1e6, layers)


if __name__ == "__main__":
    print(msgspec.json.encode(counted(Path(sys.argv[1]))).decode())
