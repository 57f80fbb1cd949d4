"""Count an encoder graph's operations: ``python -m benchmarks.operations encoder.onnx``.

Runs in the training environment, which has the ``onnx`` package. Counts two operations per token
for each weight of a matrix product; attention between tokens, a few percent at a turn's length, is
ignored.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks import environments, processes

MATRIX_PRODUCTS: Final = frozenset(
    (
        *("MatMul", "Gemm", "MatMulInteger", "DynamicQuantizeMatMul", "QLinearMatMul", "QGemm"),
        *("FusedMatMul", "FusedGemm", "MatMulIntegerToFloat", "Attention", "QAttention"),
    )
)
PASS_ON: Final = frozenset(("Cast", "DequantizeLinear", "Identity", "Transpose"))
"""Operators that pass a weight through unchanged."""


def mega_operations(graph: Path) -> float:
    """Millions of operations per token, counted in the training environment.

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
    return float(done.stdout)


def counted(graph: Path) -> float:
    """Millions of operations per token."""
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
        elif node.op_type in MATRIX_PRODUCTS:
            total += next((sizes[name] for name in node.input if name in sizes), 0)
    return 2.0 * total / 1e6


if __name__ == "__main__":
    print(counted(Path(sys.argv[1])))
