"""The pinned environment of the alternative stream engine has what its consumer imports."""

import json
import re
import subprocess
import sys

from benchmarks.consumers import __file__ as package
from benchmarks.environments import PEER_REQUIREMENTS

NOT_NEEDED = {"rapport-empathy", "greenlet"}
"""This package, which is on the path, and what structlog loads if it is there."""
CONSUMER = package.replace("__init__.py", "quix.py")
IMPORTED = """
import ast, importlib, json, sys
from importlib.metadata import packages_distributions

before = set(sys.modules)
for node in ast.parse(open(sys.argv[1]).read()).body:
    if isinstance(node, ast.ImportFrom) and not node.module.startswith("quixstreams"):
        importlib.import_module(node.module)
    elif isinstance(node, ast.Import):
        for name in node.names:
            importlib.import_module(name.name)
roots = {name.partition(".")[0] for name in set(sys.modules) - before}
owners = packages_distributions()
print(json.dumps(sorted({owner for root in roots for owner in owners.get(root, ())})))
"""


def test_every_distribution_that_the_consumer_loads_is_pinned() -> None:
    """Only the engine itself is not installed here."""
    found = subprocess.run(
        [sys.executable, "-c", IMPORTED, CONSUMER], check=True, capture_output=True, text=True
    )
    loaded = {_name(each) for each in json.loads(found.stdout)} - NOT_NEEDED
    lines = PEER_REQUIREMENTS.read_text().splitlines()
    pinned = {_name(line.partition("==")[0]) for line in lines if "==" in line}
    assert {"msgspec", "onnxruntime", "cel-expr-python"} <= loaded
    assert loaded <= pinned


def _name(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()
