"""The examples in docstrings are true."""

import doctest
import importlib

import pytest

MODULES = [
    "benchmarks.capacity",
    "benchmarks.cost",
    "benchmarks.lengths",
    "benchmarks.markdown",
    "benchmarks.open_sessions",
    "benchmarks.parts.workers",
    "benchmarks.rounds",
    "benchmarks.schedule",
    "stream_app.commands.watch",
    "stream_app.core.approaches",
    "stream_app.core.environment",
    "stream_app.core.outcomes",
    "stream_app.inference.batching",
    "stream_app.store.privacy",
    "stream_app.web.agreement",
    "stream_app.web.console.feedback",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0
    assert failed == 0
