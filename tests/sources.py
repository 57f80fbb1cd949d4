"""Reads the repository's Python files as syntax trees, for tests of wording and imports."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")


@cache
def tree(file: Path) -> ast.Module:
    """The syntax tree of a file, parsed once per test process."""
    return ast.parse(file.read_text("utf-8"))


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements below a node, at any depth; `ast.walk` would visit every expression, too."""
    for block in _BLOCKS:
        for child in getattr(node, block, ()):
            if isinstance(child, ast.stmt):
                yield child
            yield from statements(child)
