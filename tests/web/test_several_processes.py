"""Several web processes behind a proxy that sends each request to any of them."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from servers import haproxy
from servers.postgres import Server
from stream_app.store.accounts.people import People
from stream_app.store.accounts.sign_in_throttle import FREE_FAILURES
from stream_app.web.live.live_hub import OVERLAP_MS
from tests import topic_log
from tests.conftest import _missing, own_names
from tests.store import databases
from tests.store.batches import turn
from tests.web.api.test_live import Stream, about, session_of, wait_for
from tests.web.proxied import PASSWORD, Proxied, behind_proxy
from tests.web.server import Web

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    if haproxy.binary() is None:
        _missing("HAProxy (Debian: haproxy) is not installed")


@pytest.fixture(scope="module")
def proxied(
    tmp_path_factory: pytest.TempPathFactory, server: Server, embedded_broker: str
) -> Iterator[Proxied]:
    url = SecretStr(databases.postgresql(server))
    changes = {"database_url": url, **own_names()}
    folder = tmp_path_factory.mktemp("proxied")
    with behind_proxy(folder, 2, embedded_broker, changes) as found:
        for web in found.webs:
            with web.client() as client:
                wait_for(lambda c=client: c.get("/me").json()["live"], "the topics are read")
        yield found


@contextmanager
def browser_at(web: Web, cookies: httpx.Cookies) -> Iterator[httpx.Client]:
    """A signed-in browser whose next request reaches this process."""
    cookie = "; ".join(f"{each.name}={each.value}" for each in cookies.jar)
    with web.anonymous_client(headers={"Cookie": cookie}) as client:
        yield client


def test_the_shipped_configuration_is_the_one_that_is_tested(tmp_path: Path) -> None:
    found = haproxy.configuration(8443, tmp_path / "own.pem", [9001], 8080)
    shipped = haproxy.CONFIGURATION.read_text("utf-8")
    changed = set(found.splitlines()) ^ set(shipped.splitlines())
    assert {line.split()[0] for line in changed} == {"bind", "server"}


def test_a_sign_in_counts_in_every_process_and_so_does_signing_out(proxied: Proxied) -> None:
    with proxied.client() as client:
        assert proxied.sign_in("sue", client).status_code == 303
        cookies = client.cookies
        for web in proxied.webs:
            with browser_at(web, cookies) as browser:
                assert browser.get("/").status_code == 200
                assert browser.get("/api/v1/me").json()["name"] == "sue"
        with browser_at(proxied.webs[1], cookies) as browser:
            own = {"Origin": proxied.webs[1].url}
            assert browser.post("/sign-out", headers=own).status_code == 303
        for web in proxied.webs:
            with browser_at(web, cookies) as browser:
                assert browser.get("/api/v1/me").status_code == 401


def test_forms_of_the_console_pass_the_proxy_and_those_of_other_sites_do_not(
    proxied: Proxied,
) -> None:
    with proxied.client() as client:
        proxied.sign_in("sue", client)
        for origin, status in (
            (proxied.url, 303),
            ("https://evil.example", 403),
            (proxied.webs[0].url, 403),
        ):
            for _ in proxied.webs:
                answer = client.post(
                    "/appearance", data={"chosen": "dark", "to": "/"}, headers={"Origin": origin}
                )
                assert answer.status_code == status, origin


def test_plain_http_is_redirected_and_cookies_are_bound_to_https(proxied: Proxied) -> None:
    with proxied.client() as client:
        answer = proxied.sign_in("sue", client)
    assert "__Host-rapport=" in answer.headers["set-cookie"]
    assert "strict-transport-security" in answer.headers


def test_clients_cannot_choose_the_address_that_their_failures_count_for(
    proxied: Proxied,
) -> None:
    """The proxy replaces X-Forwarded-For, so all of these come from one address."""
    statuses: list[int] = []
    with proxied.client() as client:
        # The first wait is a second, which a slow machine takes for a request; then it doubles.
        while 429 not in statuses and len(statuses) < FREE_FAILURES + 5:
            answer = client.post(
                "/sign-in",
                data={"name": "sam", "password": f"wrong {len(statuses)}"},
                headers={"Origin": proxied.url, "X-Forwarded-For": f"198.51.100.{len(statuses)}"},
            )
            statuses.append(answer.status_code)
    assert statuses[-1] == 429
    assert len(statuses) > FREE_FAILURES
    for web in proxied.webs:
        with web.anonymous_client(headers={"X-Forwarded-For": "127.0.0.1"}) as direct:
            data = {"name": "sam", "password": PASSWORD}
            tried = [
                direct.post("/sign-in", data=data, headers={"Origin": web.url}).status_code
                for _ in range(FREE_FAILURES - 1)  # a slow machine may outwait the first refusal
            ]
            assert 429 in tried


def test_a_repeated_idempotency_key_is_known_to_the_other_process(proxied: Proxied) -> None:
    first, second = proxied.webs
    unnumbered = json.loads(turn(0, session_id="once"))
    del unnumbered["seq"]
    answers = []
    for web in (first, second, first):
        with web.client("pump") as client:
            answers.append(
                client.post("/events", json=[unnumbered], headers={"Idempotency-Key": "key-1"})
            )
    assert [answer.status_code for answer in answers] == [202] * 3
    seqs = {answer.json()["results"][0].get("seq") for answer in answers}
    assert len(seqs) == 1
    values = [r.value for r in topic_log.records(first.settings, first.settings.turns_topic)]
    of_session = {value for value in values if b'"once"' in value}
    assert len(of_session) == 1


@contextmanager
def stream_at(address: httpx.Client, last_id: str | None = None, **params: str) -> Iterator[Stream]:
    headers = {"Last-Event-ID": last_id} if last_id else {}
    with address.stream("GET", "/live", params=params, headers=headers) as response:
        assert response.status_code == 200
        yield Stream(response)


def test_a_stream_continues_at_another_process_without_loss_or_resync(proxied: Proxied) -> None:
    first, second = proxied.webs
    with first.client() as one, stream_at(one, session="moving") as stream:
        first.publish(session_of(first, "moving", turns=1))
        begun = stream.until(about("moving"))[-1]
    result = first.commit(turn(1, session_id="moving"), turn(2, session_id="moving"))
    first.publish(result)
    expected = {(score.seq, score.stage.value) for score in result.turn_scores}
    with second.client() as two, stream_at(two, begun.id, session="moving") as stream:
        missed: set[tuple[int, str]] = set()
        kinds = set()
        while not expected <= missed:
            event = stream.take()
            kinds.add(event.event)
            if event.event == "turn":
                missed.add((event.data["seq"], event.data["stage"]))
    assert "resync" not in kinds


def test_a_page_of_one_process_connects_to_the_stream_of_another(proxied: Proxied) -> None:
    """A page needs no second load because the proxy sends its stream elsewhere, also at night."""
    first, second = proxied.webs
    time.sleep(4.0)  # nothing happens
    with first.client() as one:
        position = one.get("/me").json()["live_position"]
    first.publish(session_of(first, "after-page"))
    with second.client() as two, stream_at(two, position) as stream:
        seen = stream.until(about("after-page"))
    assert "resync" not in {event.event for event in seen}


def test_a_position_that_is_too_old_for_the_other_process_gets_a_resync(proxied: Proxied) -> None:
    with proxied.webs[1].client() as client, stream_at(client, "0badf00d-7-1000") as stream:
        assert stream.take().event == "resync"


class _Visits(threading.Thread):
    """Opens pages one after another until ``stop``, each on a new connection."""

    def __init__(self, proxied: Proxied, name: str) -> None:
        super().__init__(daemon=True)
        self._proxied, self._name = proxied, name
        self.statuses: list[int | str] = []
        self.ending = threading.Event()

    def run(self) -> None:
        while not self.ending.is_set():
            with self._proxied.program(self._name) as client:
                try:
                    self.statuses.append(client.get("/api/v1/sessions").status_code)
                except httpx.HTTPError as problem:
                    self.statuses.append(type(problem).__name__)


def test_a_killed_process_loses_nobody(
    tmp_path: Path, server: Server, embedded_broker: str
) -> None:
    """Requests succeed, the stream resumes, and a sign-in stays valid."""
    changes: dict[str, Any] = {
        "database_url": SecretStr(databases.postgresql(server)),
        **own_names(),
    }
    with behind_proxy(tmp_path, 2, embedded_broker, changes) as found:
        for web in found.webs:
            with web.client() as client:
                wait_for(lambda c=client: c.get("/me").json()["live"], "the topics are read")
        time.sleep(2 * OVERLAP_MS / 1000)  # a process that has just begun answers with a resync
        publisher = found.webs[0]
        with found.client() as browser, found.program("sue") as program:
            assert found.sign_in("sue", browser).status_code == 303
            program.base_url = httpx.URL(f"{found.url}/api/v1")
            with stream_at(program, session="kept") as stream:
                publisher.publish(session_of(publisher, "kept", turns=1))
                begun = stream.until(about("kept"))[-1]
                visits = _Visits(found, "sue")
                visits.start()
                time.sleep(0.5)
                victim = found.webs[1]
                assert victim._process is not None
                victim._process.send_signal(signal.SIGKILL)
                victim._process.wait()
                victim._process = None
                publisher.publish(publisher.commit(turn(1, session_id="kept")))
                time.sleep(2.0)
                visits.ending.set()
                visits.join(30)
            assert len(visits.statuses) > 3
            assert set(visits.statuses) == {200}
            with stream_at(program, begun.id, session="kept") as again:
                event = again.until(lambda one: one.event == "turn" and one.data["seq"] == 1)[-1]
                assert event.data["session_id"] == "kept"
            assert browser.get("/api/v1/me").json()["name"] == "sue"


def test_an_export_in_progress_is_finished_by_a_process_that_is_told_to_stop(
    tmp_path: Path, server: Server, embedded_broker: str
) -> None:
    """A rolling restart does not cut off a file."""
    changes = {"database_url": SecretStr(databases.postgresql(server)), **own_names()}
    web = Web(tmp_path, embedded_broker, changes)
    for number in range(60):
        session_of(web, f"exported-{number}", turns=12)
    web.start()
    process = web._process
    assert process is not None
    try:
        narrow = httpx.Limits(max_connections=1)
        with (
            web.client(limits=narrow) as client,
            client.stream("GET", "/exports/turns?format=jsonl") as answer,
        ):
            assert answer.status_code == 200
            pieces = answer.iter_bytes(4096)
            read = next(pieces)
            process.send_signal(signal.SIGTERM)
            read += b"".join(pieces)
        lines = [json.loads(line) for line in read.splitlines()]
        assert len({line["session_id"] for line in lines}) == 60
        assert process.wait(20) in (0, -signal.SIGTERM)
    finally:
        web._process = None if process.poll() is not None else process
        web.stop()


def test_accounts_changed_in_one_process_change_in_the_others(proxied: Proxied) -> None:
    first, second = proxied.webs
    with first.client("ana") as one, second.client("ana") as two:
        assert (one.get("/me").status_code, two.get("/me").status_code) == (200, 200)
        People(first.store).disable("ana")
        assert (one.get("/me").status_code, two.get("/me").status_code) == (401, 401)
