from functools import cache

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from servers.prometheus import PrometheusMissing, promtool
from stream_app.notifications.notifier_group import deliveries_counter
from stream_app.web.http.metrics import WebMetrics
from stream_app.web.live.live_hub import Hub
from stream_app.worker.batches.metrics import WorkerMetrics
from tests.conftest import _missing


@pytest.fixture(scope="session")
def prometheus_installed() -> None:
    try:
        promtool("--version")
    except PrometheusMissing as problem:
        _missing(str(problem))


@cache
def exported_names() -> frozenset[str]:
    """Names of all series that workers, consoles and notifiers export."""
    notifier = CollectorRegistry()
    notifier.register(deliveries_counter())
    found: set[str] = set()
    for registry in (WorkerMetrics().registry, WebMetrics(Hub(), lambda: 0).registry, notifier):
        text = generate_latest(registry).decode()
        found |= {line.partition("{")[0].split()[0] for line in text.splitlines() if line[0] != "#"}
        for line in text.splitlines():
            if line.startswith("# TYPE "):  # a counter with labels may have no sample yet
                name, kind = line.split()[2:]
                found |= {
                    f"{name}_{end}" for end in ("bucket", "sum", "count") if kind == "histogram"
                }
                found.add(name)
    return frozenset(found)
