"""Runs the whole service on a laptop and replays the sample sessions.

Starts the embedded broker, a worker and the console as child processes, with SQLite, replays the
sample sessions and shows the wall. However it ends, the child processes end with it.
"""

import asyncio
import secrets
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct
from pydantic import SecretStr
from rich.console import Console
from rich.text import Text

from stream_app import bootstrap
from stream_app.analytics.questions import marked_days
from stream_app.analytics.views import schema
from stream_app.demo import played_sessions
from stream_app.errors import RapportError
from stream_app.health_server import PortInUse
from stream_app.processes import watch
from stream_app.processes.child_processes import child_process
from stream_app.processes.interrupts import signals_as_interrupt
from stream_app.recordings import replay
from stream_app.recordings.event_files import DEMO_TEAM, sample_counsellor, sample_sessions
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.roles import PersonRole
from stream_app.work.account_changes import AccountChanges
from stream_app.worker.kafka import broker
from stream_app.worker.kafka.topics import declare_topics

EMBEDDED_BROKER: Final = {"kafka_session_timeout": 2.0}
"""Settings for the embedded broker.

It delays every group join by half of the session's time-out, in whole seconds. It looks for new
records only twice while a fetch waits, so that a turn waits for half of that time, which is shorter
with a short time-out.
"""
CONSOLE_PATIENCE = 60.0


class ChildDied(RapportError):
    """The worker or the console exited unexpectedly."""


ACCOUNTS: Final = {
    PersonRole.SUPERVISOR: "answers the alerts of all teams",
    PersonRole.COUNSELLOR: "learns from the sessions of one counsellor",
    PersonRole.ANALYST: "compares teams and months, without text",
    PersonRole.ADMIN: "manages accounts, consent and erasure, without text",
}
"""The demo's accounts, called like their roles, and what each is for."""


def run(
    settings: Settings,
    console: Console,
    *,
    speed: float,
    sessions: int,
    weeks: int,
    seconds: float | None,
    history: bool,
) -> None:
    """Run until Ctrl-C, SIGTERM, or for ``seconds``.

    Raises:
        PortInUse: another program listens on the console's configured port.
        ChildDied: a child process exited; the message has the end of its log.
    """
    started = time.monotonic()
    with (
        signals_as_interrupt(),
        tempfile.TemporaryDirectory(prefix="rapport-") as made,
        broker.running() as address,
    ):
        folder = Path(made)
        port = _port(settings)
        local = settings.model_copy(
            update={
                "kafka_brokers": address,
                **EMBEDDED_BROKER,
                "database_url": SecretStr(f"sqlite:///{folder}/rapport.db"),
                "web_port": port,
                "external_url": f"http://{settings.web_host}:{port}",
                "marked_days": settings.marked_days or folder / "marked-days.csv",
            }
        )
        if settings.marked_days is None:
            marked_days.write(folder / "marked-days.csv", [])  # history adds its training
        prepare(local)
        accounts = _accounts(local)
        with (
            child_process(local, "worker", folder / "worker.log") as worker,
            child_process(_console_settings(local), "web", folder / "web.log") as web,
        ):
            _await_console(local, web, folder / "web.log")
            console.print(
                f"broker {address} · worker pid {worker.pid} · console pid {web.pid} · "
                f"database {folder}/rapport.db · Ctrl-C stops everything",
                soft_wrap=True,
            )
            log = folder / "history.log" if history else None
            options = DemoOptions(speed, sessions, weeks, seconds, log, accounts)
            with suppress(KeyboardInterrupt):
                asyncio.run(_show(local, console, [worker, web], started, options))
            console.print(accounts, soft_wrap=True)
            console.print("stopping …")
            for name, process in (("worker", worker), ("web", web)):
                if process.poll() is not None:
                    raise ChildDied(_log_tail(name, folder / f"{name}.log"))
    console.print("stopped; all processes have ended")


class DemoOptions(Struct, frozen=True):
    """Play ``sessions`` at a time, and meanwhile ``weeks`` of past ones, for ``seconds``.

    ``history``: log of the process that writes synthetic history; None: none is written.
    ``accounts``: where and how to sign in, which stays in sight.
    """

    speed: float
    sessions: int
    weeks: int
    seconds: float | None
    history: Path | None
    accounts: Text


def prepare(settings: Settings) -> None:
    """Create the schema and the topics, before the first worker starts."""
    store = bootstrap.new_store(settings)
    schema.upgrade(store, settings.bundle)
    store.close()
    asyncio.run(declare_topics(settings))


def _console_settings(settings: Settings) -> Settings:
    """Settings of the console, without health probes: the worker uses that port."""
    return settings.model_copy(update={"health_port": None})


def _accounts(settings: Settings) -> Text:
    """Create an account of each role; returns the console's address and how to sign in."""
    password = secrets.token_urlsafe(9)
    with bootstrap.opened(settings, privacy=True) as store:
        changes = AccountChanges(store, audit.COMMAND_LINE)
        for role in ACCOUNTS:
            changes.add(
                role.value,
                role,
                None,
                sample_counsellor(DEMO_TEAM, 0) if role is PersonRole.COUNSELLOR else None,
                password,
                all_teams=role is PersonRole.SUPERVISOR,
            )
    lines = [f"console {settings.external_url} · password of all accounts: {password}"]
    lines += [f"  {role.value:<12}{purpose}" for role, purpose in ACCOUNTS.items()]
    return Text("\n".join(lines))


def _port(settings: Settings) -> int:
    """The configured port; any free one if it is 0, or the default port and in use.

    Raises:
        PortInUse: another program listens on the configured port.
    """
    problem = _problem_of(settings.web_host, settings.web_port)
    if settings.web_port and problem is None:
        return settings.web_port
    if settings.web_port and "web_port" in settings.model_fields_set:
        raise PortInUse(
            f"RAPPORT_WEB_PORT is {settings.web_port}, but "
            f"{settings.web_host}:{settings.web_port} cannot be used: {problem}"
        )
    return broker.free_port()


def _problem_of(host: str, port: int) -> str | None:
    """Why a server cannot listen there."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as problem:
        return problem.strerror
    return None


def _await_console(settings: Settings, web: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + CONSOLE_PATIENCE
    address = (settings.web_host, settings.web_port)
    while time.monotonic() < give_up:
        if web.poll() is not None:
            raise ChildDied(_log_tail("web", log))
        with suppress(OSError):
            socket.create_connection(address, 0.2).close()
            return
        time.sleep(0.05)
    raise ChildDied(f"the console does not listen on {address[0]}:{address[1]}")


async def _show(
    settings: Settings,
    console: Console,
    children: list[subprocess.Popen[bytes]],
    started: float,
    options: DemoOptions,
) -> None:
    ready = asyncio.create_task(_report_ready(settings, console, started, options.accounts))
    tasks: list[asyncio.Task[None]] = [
        asyncio.create_task(watch.show(settings, console, options.accounts, from_start=True)),
        asyncio.create_task(_wait_for_exit(children)),
        ready,
    ]
    if options.history is not None:
        tasks.append(
            asyncio.create_task(_add_history(settings, console, started, ready, options.history))
        )
    sending = asyncio.create_task(_play(settings, options))
    try:
        done, _ = await asyncio.wait(
            tasks[:2], timeout=options.seconds, return_when=asyncio.FIRST_COMPLETED
        )
        for task in done:
            task.result()
        if sending.done():
            sending.result()
    finally:
        for running in [*tasks, sending]:
            running.cancel()
        await asyncio.gather(*tasks, sending, return_exceptions=True)


async def _play(settings: Settings, options: DemoOptions) -> None:
    samples = sample_sessions()
    live = played_sessions.live_sessions(samples, options.sessions, options.speed)
    past = played_sessions.past_sessions(samples, options.weeks)
    async with asyncio.TaskGroup() as sending:
        for events in (live, past):
            sending.create_task(replay.send(settings, events, speed=1.0))


async def _add_history(
    settings: Settings,
    console: Console,
    started: float,
    ready: asyncio.Task[None],
    log: Path,
) -> None:
    """Write synthetic history in a process of its own, after the first score: nothing waits."""
    await asyncio.wait([ready])
    with child_process(_console_settings(settings), "demo history", log) as writing:
        while writing.poll() is None:
            await asyncio.sleep(0.2)
    console.print(
        f"analytics {settings.external_url}/analytics: half a year of synthetic history after "
        f"{time.monotonic() - started:.1f} s"
        if writing.returncode == 0
        else _log_tail("history", log),
        highlight=False,
        soft_wrap=True,
    )


async def _wait_for_exit(children: list[subprocess.Popen[bytes]]) -> None:
    while all(process.poll() is None for process in children):
        await asyncio.sleep(0.2)


async def _report_ready(
    settings: Settings, console: Console, started: float, accounts: Text
) -> None:
    """Print when the first score is published, and below it how to sign in.

    A terminal shows that all the time.
    """
    async with watch.messages(settings, from_start=True) as client:
        await client.getone()
    console.print(f"ready: first score after {time.monotonic() - started:.1f} s")
    if not console.is_terminal:
        console.print(accounts, soft_wrap=True)


def _log_tail(name: str, log: Path) -> str:
    lines = log.read_text("utf-8", "replace").splitlines()[-15:]
    return f"the {name} process exited unexpectedly; the end of its log:\n" + "\n".join(lines)
