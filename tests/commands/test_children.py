"""Child processes end with their ``with``."""

import sys
from pathlib import Path

import pytest

from stream_app.commands import children

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('here', flush=True); time.sleep(60)"
)


def test_a_process_that_does_not_stop_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "STOP_PATIENCE", 0.5)
    with children.running([sys.executable, "-c", STUBBORN], tmp_path / "log", {}) as process:
        while not (tmp_path / "log").read_text("utf-8"):
            pass
    assert process.returncode == -9
