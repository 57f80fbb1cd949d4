"""Health probes and metrics of the web process, and delays after wrong passwords."""

import threading
import time
from collections.abc import Iterator

import httpx
import pytest

from stream_app.store.accounts.people import People
from stream_app.store.stream.repository import open_store
from stream_app.web.live import health as module
from stream_app.web.live.health import WebHealth
from stream_app.web.live.live_hub import Hub
from stream_app.work.passwords import hash_password
from stream_app.worker.kafka.broker import free_port
from tests.web.server import Web

PASSWORD = "long enough to pass"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    made = Web(tmp_path_factory.mktemp("web"), changes={"health_port": free_port()})
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_health_probes_answer_on_both_ports(web: Web) -> None:
    ports = (web.port, web.settings.health_port)
    for port in ports:
        assert httpx.get(f"http://127.0.0.1:{port}/healthz").json()["ok"] is True
        assert httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    ready = httpx.get(f"{web.url}/readyz").json()
    assert ready["live"] == {"reading": False, "clients": 0}  # ready without a broker


def test_an_unavailable_database_is_reported_without_its_password() -> None:
    unavailable = open_store("postgresql://user:zanzibar@127.0.0.1:1/rapport?connect_timeout=2")
    health = WebHealth(unavailable, Hub())
    [reason] = health.not_ready()
    assert reason.startswith("store: the database does not answer")
    assert "zanzibar" not in reason
    assert health.not_alive() == []


async def test_a_database_timeout_is_not_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Concurrent requests share one database check."""
    monkeypatch.setattr(module, "TIMEOUT", 0.1)
    store, answered, asked = open_store("sqlite://"), threading.Event(), []

    def slow() -> None:
        asked.append(time.monotonic())
        answered.wait(10)

    monkeypatch.setattr(store, "ping", slow)
    health = WebHealth(store, Hub())
    for _ in range(3):
        [reason] = await health.check_ready()
        assert reason.startswith("store: no answer within")
    assert len(asked) == 1
    answered.set()
    while await health.check_ready():
        pass
    store.close()


def test_metrics_count_requests_by_route_without_ids(web: Web) -> None:
    with web.client() as sue:
        sue.get("/sessions/zanzibar%2Fsession")
        sue.get("/sessions", params={"team": "zanzibar-team"})
        sue.get("/zanzibar-nowhere")
    httpx.get(f"{web.url}/zanzibar-page")
    text = httpx.get(f"http://127.0.0.1:{web.settings.health_port}/metrics").text
    assert (
        'rapport_http_requests_total{method="GET",route="/api/v1/sessions/{session_id:segment}",'
        'status="404"} 1.0' in text
    )
    assert 'route="/api/v1/sessions",status="200"} 1.0' in text
    assert "rapport_live_reading 0.0" in text
    assert "rapport_live_clients 0.0" in text
    assert "zanzibar" not in text
    assert httpx.get(f"{web.url}/metrics").status_code in (401, 404, 303)


def test_wrong_passwords_delay_further_attempts_even_with_the_right_one(web: Web) -> None:
    People(web.store).set_password("sue", hash_password(PASSWORD))
    form = {"name": "sue", "password": "wrong"}
    with httpx.Client(base_url=web.url) as browser:
        statuses = [browser.post("/sign-in", data=form).status_code for _ in range(6)]
        assert statuses == [401] * 5 + [429]
        locked = browser.post("/sign-in", data={"name": "sue", "password": PASSWORD})
        assert locked.status_code == 429
        assert 0 < int(locked.headers["retry-after"]) <= 2
        other = browser.post("/sign-in", data={"name": "nora", "password": "wrong"})
        assert other.status_code == 401  # other accounts at the address are not locked
