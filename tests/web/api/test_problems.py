"""Errors of the service: status, ``Retry-After``, and no internal details."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.errors import StoreError, StoreUnavailable
from stream_app.settings import Settings
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions import sessions
from stream_app.web.live.live_hub import TooManyClients
from tests.store import databases

Get = Callable[[str], httpx.Response]


@pytest.fixture
def get(tmp_path: Path) -> Iterator[Get]:
    chosen = Settings().model_copy(
        update={"database_url": SecretStr(databases.sqlite(tmp_path / "rapport.db"))}
    )
    store = bootstrap.store(chosen)
    People(store).add(Person("sue", PersonRole.SUPERVISOR, all_teams=True), None)
    token = People(store).create_token("sue", "test")
    app = httpx.ASGITransport(bootstrap.web(chosen), raise_app_exceptions=False)

    async def ask(path: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(
            transport=app, base_url="http://rapport", headers=headers
        ) as client:
            return await client.get(path)

    yield lambda path: asyncio.run(ask(path))
    store.close()


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, problem: Exception) -> Iterator[None]:
    def fail(*_: object, **__: object) -> None:
        raise problem

    with monkeypatch.context() as patch:
        patch.setattr(sessions, "find", fail)
        yield


def test_an_unavailable_database_is_503_with_retry_after(
    get: Get, monkeypatch: pytest.MonkeyPatch
) -> None:
    with failing(monkeypatch, StoreUnavailable("the database does not answer: refused")):
        answer = get("/api/v1/sessions")
    assert answer.status_code == 503
    assert answer.json()["type"] == "urn:rapport:problem:database-away"
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize(
    "problem", [ValueError("zanzibar"), StoreError("zanzibar"), KeyError("zanzibar")]
)
def test_an_internal_error_is_500_without_details(
    get: Get, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    with failing(monkeypatch, problem):
        answer = get("/api/v1/sessions")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "zanzibar" not in answer.text
    assert type(problem).__name__ not in answer.text
    assert "Traceback" not in answer.text


def test_too_many_streams_is_503(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise TooManyClients("too many live streams are open; try again later")

    monkeypatch.setattr("stream_app.web.live.live_hub.Hub.check_room", full)
    answer = get("/api/v1/live")
    assert answer.status_code == 503
    assert answer.json()["type"] == "urn:rapport:problem:too-many-streams"


def test_pages_have_html_errors(get: Get) -> None:
    answer = get("/nowhere")
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
