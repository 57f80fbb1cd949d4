"""The web process's probes and metrics; and that guessing passwords gets slow."""

import json
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stream_app.web.attempts import LONGEST_WAIT, MOST_KEYS, Attempts, TooManyAttempts

from stream_app.store.people import People
from stream_app.store.repository import open_store
from stream_app.web.auth import hash_password
from stream_app.web.health import WebHealth
from stream_app.web.live import Hub
from stream_app.worker.broker import free_port
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


def test_probes_answer_on_both_ports(web: Web) -> None:
    ports = (web.port, web.settings.health_port)
    for port in ports:
        assert httpx.get(f"http://127.0.0.1:{port}/healthz").json()["ok"] is True
        assert httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    ready = httpx.get(f"{web.url}/readyz").json()
    assert ready["live"] == {"reading": False, "clients": 0}  # no broker, and ready all the same


def test_a_database_that_is_away_is_not_ready_and_keeps_its_password() -> None:
    away = open_store("postgresql://user:zanzibar@127.0.0.1:1/rapport?connect_timeout=2")
    health = WebHealth(away, Hub())
    [reason] = health.not_ready()
    assert reason.startswith("store: the database does not answer")
    assert "zanzibar" not in reason
    assert health.not_alive() == []


def test_metrics_count_requests_by_route_and_hold_no_ids(web: Web) -> None:
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


def test_wrong_passwords_get_slower_and_the_right_one_waits_too(web: Web) -> None:
    People(web.store).set_password("sue", hash_password(PASSWORD))
    form = {"name": "sue", "password": "wrong"}
    with httpx.Client(base_url=web.url) as browser:
        statuses = [browser.post("/sign-in", data=form).status_code for _ in range(6)]
        assert statuses == [401] * 5 + [429]
        locked = browser.post("/sign-in", data={"name": "sue", "password": PASSWORD})
        assert locked.status_code == 429
        assert 0 < int(locked.headers["retry-after"]) <= 2
        other = browser.post("/sign-in", data={"name": "nora", "password": "wrong"})
        assert other.status_code == 401  # whoever shares the address is not shut out


def test_a_wait_doubles_ends_and_is_forgotten_after_success() -> None:
    now = 0.0
    attempts = Attempts(lambda: now)
    waits = []
    for _ in range(25):
        try:
            attempts.check({"k": 3})
        except TooManyAttempts as problem:
            waits.append(problem.wait)
            now += problem.wait
        attempts.check({"k": 3})
        attempts.refused({"k": 3})
    assert waits[:4] == [1.0, 2.0, 4.0, 8.0]
    assert max(waits) == LONGEST_WAIT
    attempts.succeeded("k")
    attempts.check({"k": 3})


@given(st.lists(st.text(max_size=3), max_size=50))
def test_nobody_waits_for_what_others_did(names: list[str]) -> None:
    attempts = Attempts(lambda: 0.0)
    for name in names:
        attempts.refused({name: 5})
    attempts.check({"somebody else": 5})


def test_memory_of_attempts_is_bounded() -> None:
    attempts = Attempts(lambda: 0.0)
    for number in range(MOST_KEYS + 100):
        attempts.refused({str(number): 5})
    assert len(attempts._refused) == MOST_KEYS
    assert json.dumps(list(attempts._refused)[:1]) == '["100"]'
