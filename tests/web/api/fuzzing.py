"""Runs Schemathesis against a web process, for about half a minute."""

import os
import subprocess
import sys
from pathlib import Path

from tests.web.server import Web

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
SECONDS = 480


def fuzz(web: Web, name: str, folder: Path, phases: str, *which: str) -> None:
    """Fuzz as this person; fails on 5xx and on responses that do not match their schema."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "schemathesis.cli",
            "run",
            f"{web.url}/api/v1/openapi.json",
            f"--checks={','.join(CHECKS)}",
            f"--header=Authorization: Bearer {web.tokens[name]}",
            "--max-examples=4",
            f"--phases={phases}",
            "--seed=1",
            "--request-timeout=20",
            "--generation-database=none",
            "--continue-on-failure",
            "--no-color",
            *which,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "api.failed" not in web.log()
