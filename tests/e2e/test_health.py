"""Health probes of a real worker: ready when it works; when it hangs, it fails and exits."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from stream_app.processes.child_processes import environment
from stream_app.processes.worker import HUNG_EXIT_STATUS
from stream_app.store.database import tables
from stream_app.worker.kafka.broker import free_port
from tests.chaos.proxy import Proxy
from tests.conftest import NewService
from tests.store.batches import turn


def answer(port: int, path: str) -> tuple[int, str]:
    """Status and body of a response; 0 while the port is closed."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read().decode()
    except OSError:
        return 0, ""


@contextmanager
def slow_bootstrap(brokers: str) -> Iterator[Proxy]:
    """A bootstrap address that delays packets; brokers then tell their own addresses."""
    host, port = brokers.split(":")
    proxy = Proxy(host, int(port))
    proxy.delay = 0.5
    try:
        yield proxy
    finally:
        proxy.close()


def test_a_worker_is_ready_when_it_has_partitions_model_store_and_lag(
    new_service: NewService,
) -> None:
    port = free_port()
    service = new_service(health_port=port)
    with slow_bootstrap(service.settings.kafka_brokers) as proxy:
        worker = service.start_worker({"RAPPORT_KAFKA_BROKERS": f"127.0.0.1:{proxy.port}"})
        service.wait_for(
            lambda: "joining the consumer group" in answer(port, "/readyz")[1], "it is joining"
        )
        assert answer(port, "/readyz")[0] == 503
        proxy.delay = 0.0
        service.wait_for(lambda: answer(port, "/readyz")[0] == 200, "the worker is ready")
    service.send([turn(seq) for seq in range(5)])
    service.wait_for(lambda: service.count(tables.turns) == 5, "the turns are stored")
    service.wait_for(
        lambda: 'rapport_events_total{fate="accepted"} 5.0' in answer(port, "/metrics")[1],
        "the turns are counted",
    )
    assert answer(port, "/healthz")[0] == 200
    assert 'rapport_provider{asked="auto",in_use="cpu"} 1.0' in answer(port, "/metrics")[1]
    worker.terminate()
    assert worker.wait(30) == 0


def test_a_hung_worker_fails_its_health_probe_and_exits_without_loss(
    new_service: NewService,
) -> None:
    port = free_port()
    service = new_service(health_port=port)
    service.send([turn(seq) for seq in range(5)])
    hung = subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.hung_worker"],
        env={**os.environ, **environment(service.settings)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        red: list[str] = []

        def ended() -> bool:
            status, body = answer(port, "/healthz")
            if status == 503:
                red.append(body)
            return hung.poll() is not None

        service.wait_for(ended, "the watchdog ends the worker")
    finally:
        hung.kill()
        hung.wait()
    assert hung.returncode == HUNG_EXIT_STATUS
    assert "the event loop has been blocked" in red[0]
    service.send([turn(seq) for seq in range(5, 9)])
    service.start_worker()
    service.wait_for(lambda: service.count(tables.turns) == 9, "the next worker continues")
