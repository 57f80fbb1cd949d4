"""Words that the rules look for, from ``vocabulary.toml``."""

import tomllib
from functools import cache
from importlib import resources


def vocabulary(module: str, name: str) -> frozenset[str]:
    """The words that ``module`` calls so."""
    return frozenset(_tables()[module][name].split())


@cache
def _tables() -> dict[str, dict[str, str]]:
    file = resources.files(__package__).joinpath("vocabulary.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
