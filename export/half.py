"""A 16-bit version of the encoder graph for accelerators, to be measured against the float32 one.

Operators are fused first, as ONNX Runtime's own tool for transformers does it. Inputs and outputs
stay as they are: ids and masks in, float32 vectors and logits out.
"""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import helper
from onnxruntime.transformers import optimizer

FUSED = ("SkipLayerNormalization", "BiasGelu")
"""What must have been found in every layer; attention is left as it is exported."""


class FusionError(RuntimeError):
    """The graph is not one that the fuser knows."""


def float16(source: Path, target: Path) -> None:
    """Fused, computing in 16-bit floats; on a CPU the runtime computes in 32 bits between casts.

    Raises:
        FusionError: a kind of operator that every layer holds was not found.
    """
    fused = optimizer.optimize_model(str(source), model_type="bert", opt_level=0)
    found = fused.get_fused_operator_statistics()
    if missing := [name for name in FUSED if not found.get(name)]:
        message = f"no {' and no '.join(missing)} could be fused in {source}"
        raise FusionError(message)
    fused.convert_float_to_float16(keep_io_types=True)
    fused.topological_sort()
    fused.model.opset_import.append(helper.make_opsetid("com.microsoft", 1))  # the fused ones'
    onnx.checker.check_model(fused.model)
    fused.save_model_to_file(str(target))
