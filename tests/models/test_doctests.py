"""The doctests of models/ and export/ pass."""

import pytest

pytest.importorskip("torch")

from tests import examples

PACKAGES = ("export", "models")


@pytest.mark.parametrize("module", [name for each in PACKAGES for name in examples.modules(each)])
def test_examples(module: str) -> None:
    examples.check(module)
