"""A real Prometheus scrapes a worker, a console and a notifier, and answers every expression."""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import httpx
import pytest
import yaml

from servers.prometheus import CONFIGURATION, Server
from stream_app.processes.child_processes import child_process
from stream_app.store.database import tables
from stream_app.worker.kafka.broker import free_port
from tests.conftest import own_names
from tests.e2e.service import Service
from tests.monitoring.dashboards import RATE_INTERVAL, panels
from tests.rule_texts import EAGER_TEXT, HEAD
from tests.store.batches import end, turn

pytestmark = pytest.mark.slow
PATIENCE: Final = 60.0
JOBS: Final = ("rapport-worker", "rapport-web", "rapport-notify")
TARGETS: Final = "targets: [{name: desk, kind: webhook, url: 'http://127.0.0.1:%s/'}]"
MAY_BE_EMPTY: Final = {
    "rapport_crashes_total",
    "rapport_rule_failures_total",
    "rapport_outdated_total",
    "rapport_refused_purges_total",
    "rapport_ingested_events_total",
}
"""Counters whose labels appear with their first event, which nothing causes here."""


@pytest.fixture(scope="module")
def prometheus(
    prometheus_installed: None, embedded_broker: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("metrics")
    rules, targets = folder / "rules.yaml", folder / "notifications.yaml"
    rules.write_text(HEAD + EAGER_TEXT, "utf-8")
    targets.write_text(TARGETS % free_port(), "utf-8")
    service = Service(folder, kafka_brokers=embedded_broker, rules=rules, **own_names())
    ports = {job: str(free_port()) for job in JOBS}
    console = f"http://127.0.0.1:{(web_port := free_port())}"
    with ExitStack() as stack:
        stack.callback(service.close)
        for job, command in zip(JOBS, ("worker", "web", "notify"), strict=True):
            more = {
                "RAPPORT_HEALTH_PORT": ports[job],
                "RAPPORT_WEB_PORT": str(web_port),
                "RAPPORT_NOTIFICATIONS": str(targets),
            }
            log = folder / "worker.log"
            stack.enter_context(child_process(service.settings, command, log, more))
        server = Server(folder, {job: [f"127.0.0.1:{port}"] for job, port in ports.items()})
        stack.callback(server.stop)
        wait_for(lambda: len(server.query("up == 1")) == len(JOBS), "all processes are scraped")
        for number in range(4):
            name = f"s-{number}"
            service.send([turn(seq, session_id=name) for seq in range(6)])
            service.send([end(session_id=name), b"no json"])
            service.wait_for(
                lambda n=number: service.count(tables.session_scores) > n, "the session is stored"
            )
            httpx.get(f"{console}/sign-in", timeout=PATIENCE).raise_for_status()
            time.sleep(1.0)  # several scrapes with different values
        failed = 'sum(rapport_deliveries_total{result=~"failed|unanswered"}) > 0'
        wait_for(lambda: server.query(failed) != [], "the closed port is a failed delivery")
        yield server


def wait_for(condition: object, what: str) -> None:
    give_up = time.monotonic() + PATIENCE
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < give_up, f"never happened: {what}"
        time.sleep(0.2)


def test_every_panel_has_samples(prometheus: Server) -> None:
    empty = []
    for panel in panels("rapport-prometheus"):
        expression = panel.query.replace("$__rate_interval", RATE_INTERVAL)
        samples = prometheus.query(expression)
        names = set(re.findall(r"\brapport_[a-z_]+", expression))
        if not samples and not names & MAY_BE_EMPTY:
            empty.append(panel)
    assert not empty


def test_every_rule_is_evaluated_and_the_failing_ones_wait_or_fire(prometheus: Server) -> None:
    [group] = yaml.safe_load(CONFIGURATION.with_name("rules.yml").read_text("utf-8"))["groups"]
    loaded = httpx.get(f"{prometheus.url}/api/v1/rules", timeout=PATIENCE).json()["data"]["groups"]
    assert {rule["name"]: rule["health"] for rule in loaded[0]["rules"]} == {
        rule["alert"]: "ok" for rule in group["rules"]
    }
    for rule in group["rules"]:
        prometheus.query(rule["expr"])
    active = {sample["metric"]["alertname"] for sample in prometheus.query("ALERTS")}
    assert active >= {"RapportDeadLetters", "RapportDeliveriesFail"}
    assert not active & {"RapportProcessDown", "RapportWorkersRestart", "RapportRulesRefused"}


def test_every_metric_of_the_document_is_scraped(prometheus: Server) -> None:
    document = (Path(__file__).parents[2] / "docs" / "operations.md").read_text("utf-8")
    table = document.partition("\n## Metrics\n")[2].partition("\n## ")[0]
    address = f"{prometheus.url}/api/v1/label/__name__/values"
    known = set(httpx.get(address, timeout=PATIENCE).json()["data"])
    for name in re.findall(r"`(rapport_[a-z_]+)", table):
        assert known & {name, f"{name}_count"} or name in MAY_BE_EMPTY, name
