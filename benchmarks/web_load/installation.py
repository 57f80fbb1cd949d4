"""An installation with a year of history and thousands of open sessions, and its web processes."""

import json
import os
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Final, cast

import httpx
import itsdangerous
import msgspec
import sqlalchemy as sa

from benchmarks import platform
from benchmarks.errors import Unavailable
from benchmarks.load import processes, testbed, workload
from benchmarks.options import Options
from benchmarks.storage.open_sessions import OpenSessions
from benchmarks.web_load import certificate
from benchmarks.web_load.scored_turns import Flow, Written
from benchmarks.web_load.visitors import Job, Seen
from benchmarks.web_load.visits import PEOPLE, Stream, Visitor
from servers import haproxy
from stream_app import bootstrap
from stream_app.analytics.rollups import rollups
from stream_app.errors import RapportError
from stream_app.inference.bundles import bundle as bundles
from stream_app.processes.child_processes import child_process, environment
from stream_app.settings import Settings
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.web.http.cookie_sessions import SECURE_COOKIE
from stream_app.worker.kafka.broker import free_port

HOST: Final = "localhost"
LIVE: Final = "live"
READ: Final = "read"
"""Names of the sessions that speak during the measurement, and of those that people read."""
OF_INBOX: Final = "kind=alert&kind=alert-action"
OF_WALL: Final = "kind=session&kind=alert&kind=alert-action&kind=intervention"
"""Conditions of the live streams of these pages."""
READ_SESSIONS: Final = 200
READ_TURNS: Final = 30
START_PATIENCE: Final = 60.0

_STILL_FIRING: Final = (
    "DELETE FROM alerts WHERE state = 'resolved' AND "
    "mod(CAST(substr(episode_id, 2) AS integer) / 10, 2) = 0"
)
"""Leaves half of the history's alerts firing, so that supervisors' inboxes are not empty."""


class Installation:
    """Broker, database, a writer of turns and 200 people; ``sessions``: open ones."""

    def __init__(self, bed: testbed.Testbed, options: Options, stack: ExitStack) -> None:
        self.settings = bed.deployment("postgresql", web_https=True)
        self._folder = bed.folder
        self._sessions = options.size(12_000, 60)
        self._options = options
        self.certificate = certificate.write(bed.folder / "proxy.pem", HOST)
        self._orders, self._answers = stack.enter_context(
            _writer(self.settings, bed.folder / "writer.log")
        )
        self._fill(options.size(100_000, 400))
        self.visitors = self._people()

    @property
    def sessions(self) -> int:
        """Open sessions; each may speak once in a flow."""
        return self._sessions

    def prepare_writing(self, flow: Flow) -> None:
        """Let the writer compute a flow with a rate; returns when it is ready to be written."""
        self._order(msgspec.json.encode(flow))
        self._answer()

    def begin_writing(self, start: float) -> None:
        """Write the prepared flow from this time on, in seconds since 1970."""
        self._order(str(start).encode())

    def finish_writing(self) -> Written:
        """Wait for the flow that was begun last."""
        return msgspec.json.decode(self._answer(), type=Written)

    def write_at_once(self, flow: Flow) -> Written:
        """Write a flow without a rate."""
        self._order(msgspec.json.encode(flow))
        return self.finish_writing()

    def _order(self, line: bytes) -> None:
        self._orders.write(line + b"\n")
        self._orders.flush()

    def _answer(self) -> bytes:
        line = self._answers.readline()
        if not line:
            raise RapportError(f"the writer ended\n{processes.tail(self._folder / 'writer.log')}")
        return line

    @contextmanager
    def console(self, count: int) -> Iterator[int]:
        """Run ``count`` web processes behind the proxy; yields its port."""
        with ExitStack() as stack:
            ports = [free_port() for _ in range(count)]
            for number, port in enumerate(ports):
                settings = self.settings.model_copy(update={"web_port": port})
                log = self._folder / f"web-{number}.log"
                stack.enter_context(child_process(settings, "web", log))
            for port in ports:
                _await_ready(port)
            port = free_port()
            stack.enter_context(
                haproxy.running(self._folder, port, self.certificate, ports, free_port())
            )
            yield port

    def streams(self, count: int) -> list[Stream]:
        """Live streams of supervisors: two in five of a wall or of a session, one in five inbox.

        With the addresses that these pages have. The followed sessions, of the supervisor's team,
        lie far apart, so that they speak at different times.
        """
        supervisors = [one for one in self.visitors if one.role == PersonRole.SUPERVISOR.value]
        found = []
        for number in range(count):
            visitor = supervisors[number % len(supervisors)]
            group = number * self._sessions // count // workload.TEAMS
            session = group * workload.TEAMS + number % workload.TEAMS
            of_session = f"session={workload.session_name(LIVE, session)}"
            chosen = (OF_WALL, of_session, OF_WALL, of_session, OF_INBOX)[number % 5]
            found.append(Stream(f"/api/v1/live?{chosen}", visitor.cookie))
        return found

    def visit(self, job: Job, begun: Callable[[float], None]) -> Seen:
        """Open pages and streams from a process of its own; ``begun`` is called with the start."""
        with subprocess.Popen(
            [sys.executable, "-m", "benchmarks.web_load.visitors"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=processes.REPOSITORY,
        ) as process:
            orders, answers = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
            orders.write(msgspec.json.encode(job))
            orders.close()
            begun(float(answers.readline()))
            return msgspec.json.decode(answers.read(), type=Seen)

    def _fill(self, history: int) -> None:
        say = self._options.say
        store = bootstrap.store(self.settings)
        name = store.engine.url.database
        with store.transaction() as connection:  # of all later connections
            connection.exec_driver_sql(f'ALTER DATABASE "{name}" SET random_page_cost = 1.1')
        manifest = bundles.load(self.settings.bundle).manifest
        with store.transaction() as connection:  # the platform registers the bundle itself
            connection.exec_driver_sql("DELETE FROM bundles")
        platform.write(store, manifest, history, lambda _: None)
        with store.transaction() as connection:
            connection.execute(
                sa.text(
                    "UPDATE sessions SET team = "
                    "'team-' || CAST(substr(session_id, 2) AS integer) % :teams"
                ),
                {"teams": workload.TEAMS},
            )
            connection.exec_driver_sql(_STILL_FIRING)
        for _ in rollups.update(store):
            pass
        say(f"{history:,} turns of history")
        read = self._options.size(READ_SESSIONS, 10)
        self.write_at_once(Flow(0.0, read * READ_TURNS, read, READ, 0))
        OpenSessions(self.settings, LIVE, self._sessions)
        written = self.write_at_once(Flow(0.0, self._sessions, self._sessions, LIVE))
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE")  # else autovacuum takes a core meanwhile
        store.close()
        say(f"{self._sessions:,} open sessions; unscheduled {written.rate:.0f} turns/s")

    def _people(self) -> list[Visitor]:
        store = bootstrap.store(self.settings)
        people = People(store)
        signer = itsdangerous.TimestampSigner(store.cookie_key())
        until = datetime.now(UTC) + timedelta(hours=1)
        found = []
        with store.reading() as connection:
            speakers = list(
                connection.scalars(
                    sa.text(
                        "SELECT speaker FROM session_speakers WHERE role = 'counsellor' "
                        "GROUP BY speaker ORDER BY count(*) DESC LIMIT 500"
                    )
                )
            )
        read = self._options.size(READ_SESSIONS, 10)
        for role, count in PEOPLE.items():
            for number in range(self._options.size(count, 4)):
                team = f"team-{number % workload.TEAMS}" if role is PersonRole.SUPERVISOR else None
                speaker = speakers[number] if role is PersonRole.COUNSELLOR else None
                name = f"{role.value}-{number}"
                people.add(Person(name, role, team, speaker), None)
                people.finish_tour(name)
                content = b64encode(json.dumps({"sign-in": people.sign_in(name, until)}).encode())
                own = [
                    workload.session_name(READ, each)
                    for each in range(read)
                    if each % workload.TEAMS == number % workload.TEAMS
                ]
                found.append(
                    Visitor(
                        name,
                        role.value,
                        f"{SECURE_COOKIE}={signer.sign(content).decode()}",
                        own if role is PersonRole.SUPERVISOR else [],
                    )
                )
        store.close()
        return found


@contextmanager
def opened(options: Options) -> Iterator[Installation]:
    """An installation that is removed at the end of the ``with`` block.

    Raises:
        Unavailable: PostgreSQL or HAProxy is not installed.
    """
    if haproxy.binary() is None:
        raise Unavailable("HAProxy is not installed (Debian: haproxy)")
    with testbed.opened(options.bundle, options.kafka) as bed, ExitStack() as stack:
        yield Installation(bed, options, stack)


@contextmanager
def _writer(settings: Settings, log: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """A process that writes turns: what it reads, and what it answers."""
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.web_load.scored_turns"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            cwd=processes.REPOSITORY,
            env={**os.environ, **environment(settings)},
        )
    orders, answers = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
    try:
        yield orders, answers
    finally:
        orders.close()
        answers.close()
        process.kill()
        process.wait()


def _await_ready(port: int) -> None:
    give_up = time.monotonic() + START_PATIENCE
    with httpx.Client(timeout=5.0) as client:
        while True:
            try:
                if client.get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            if time.monotonic() > give_up:
                raise RapportError(f"a web process was not ready within {START_PATIENCE:.0f} s")
            time.sleep(0.1)
