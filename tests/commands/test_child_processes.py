"""Child processes end with their ``with`` block."""

import os
import sys
from pathlib import Path

import pytest

from stream_app.processes import child_processes
from stream_app.settings import Settings

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('here', flush=True); time.sleep(60)"
)


def test_a_process_that_does_not_stop_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_processes, "STOP_PATIENCE", 0.5)
    with child_processes.running_process(
        [sys.executable, "-c", STUBBORN], tmp_path / "log", os.environ
    ) as process:
        while not (tmp_path / "log").read_text("utf-8"):
            pass
    assert process.returncode == -9


def test_a_removed_setting_is_not_inherited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAPPORT_HEALTH_PORT", "1")
    without = Settings().model_copy(update={"health_port": None})
    with child_processes.child_process(without, "config", tmp_path / "log") as process:
        assert process.wait(60) == 0
    assert "RAPPORT_HEALTH_PORT= " in (tmp_path / "log").read_text("utf-8")
