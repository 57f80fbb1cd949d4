import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Rapport = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def rapport(tmp_path: Path) -> Rapport:
    """Runs the command in an empty folder, as a user does."""

    def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "stream_app.cli", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    return run
