"""A float16 version of the encoder graph for accelerators.

Operators are fused first, by ONNX Runtime's own tool for transformers. Inputs and outputs keep
their types: ids and masks in, float32 vectors and logits out.
"""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import helper
from onnxruntime.transformers import optimizer

FUSED = ("SkipLayerNormalization", "BiasGelu")
"""Fused operators that must occur in every layer; attention stays as exported."""


class FusionError(RuntimeError):
    """The graph's structure is not supported by the fuser."""


def float16(source: Path, target: Path) -> None:
    """Write a fused float16 graph; on a CPU the runtime casts and computes in float32.

    Raises:
        FusionError: an operator expected in every layer was not found.
    """
    fused = optimizer.optimize_model(str(source), model_type="bert", opt_level=0)
    found = fused.get_fused_operator_statistics()
    if missing := [name for name in FUSED if not found.get(name)]:
        message = f"no {' and no '.join(missing)} could be fused in {source}"
        raise FusionError(message)
    fused.convert_float_to_float16(keep_io_types=True)
    fused.topological_sort()
    fused.model.opset_import.append(
        helper.make_opsetid("com.microsoft", 1)
    )  # weights of the fused operators
    onnx.checker.check_model(fused.model)
    fused.save_model_to_file(str(target))
