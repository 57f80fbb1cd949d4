"""``rapport up`` starts everything, and leaves nothing behind however it ends."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from stream_app.processes.interrupts import signals_as_interrupt

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the broker ships for Linux only"),
]
PATIENCE = 60.0


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "up.log"


@pytest.fixture
def start(tmp_path: Path, output: Path) -> Iterator[object]:
    """Starts ``rapport up``; kills it if it is still running after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*arguments: str) -> subprocess.Popen[bytes]:
        with output.open("wb") as log:
            started.append(
                subprocess.Popen(
                    [sys.executable, "-m", "stream_app.cli", "up", *arguments],
                    cwd=tmp_path,
                    env={
                        **os.environ,
                        "TMPDIR": str(tmp_path),
                        "COLUMNS": "200",
                        "RAPPORT_WEB_PORT": "0",
                    },
                    stdout=log,
                    stderr=log,
                )
            )
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


def await_words(output: Path, words: str) -> None:
    give_up = time.monotonic() + PATIENCE
    while words not in output.read_text("utf-8"):
        assert time.monotonic() < give_up, f"not printed: {words}\n{output.read_text('utf-8')}"
        time.sleep(0.05)


def assert_nothing_is_left(output: Path, children: list[psutil.Process], folder: Path) -> None:
    text = output.read_text("utf-8")
    found = re.search(r"worker pid (\d+)", text)
    assert found, text
    assert not psutil.pid_exists(int(found[1]))
    psutil.wait_procs(children, timeout=5)
    assert not [child for child in children if child.is_running()]
    assert not list(folder.rglob("*.db"))
    assert not list(folder.rglob("worker.log"))
    assert not (folder / "rapport-data").exists()


def test_up_shows_scores_and_ends_after_the_given_time(start, output: Path, tmp_path: Path) -> None:
    process = start("--for", "20", "--speed", "50", "--weeks", "1", "--no-history")
    await_words(output, "worker pid")
    children = psutil.Process(process.pid).children()
    assert len(children) == 3
    assert process.wait(PATIENCE) == 0, output.read_text("utf-8")
    text = output.read_text("utf-8")
    assert re.search(r"^ready: first score after \d+\.\d s$", text, re.MULTILINE), text
    assert re.search(r"^score [a-z-]+ \d+ (provisional|final) ER", text, re.MULTILINE), text
    assert "all processes have ended" in text
    assert_accounts(text)
    assert_nothing_is_left(output, children, tmp_path)


def assert_accounts(text: str) -> None:
    """The address and four accounts are printed when the demo is ready, and again at its end."""
    first = re.compile(r"^console http://\S+ · password of all accounts: \S{12}$", re.MULTILINE)
    found = list(first.finditer(text))
    assert len(found) == 2, text
    assert found[0][0] == found[1][0]
    for block in (text[found[0].end() :], text[found[1].end() :]):
        names = [line.split()[0] for line in block.splitlines()[1:5]]
        assert names == ["supervisor", "counsellor", "analyst", "admin"]
    lines = text.splitlines()
    assert lines.index(found[0][0]) == lines.index(next(x for x in lines if x[:6] == "ready:")) + 1
    assert found[1][0] in lines[-7:]


def test_one_alert_waits_when_the_demo_has_begun(start, output: Path, tmp_path: Path) -> None:
    process = start("--weeks", "0", "--no-history")
    await_words(output, "ready: first score")
    await_words(output, "ALERT firing")
    time.sleep(5)
    fired = re.findall(r"^ALERT firing +(\S+) · (\S+) ", output.read_text("utf-8"), re.MULTILINE)
    assert fired == [("low-empathy", "tired-of-tired")]
    assert_ends_cleanly(process, signal.SIGINT, output, tmp_path)
    assert_accounts(output.read_text("utf-8"))


def test_a_signal_ends_up_while_history_is_written(start, output: Path, tmp_path: Path) -> None:
    process = start("--speed", "50", "--weeks", "0")
    await_words(output, "ready: first score")
    assert_ends_cleanly(process, signal.SIGTERM, output, tmp_path)


def test_up_adds_synthetic_history_after_the_first_score_and_ends_on_ctrl_c(
    start, output: Path, tmp_path: Path
) -> None:
    process = start("--speed", "50", "--weeks", "0")
    await_words(output, "half a year of synthetic history after")
    text = output.read_text("utf-8")
    assert text.index("ready: first score") < text.index("half a year of synthetic history")
    assert_ends_cleanly(process, signal.SIGINT, output, tmp_path)


def assert_ends_cleanly(
    process: subprocess.Popen[bytes], number: signal.Signals, output: Path, folder: Path
) -> None:
    children = psutil.Process(process.pid).children()
    assert len(children) >= 3
    process.send_signal(number)
    assert process.wait(PATIENCE) == 0, output.read_text("utf-8")
    assert "Traceback" not in output.read_text("utf-8")
    assert_nothing_is_left(output, children, folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_and_is_not_raised_in_a_running_task(number: signal.Signals) -> None:
    seen: list[BaseException] = []

    async def struck() -> None:
        try:
            signal.raise_signal(number)
            await asyncio.sleep(PATIENCE)
        except BaseException as problem:
            seen.append(problem)
            raise

    async def showing() -> None:
        await asyncio.create_task(struck())

    with signals_as_interrupt(), pytest.raises(KeyboardInterrupt):
        asyncio.run(showing())
    assert [type(problem) for problem in seen] == [asyncio.CancelledError]


def test_a_dead_worker_ends_up_with_a_message(start, output: Path, tmp_path: Path) -> None:
    process = start("--speed", "50", "--weeks", "0")
    await_words(output, "ready: first score")
    [pid] = re.findall(r"worker pid (\d+)", output.read_text("utf-8"))
    children = psutil.Process(process.pid).children()
    os.kill(int(pid), signal.SIGKILL)
    assert process.wait(PATIENCE) == 1
    assert "the worker process exited unexpectedly" in output.read_text("utf-8")
    assert_nothing_is_left(output, children, tmp_path)
