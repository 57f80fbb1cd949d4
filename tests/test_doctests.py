"""The doctests of the service and the benchmarks pass."""

import pytest

from tests import examples

PACKAGES = ("benchmarks", "stream_app")


@pytest.mark.parametrize("module", [name for each in PACKAGES for name in examples.modules(each)])
def test_examples(module: str) -> None:
    examples.check(module)
