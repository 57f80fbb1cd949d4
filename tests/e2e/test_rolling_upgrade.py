"""Upgrades without interruption: other bundles, and a rollout as Kubernetes does it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from stream_app.processes.child_processes import child_process, environment, running_process
from stream_app.store.database import tables
from stream_app.worker.kafka.broker import free_port
from tests.chaos.workers import SLOWEST_STOP
from tests.conftest import NewService
from tests.e2e.service import Service, differences, scored_offline, stored
from tests.store.batches import end, turn

OTHER = "0.0.1"
WORKERS: Final = 2
MIN_READY: Final = 1.0
"""Seconds that a new process must have been ready; the chart has 10 for workers."""


def other_bundle(bundle: Path, folder: Path) -> Path:
    """A bundle with the same graphs and another version."""
    copy = folder / "bundle"
    shutil.copytree(bundle, copy)
    manifest = json.loads((copy / "bundle.json").read_text("utf-8"))
    (copy / "bundle.json").write_text(json.dumps({**manifest, "version": OTHER}), "utf-8")
    return copy


def session(name: str, first: int = 0, last: int = 8) -> list[bytes]:
    return [turn(seq, session_id=name) for seq in range(first, last)]


def of(sessions: set[str], found: dict[Any, Any]) -> dict[Any, Any]:
    """The rows of these sessions."""
    return {
        key: row
        for key, row in found.items()
        if (row["session_id"] if key[0] == "alert" else key[1]) in sessions
    }


def closed(service: Service, bundle: str) -> set[str]:
    return {
        row["session_id"]
        for row in service.rows(tables.session_scores)
        if row["status"] == "closed" and bundle in row["bundle"]
    }


def test_a_new_bundle_takes_over_and_keeps_the_old_rows(
    new_service: NewService, tmp_path: Path
) -> None:
    service = new_service(batch_max=8)
    old = service.settings
    before = [*session("before"), end(session_id="before"), *session("across", 0, 4)]
    first = service.start_worker()
    service.send(before)
    service.wait_for(lambda: service.count(tables.turns) == 12, "the old bundle has scored")
    untouched = stored(service)
    new = old.model_copy(update={"bundle": other_bundle(old.bundle, tmp_path)})
    service.settings = new
    service.start_worker()
    first.terminate()
    first.wait()
    after = [*session("across", 4, 8), end(session_id="across"), *session("after")]
    service.send([*after, end(session_id="after")])
    service.wait_for(
        lambda: closed(service, OTHER) == {"across", "after"}, "the new bundle has scored"
    )
    rows = stored(service)
    assert {row["bundle"] for row in service.rows(tables.bundles)} == {
        key[-1] for key in rows if key[0] == "session_score"
    }
    assert all(rows[key] == row for key, row in untouched.items() if "before" in key)
    assert differences(of({"before"}, scored_offline(old, before, 64)), of({"before"}, rows)) == []
    scored = scored_offline(new, [*session("after"), end(session_id="after")], 64)
    assert differences(scored, of({"after"}, rows)) == []
    across = {key[-1].rpartition("-")[0] for key in of({"across"}, rows) if key[0] == "turn_score"}
    assert len(across) == 2
    assert service.count(tables.turns) == 24


class Deployment:
    """Processes of one command, replaced with maxSurge 1 and maxUnavailable 0.

    ``endpoints``: the URLs of the ready ones, to which a Service would send requests.
    """

    def __init__(self, service: Service, command: str, replicas: int, stack: ExitStack) -> None:
        self._service = service
        self._replicas = replicas
        self._command = command
        self._stack = stack
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []
        self.endpoints: list[str] = []
        self.stopped: list[tuple[int, float]] = []

    def start(self) -> None:
        """Start one more process."""
        health, web = free_port(), free_port()
        ports = {"RAPPORT_HEALTH_PORT": str(health), "RAPPORT_WEB_PORT": str(web)}
        log = self._service.folder / "worker.log"
        process = self._stack.enter_context(
            child_process(self._service.settings, self._command, log, ports)
        )
        port = web if self._command == "web" else health
        self._running.append((f"http://127.0.0.1:{port}", process))

    def wait_until_ready(self) -> None:
        """Wait until the newest process has been ready for a while."""
        url, process = self._running[-1]
        since: list[float] = []

        def available() -> bool:
            assert process.poll() is None, "the new process has ended"
            if not _is_ready(url):
                since.clear()
                return False
            since.append(time.monotonic())
            return since[-1] - since[0] >= MIN_READY

        self._service.wait_for(available, f"a new {self._command} is ready")
        self.endpoints.append(url)

    def stop_oldest(self) -> None:
        """Take the oldest out of the endpoints, and end it with SIGTERM."""
        url, process = self._running.pop(0)
        self.endpoints.remove(url)
        time.sleep(0.5)  # preStop: until no request is sent there any more
        began = time.monotonic()
        process.terminate()
        status = process.wait(SLOWEST_STOP)
        self.stopped.append((status, time.monotonic() - began))

    def roll(self) -> None:
        """Replace all processes, one after the other."""
        for _ in range(self._replicas):
            self.start()
            self.wait_until_ready()
            self.stop_oldest()


class Traffic(threading.Thread):
    """Sends sessions until stopped, a turn of each in every round."""

    def __init__(self, service: Service) -> None:
        super().__init__(daemon=True)
        self._service = service
        self._stopping = threading.Event()
        self.sent: list[bytes] = []

    def run(self) -> None:
        group = 0
        while not self._stopping.is_set():
            names = [f"rolled-{group}-{each}" for each in range(6)]
            for seq in range(5):
                self._send([turn(seq, session_id=name) for name in names])
            self._send([end(session_id=name) for name in names])
            group += 1

    def _send(self, values: list[bytes]) -> None:
        self._service.send(values)
        self.sent += values
        time.sleep(0.8)

    def stop(self) -> None:
        self._stopping.set()
        self.join()


class Visitor(threading.Thread):
    """Opens pages of the console on new connections, at the endpoints in turn."""

    def __init__(self, web: Deployment) -> None:
        super().__init__(daemon=True)
        self._web = web
        self._stopping = threading.Event()
        self.answers: list[int | str] = []

    def run(self) -> None:
        while not self._stopping.wait(0.1):
            endpoints = tuple(self._web.endpoints)
            url = endpoints[len(self.answers) % len(endpoints)]
            try:
                self.answers.append(httpx.get(f"{url}/sign-in", timeout=10).status_code)
            except httpx.HTTPError as problem:
                self.answers.append(f"{url}: {problem}")

    def stop(self) -> None:
        self._stopping.set()
        self.join()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.mark.timeout(600)
def test_a_rollout_as_in_kubernetes_loses_nothing_and_the_console_stays_reachable(
    new_service: NewService,
) -> None:
    """The migration job, then workers and a console: a new one is ready before an old one stops.

    There are as many partitions as workers, so the third worker, which surges, stands by:

        workers   old old        ->  old old new  ->  old new  ->  old new new  ->  new new
        at work    2 of 2             2 of 3           2            2 of 3           2
    """
    service = new_service(batch_max=8, topic_partitions=WORKERS)
    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(2))  # its processes end with them
        workers = Deployment(service, "worker", WORKERS, stack)
        web = Deployment(service, "web", 1, stack)
        for each in (*[workers] * WORKERS, web):
            each.start()
            each.wait_until_ready()
        traffic, visitor = Traffic(service), Visitor(web)
        traffic.start()
        visitor.start()
        service.wait_for(lambda: service.count(tables.turns) > 10, "the old workers score")
        log = service.folder / "worker.log"
        job = [sys.executable, "-m", "stream_app.cli", "db", "upgrade"]
        given = {**os.environ, **environment(service.settings)}
        assert stack.enter_context(running_process(job, log, given)).wait(60) == 0
        for rolled in [threads.submit(each.roll) for each in (workers, web)]:
            rolled.result()
        before = service.count(tables.turns)
        service.wait_for(lambda: service.count(tables.turns) > before, "the new workers score")
        traffic.stop()
        visitor.stop()
        expected = scored_offline(service.settings, traffic.sent, 64)
        sessions = sum(b"session_end" in each for each in traffic.sent)
        service.wait_for(lambda: len(closed(service, "")) == sessions, "all sessions have ended")
        assert differences(expected, stored(service)) == []
        assert service.count(tables.turns) == sum(b'"turn"' in each for each in traffic.sent)
        published = {
            (row["session_id"], row["seq"], row["stage"])
            for record in service.messages(service.settings.turn_score_topic)
            for row in [json.loads(record.value)]
        }
        assert published == {key[1:4] for key in expected if key[0] == "turn_score"}
        assert len(visitor.answers) > 50
        assert set(visitor.answers) == {200}
    assert [status for status, _ in workers.stopped] == [0] * WORKERS
    assert [status for status, _ in web.stopped] == [-signal.SIGTERM], "uvicorn repeats the signal"
    assert all(seconds < SLOWEST_STOP for _, seconds in workers.stopped + web.stopped)
