"""Every error is shown as a page with the same security headers as other pages."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from unittest.mock import Mock

import httpx
import pytest
from fastapi import FastAPI, HTTPException
from starlette.middleware.sessions import SessionMiddleware

from stream_app.errors import StoreUnavailable
from stream_app.settings import Settings
from stream_app.web.console import error_pages
from stream_app.web.http.security import HEADERS, SecurityHeaders


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.add_middleware(SessionMiddleware, secret_key="k")
    app.add_middleware(SecurityHeaders, always_https=False)
    error_pages.add_error_pages(app)
    app.state.services = SimpleNamespace(accesses=Mock(), settings=Settings())

    @app.get("/breaks")
    def breaks() -> None:
        raise ZeroDivisionError("a secret of the program")

    @app.get("/forbidden")
    def forbidden() -> None:
        raise HTTPException(403, "not allowed for the role analyst")

    @app.get("/away")
    def away() -> None:
        raise StoreUnavailable("no answer from db.internal")

    @app.get("/number")
    def number(n: int) -> None:
        pass

    inside = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=inside, base_url="http://console") as client:
        yield client


@pytest.mark.parametrize(
    ("path", "status", "title"),
    [
        ("/breaks", 500, "Something went wrong"),
        ("/forbidden", 403, "You do not have access"),
        ("/away", 503, "The database is unavailable"),
        ("/nothing", 404, "Not found"),
        ("/number?n=x", 422, "Invalid input"),
    ],
)
async def test_each_error_is_a_page_with_all_headers(
    client: httpx.AsyncClient, path: str, status: int, title: str
) -> None:
    answer = await client.get(path)
    assert answer.status_code == status
    assert f"<h1>{title}</h1>" in answer.text
    for name, value in HEADERS.items():
        assert answer.headers[name] == value


async def test_an_error_page_shows_helpful_details_but_no_secrets(
    client: httpx.AsyncClient,
) -> None:
    assert "not allowed for the role analyst" in (await client.get("/forbidden")).text
    assert "secret" not in (await client.get("/breaks")).text
    assert "db.internal" not in (await client.get("/away")).text
