"""The return from an identity provider of another site, over HTTPS, in a real browser.

Browsers decide whether a cookie with ``SameSite`` and the prefix ``__Host-`` is stored and sent.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from pydantic import SecretStr

from stream_app.work.account_changes import AccountChanges
from stream_app.worker.kafka.broker import free_port
from tests.certificates import Authority
from tests.web.in_process import InProcessWeb
from tests.web.openid_provider import running_provider

try:
    from playwright.sync_api import Browser, Page
except ImportError:
    """The fixture ``chromium`` skips the tests."""

SIGN_IN = "/sign-in?to=/alerts"


@contextmanager
def https(web: InProcessWeb, folder: Path, port: int) -> Iterator[None]:
    """Serve the application with a certificate for localhost."""
    certificate, key = Authority(folder).issue("console", ["localhost"])
    config = uvicorn.Config(
        web.app,
        "127.0.0.1",
        port,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        log_config=None,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.05)
        yield
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.fixture
def console(tmp_path: Path) -> Iterator[str]:
    """The console's address; the provider is at 127.0.0.1, another site than localhost."""
    port = free_port()
    address = f"https://localhost:{port}"
    with running_provider() as issuer:
        web = InProcessWeb(
            tmp_path,
            changes={
                "external_url": address,
                "oidc_issuer": issuer,
                "oidc_client_id": "rapport",
                "oidc_client_secret": SecretStr("secret of the client"),
            },
        )
        web.start()
        AccountChanges(web.store, "(test)").bind("sue", issuer, "1001")
        try:
            with https(web, tmp_path, port):
                yield address
        finally:
            web.stop()


@pytest.fixture
def page(chromium: "Browser") -> Iterator["Page"]:
    context = chromium.new_context(ignore_https_errors=True)
    yield context.new_page()
    context.close()


def return_from_provider(page: "Page", console: str) -> str:
    """Sign in at the provider; returns the address of the callback."""
    page.goto(console + SIGN_IN)
    page.click("a[href^='/sign-in/oidc']")
    page.wait_for_url("http://127.0.0.1:*/**")
    page.fill("[name=sub]", "1001")
    with page.expect_request(lambda request: "/sign-in/oidc/callback" in request.url) as back:
        page.click("button[type=submit]")
    page.wait_for_url(f"{console}/alerts")
    return back.value.url


def test_a_browser_comes_back_signed_in_with_a_cookie_of_this_host_only(
    console: str, page: "Page"
) -> None:
    return_from_provider(page, console)
    assert "sue" in page.inner_text("header")
    [cookie] = page.context.cookies()
    assert cookie["name"] == "__Host-rapport"
    assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")
    assert (cookie["domain"], cookie["path"]) == ("localhost", "/")


def test_a_callback_opened_again_is_refused_and_the_sign_in_stays(
    console: str, page: "Page"
) -> None:
    callback = return_from_provider(page, console)
    assert page.goto(callback).status == 403
    assert page.goto(f"{console}/alerts").status == 200
    assert page.url == f"{console}/alerts"
