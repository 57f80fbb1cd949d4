"""A proxy may name the signed-in account in a header; nobody else may."""

from collections.abc import Callable

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr, ValidationError

from stream_app import bootstrap
from stream_app.settings import Settings
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.stream.repository import Store

PROXY, STRANGER = "10.1.2.3", "10.9.9.9"
Ask = Callable[..., "httpx.Response"]


@pytest.fixture
def app(filled: Store) -> FastAPI:
    url = SecretStr(filled.engine.url.render_as_string())
    changes = {"database_url": url, "web_user_header": "X-User", "web_proxies": "10.1.2.0/24"}
    return bootstrap.web(Settings().model_copy(update=changes))


async def ask(
    app: FastAPI,
    headers: dict[str, str] | list[tuple[str, str]],
    peer: str = PROXY,
    path: str = "/api/v1/me",
    method: str = "GET",
) -> httpx.Response:
    transport = httpx.ASGITransport(app, client=(peer, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://rapport.test") as client:
        return await client.request(method, path, headers=headers)


async def test_a_trusted_proxy_names_the_account(app: FastAPI) -> None:
    answer = await ask(app, {"X-User": "sue"})
    assert (answer.status_code, answer.json()["name"]) == (200, "sue")
    assert (await ask(app, {})).status_code == 401
    assert (await ask(app, {"X-User": "nobody"})).status_code == 401


@pytest.mark.parametrize("forged", [{}, {"X-Forwarded-For": PROXY}, {"Forwarded": f"for={PROXY}"}])
async def test_a_direct_client_cannot_name_an_account(app: FastAPI, forged: dict[str, str]) -> None:
    assert (await ask(app, {"X-User": "sue", **forged}, STRANGER)).status_code == 401


async def test_a_browser_behind_the_proxy_is_not_mistaken_for_it(app: FastAPI) -> None:
    """The proxy is recognised by its connection, not by the address that it states."""
    headers = {"X-User": "sue", "X-Forwarded-For": STRANGER}
    assert (await ask(app, headers)).status_code == 200


async def test_a_header_that_the_client_added_to_the_proxys_is_refused(app: FastAPI) -> None:
    assert (await ask(app, [("X-User", "ada"), ("X-User", "sue")])).status_code == 401


async def test_disabled_accounts_stay_out(app: FastAPI, filled: Store) -> None:
    People(filled).disable("sue")
    assert (await ask(app, {"X-User": "sue"})).status_code == 401


async def test_requests_of_other_sites_are_refused(app: FastAPI) -> None:
    """The proxy adds the header to every request of the browser, like a cookie."""
    headers = {"X-User": "sue", "Sec-Fetch-Site": "cross-site"}
    path = "/api/v1/sessions/north-0/readers/olu"
    assert (await ask(app, headers, path=path, method="PUT")).status_code == 403
    headers["Sec-Fetch-Site"] = "same-origin"
    assert (await ask(app, headers, path=path, method="PUT")).status_code == 204


async def test_by_default_no_header_names_an_account(filled: Store) -> None:
    url = SecretStr(filled.engine.url.render_as_string())
    app = bootstrap.web(Settings().model_copy(update={"database_url": url}))
    for header in ("X-Forwarded-User", "X-User", "Remote-User"):
        assert (await ask(app, {header: "sue"}, "127.0.0.1")).status_code == 401


@pytest.mark.parametrize(
    ("proxies", "words"),
    [
        (None, "needs RAPPORT_WEB_PROXIES"),
        ("0.0.0.0/0", "single proxies"),
        ("proxy.example", "does not appear to be"),
    ],
)
def test_the_header_needs_named_proxies(
    monkeypatch: pytest.MonkeyPatch, proxies: str | None, words: str
) -> None:
    monkeypatch.setenv("RAPPORT_WEB_USER_HEADER", "X-User")
    if proxies is not None:
        monkeypatch.setenv("RAPPORT_WEB_PROXIES", proxies)
    with pytest.raises(ValidationError, match=words):
        Settings()


async def test_forwarded_https_counts_only_from_the_proxy(app: FastAPI) -> None:
    for peer, secure in ((PROXY, True), (STRANGER, False)):
        answer = await ask(app, {"X-Forwarded-Proto": "https"}, peer, "/sign-in")
        assert ("strict-transport-security" in answer.headers) == secure


async def test_the_header_names_no_program(app: FastAPI, filled: Store) -> None:
    """Programs and studies have tokens alone: a proxy never signs them in."""
    for role in (PersonRole.INGEST, PersonRole.STUDY):
        all_teams = role is PersonRole.STUDY
        People(filled).add(Person(f"of {role.value}", role, all_teams=all_teams), None)
        for path in ("/api/v1/me", "/api/v1/events"):
            answer = await ask(app, {"X-User": f"of {role.value}"}, path=path, method="POST")
            assert answer.status_code in (401, 405), path
        assert (await ask(app, {"X-User": f"of {role.value}"})).status_code == 401
