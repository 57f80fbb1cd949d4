"""Liveness and readiness of a worker, and its watchdog."""

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from stream_app.health_server import PortInUse, serve_probes
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.upkeep.health import Health, HealthLimits, Watchdog

LIMITS = HealthLimits(beat=10.0, join=20.0, progress=50.0)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> Health:
    """The health of a worker that has just become ready."""
    made = Health(LIMITS, clock)
    made.joined([2, 0])
    made.report_lag({0: 0, 2: 0})
    made.report_store(None)
    return made


def later(clock: Clock, health: Health, seconds: float) -> None:
    """Advance the time while the event loop runs."""
    clock.now += seconds
    health.beat()


def test_a_worker_is_ready_when_it_has_partitions_lag_and_a_store(clock: Clock) -> None:
    made = Health(LIMITS, clock)
    assert made.not_ready() == ["joining the consumer group", "store: not checked yet"]
    made.report_store(None)
    made.joined([1])
    assert made.not_ready() == ["lag not known yet"]
    made.report_lag({1: 400})
    assert made.not_ready() == []
    made.joined([])
    assert made.not_ready() == ["lag not known yet"]
    made.report_lag({})
    assert made.not_ready() == [], "a standby worker is ready"
    made.report_topic(exists=False)
    assert made.not_ready() == ["the topic of the turns does not exist"]
    assert made.not_alive() == []


def test_a_blocked_event_loop_is_not_alive(clock: Clock, health: Health) -> None:
    clock.now += 10.0
    assert health.not_alive() == []
    clock.now += 1.0
    assert health.not_alive() == ["the event loop has been blocked for 11 s"]


def test_a_worker_that_never_joins_the_group_is_not_alive(clock: Clock) -> None:
    made = Health(LIMITS, clock)
    later(clock, made, 21.0)
    assert made.not_alive() == ["not in the consumer group for 21 s"]


def test_a_worker_stays_alive_during_a_rebalance(clock: Clock, health: Health) -> None:
    later(clock, health, 1000.0)
    health.left()
    later(clock, health, 19.0)
    health.left()
    assert health.not_alive() == []
    later(clock, health, 2.0)
    assert health.not_alive() == ["not in the consumer group for 21 s"]


def test_lag_without_progress_is_not_alive(clock: Clock, health: Health) -> None:
    later(clock, health, 1000.0)
    health.report_lag({0: 0, 2: 0})
    later(clock, health, 10.0)
    health.report_lag({0: 3, 2: 1})
    later(clock, health, 41.0)
    assert health.not_alive() == ["4 events behind and no batch for 51 s"]
    health.progressed()
    assert health.not_alive() == []


def test_time_of_a_suspended_process_does_not_count(clock: Clock, health: Health) -> None:
    clock.now += 500.0
    health.exclude_suspension(500.0)
    assert health.not_alive() == []


def test_the_watchdog_gives_up_once_with_the_reasons() -> None:
    made = Health(HealthLimits(beat=0.05), time.monotonic)
    given: list[list[str]] = []
    watchdog = Watchdog(made, given.append, every=0.02)
    watchdog.start()
    watchdog.join(10.0)
    assert not watchdog.is_alive()
    [[reason]] = given
    assert "has been blocked" in reason


def test_the_watchdog_ignores_a_suspension_of_the_process() -> None:
    """Its clock jumps, as after SIGSTOP and SIGCONT."""
    clock, seen = Clock(), threading.Event()
    made = Health(LIMITS, clock)
    watchdog = Watchdog(made, lambda _: seen.set(), every=0.01, clock=clock)
    watchdog.start()
    time.sleep(0.1)
    clock.now += 300.0
    assert not seen.wait(0.3)
    watchdog.stop()
    watchdog.join(5.0)
    assert made.not_alive() == []


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code, problem.read().decode()


def test_health_probes_are_served_over_http(clock: Clock, health: Health) -> None:
    metrics = WorkerMetrics()
    metrics.dead_letters.labels("not-json").inc()
    with serve_probes("127.0.0.1", 0, health, metrics.registry) as port:
        assert get(port, "/healthz") == (200, '{"ok": true, "reasons": []}')
        assert get(port, "/readyz")[0] == 200
        health.report_store("away")
        status, body = get(port, "/readyz")
        assert (status, json.loads(body)) == (503, {"ok": False, "reasons": ["store: away"]})
        assert get(port, "/healthz")[0] == 200
        clock.now += 100.0
        assert get(port, "/healthz")[0] == 503
        status, text = get(port, "/metrics")
        assert status == 200
        assert 'rapport_dead_letters_total{reason="not-json"} 1.0' in text
        assert get(port, "/elsewhere")[0] == 404


def test_a_port_in_use_is_reported_with_its_setting(health: Health) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port: Any = other.getsockname()[1]
        with (
            pytest.raises(PortInUse, match=f"RAPPORT_HEALTH_PORT is {port}"),
            serve_probes("127.0.0.1", port, health, WorkerMetrics().registry),
        ):
            pass
