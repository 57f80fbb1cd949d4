"""The examples in docstrings: found by walking a package, so that none is forgotten."""

import doctest
import importlib
from pathlib import Path

PROMPT = ">>> "


def modules(package: str) -> list[str]:
    """Names of the package's modules that have examples."""
    root = Path(__file__).parents[1]
    return sorted(
        ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for file in (root / package).rglob("*.py")
        if PROMPT in file.read_text("utf-8")
    )


def check(module: str) -> None:
    """Fails where an example says something else than its module, or where none was run."""
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert tried > 0, f"{module} has examples that doctest does not find"
    assert failed == 0
