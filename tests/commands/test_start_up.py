"""Processes import what they use, and nothing else before they are ready."""

import json
import subprocess
import sys

import pytest

SOON = "import gc, json, sys; {}; print(json.dumps([gc.isenabled(), *sys.modules]))"
HEAVY = frozenset(
    {
        *("aiokafka", "alembic", "duckdb", "faust", "numpy", "onnxruntime", "pandas", "pyarrow"),
        *("scipy", "statsmodels", "tokenizers"),
    }
)


def imported(statement: str) -> set[str]:
    """The top-level modules in a new process after this statement."""
    script = SOON.format(statement)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    return {str(name).partition(".")[0] for name in json.loads(done.stdout)[1:]}


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_no_settings_and_no_libraries(option: str) -> None:
    run = f"from typer.testing import CliRunner; CliRunner().invoke(cli.app, ['{option}'])"
    loaded = imported(f"from stream_app import cli; {run}")
    assert "typer" in loaded
    assert not loaded & (HEAVY | {"pydantic", "rich", "sqlalchemy", "structlog"})


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("worker", {"aiokafka", "faust", "numpy"}),
        ("web", {"aiokafka"}),
        ("notifier", set()),
    ],
)
def test_a_process_imports_its_own_parts(command: str, needed: set[str]) -> None:
    more = ", stream_app.web.app" if command == "web" else ""
    loaded = imported(f"import stream_app.processes.{command}{more}")
    assert "sqlalchemy" in loaded
    assert loaded & HEAVY == needed
