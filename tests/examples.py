"""Finds and runs the doctests of a package."""

import doctest
import importlib
from pathlib import Path

PROMPT = ">>> "


def modules(package: str) -> list[str]:
    """Names of the package's modules with doctests."""
    root = Path(__file__).parents[1]
    return sorted(
        ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for file in (root / package).rglob("*.py")
        if PROMPT in file.read_text("utf-8")
    )


def check(module: str) -> None:
    """Fail if a doctest of the module fails, or if none was run."""
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert tried > 0, f"{module} has doctests that are not found"
    assert failed == 0
