"""``rapport up``: the whole service on a laptop, with sample sessions to look at.

Starts the embedded broker and a worker as processes of its own, on SQLite, replays the samples and
shows the wall. Whatever ends it, the processes end with it.
"""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from pydantic import SecretStr
from rich.console import Console

from stream_app import bootstrap
from stream_app.commands import replay, watch
from stream_app.commands.event_files import sample_sessions
from stream_app.errors import RapportError
from stream_app.settings import Settings
from stream_app.store import schema
from stream_app.worker import broker
from stream_app.worker.topics import declare_topics

EMBEDDED_SESSION_TIMEOUT = 3.0
"""The embedded broker makes every group join wait this long."""
STOP_PATIENCE = 15.0


class WorkerDied(RapportError):
    """The worker process ended by itself."""


def run(
    settings: Settings,
    console: Console,
    *,
    speed: float,
    sessions: int,
    concurrent: int,
    seconds: float | None,
) -> None:
    """Run until Ctrl-C, SIGTERM, or for ``seconds``.

    Raises:
        WorkerDied: with the end of the worker's log.
    """
    started = time.monotonic()
    with (
        _signals_as_interrupt(),
        tempfile.TemporaryDirectory(prefix="rapport-") as folder,
        broker.running() as address,
    ):
        local = settings.model_copy(
            update={
                "kafka_brokers": address,
                "kafka_session_timeout": EMBEDDED_SESSION_TIMEOUT,
                "database_url": SecretStr(f"sqlite:///{folder}/rapport.db"),
            }
        )
        prepare(local)
        with worker_process(local, Path(folder) / "worker.log") as worker:
            console.print(
                f"broker {address} · worker pid {worker.pid} · database {folder}/rapport.db · "
                "Ctrl-C stops everything"
            )
            with suppress(KeyboardInterrupt):
                asyncio.run(
                    _show(local, console, worker, started, speed, sessions, concurrent, seconds)
                )
            console.print("stopping …")
            if worker.poll() is not None:
                raise WorkerDied(_last_words(Path(folder) / "worker.log"))
    console.print("stopped; nothing is left running")


def prepare(settings: Settings) -> None:
    """Schema and topics, before the first worker starts."""
    store = bootstrap.store(settings)
    schema.upgrade(store)
    store.close()
    asyncio.run(declare_topics(settings))


@contextmanager
def worker_process(
    settings: Settings, log: Path, more: Mapping[str, str] = MappingProxyType({})
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker in a process of its own, stopped gracefully at the end of the ``with``."""
    with log.open("ab") as sink:
        process = subprocess.Popen(  # this program again
            [sys.executable, "-m", "stream_app.cli", "worker"],
            env={**os.environ, **environment(settings), **more},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            preexec_fn=broker.die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def environment(settings: Settings) -> dict[str, str]:
    """Settings as the environment of a child process."""
    values = settings.model_dump(mode="python", exclude_none=True)
    return {f"RAPPORT_{name.upper()}": _plain(value) for name, value in values.items()}


def _plain(value: object) -> str:
    match value:
        case SecretStr():
            return value.get_secret_value()
        case bool():
            return str(value).lower()
        case _:
            return str(getattr(value, "value", value))


async def _show(
    settings: Settings,
    console: Console,
    worker: subprocess.Popen[bytes],
    started: float,
    speed: float,
    sessions: int,
    concurrent: int,
    seconds: float | None,
) -> None:
    events = replay.showing(
        sample_sessions(), sessions, concurrent, speed, f"demo-{secrets.token_hex(2)}"
    )
    tasks: list[asyncio.Task[None]] = [
        asyncio.create_task(watch.show(settings, console, from_start=True)),
        asyncio.create_task(_until_dead(worker)),
        asyncio.create_task(_say_ready(settings, console, started)),
    ]
    sending: asyncio.Task[int] = asyncio.create_task(replay.send(settings, events, speed=1.0))
    try:
        done, _ = await asyncio.wait(
            tasks[:2], timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        for task in done:
            task.result()
        if sending.done():
            sending.result()
    finally:
        started_here: list[asyncio.Task[None] | asyncio.Task[int]] = [*tasks, sending]
        for running in started_here:
            running.cancel()
        await asyncio.gather(*started_here, return_exceptions=True)


async def _until_dead(worker: subprocess.Popen[bytes]) -> None:
    while worker.poll() is None:
        await asyncio.sleep(0.2)


async def _say_ready(settings: Settings, console: Console, started: float) -> None:
    """Ready = the first score is published."""
    async with watch.messages(settings, from_start=True) as client:
        await client.getone()
    console.print(f"ready: first score after {time.monotonic() - started:.1f} s")


@contextmanager
def _signals_as_interrupt() -> Iterator[None]:
    """SIGTERM stops like Ctrl-C, and Ctrl-C also where a shell started it with SIGINT ignored."""
    stopping = (signal.SIGTERM, signal.SIGINT)
    previous = [signal.signal(number, signal.default_int_handler) for number in stopping]
    try:
        yield
    finally:
        for number, handler in zip(stopping, previous, strict=True):
            signal.signal(number, handler)


def _last_words(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").splitlines()[-15:]
    return "the worker stopped by itself; its last words:\n" + "\n".join(lines)
