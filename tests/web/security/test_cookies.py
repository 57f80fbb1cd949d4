"""The sign-in cookie: bound to the host over HTTPS, and invalid after a time without use."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.settings import Settings
from stream_app.store.accounts.people import People
from stream_app.store.database.tables import access_tokens
from stream_app.store.stream.repository import Store
from stream_app.work.passwords import hash_password
from tests.web.people.client import Client

PASSWORD = "seven grey herons waiting"
Browser = Callable[..., Client]


pytestmark = pytest.mark.usefixtures("cheap_hashes")


@pytest.fixture
def browser(filled: Store) -> Browser:
    """Makes anonymous clients of an application with these settings."""
    url = SecretStr(filled.engine.url.render_as_string())
    People(filled).set_password("pat", hash_password(PASSWORD))

    def new(scheme: str = "http", **changes: object) -> Client:
        settings = Settings().model_copy(update={"database_url": url, **changes})
        return Client(bootstrap.web(settings), "", f"{scheme}://rapport.test")

    return new


def sign_in(client: Client) -> httpx.Response:
    answer = client.post("/sign-in", data={"name": "pat", "password": PASSWORD})
    assert answer.status_code == 303
    return answer


def cookie_of(answer: httpx.Response) -> dict[str, str]:
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}


@pytest.mark.parametrize(("scheme", "setting"), [("https", False), ("https", True), ("http", True)])
def test_over_https_the_cookie_is_bound_to_the_host(
    browser: Browser, scheme: str, setting: bool
) -> None:
    client = browser(scheme, web_https=setting)
    answer = sign_in(client)
    name, *flags = answer.headers["set-cookie"].lower().split("; ")
    assert name.startswith("__host-rapport=")
    assert {"path=/", "secure", "httponly", "samesite=strict"} <= set(flags)
    assert not any(flag.startswith("domain") for flag in flags)
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    cookie = cookie_of(answer)
    assert client.get("/api/v1/me", headers=cookie).status_code == 200
    plain = {"Cookie": cookie["Cookie"].replace("__Host-", "")}
    assert client.get("/api/v1/me", headers=plain).status_code == 401


def test_over_http_there_is_no_strict_transport_security(browser: Browser) -> None:
    answer = sign_in(browser())
    assert answer.headers["set-cookie"].startswith("rapport=")
    assert "strict-transport-security" not in answer.headers


def last_used(store: Store, ago: timedelta) -> None:
    with store.transaction() as connection:
        moment = datetime.now(UTC) - ago
        connection.execute(
            sa.update(access_tokens)
            .where(access_tokens.c.label == "browser")
            .values(last_used_at=moment)
        )


def test_a_sign_in_ends_after_the_idle_time(browser: Browser, filled: Store) -> None:
    client = browser(web_idle_hours=0.5)
    cookie = cookie_of(sign_in(client))
    last_used(filled, timedelta(minutes=29))
    assert client.get("/password", headers=cookie).status_code == 200
    last_used(filled, timedelta(minutes=31))
    assert client.get("/api/v1/me", headers=cookie).status_code == 401
    assert client.get("/", headers=cookie).headers["location"].startswith("/sign-in")


def test_pages_that_update_themselves_do_not_prolong_a_sign_in(
    browser: Browser, filled: Store
) -> None:
    client = browser(web_idle_hours=0.5)
    cookie = cookie_of(sign_in(client))

    def is_in_use(**headers: str) -> bool:
        last_used(filled, timedelta(minutes=10))
        client.get("/", headers=cookie | {"Sec-Fetch-Mode": headers["mode"]})
        with filled.reading() as connection:
            [moment] = connection.scalars(sa.select(access_tokens.c.last_used_at)).all()
        return bool(datetime.now(UTC) - moment < timedelta(minutes=9))

    assert not is_in_use(mode="cors")
    assert is_in_use(mode="navigate")


def test_tokens_of_programs_do_not_idle(browser: Browser, filled: Store) -> None:
    client = browser(web_idle_hours=0.5)
    token = People(filled).create_token("pat", "report")
    with filled.transaction() as connection:
        connection.execute(
            sa.update(access_tokens).values(created_at=datetime.now(UTC) - timedelta(days=3))
        )
    headers = {"Authorization": f"Bearer {token}"}
    assert client.get("/api/v1/me", headers=headers).status_code == 200
