"""The service does not import training packages."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import importlib, json, pkgutil, sys
import stream_app.bootstrap
from stream_app import cli, demo, processes, recordings, work
for room in (cli, demo, processes, recordings, work):
    for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(json.dumps(sorted(sys.modules)))
"""
FORBIDDEN = {"torch", "transformers", "sklearn", "models", "export"}


def test_no_command_imports_torch_or_the_training_code() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert "stream_app.demo.up" in loaded
    assert not {name.partition(".")[0] for name in loaded} & FORBIDDEN
    assert "opentelemetry.sdk" not in loaded, "tracing is off"


def test_a_worker_does_not_import_the_console() -> None:
    script = (
        "import json, sys; import stream_app.processes.worker; print(json.dumps(list(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert "faust" in loaded
    assert not loaded & {"fastapi", "uvicorn", "jinja2", "pandas", "statsmodels", "pyarrow"}
    assert "opentelemetry" not in loaded


def test_the_demo_and_the_console_do_not_import_duckdb() -> None:
    """It is in the extra `analytics`, which `make demo` does not install."""
    script = (
        "import json, sys; import stream_app.demo.history, stream_app.web.app; "
        "print(json.dumps(list(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert {"fastapi", "pandas"} <= loaded
    assert "duckdb" not in loaded
