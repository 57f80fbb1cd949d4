"""Tokens by client credentials: how often they are fetched, and the error when there is none."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import aiokafka.conn
import pytest
from aiokafka.errors import SaslAuthenticationFailed
from pydantic import SecretStr

from stream_app.errors import BrokerUnavailable
from stream_app.settings import SaslMechanism, SecurityProtocol, Settings
from stream_app.worker.kafka import broker
from stream_app.worker.kafka.kafka_security import security_options
from stream_app.worker.kafka.oauth import CheckedAuthenticator, NoToken, TokenProvider
from tests.worker.token_endpoint import CLIENT, SECRET, Endpoint

GOOD = {"access_token": "abc.def.", "token_type": "Bearer", "expires_in": 600}


class Script:
    """A token endpoint that gives the answers in `answers`, the last one again and again."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: list[tuple[int, Any]] = [(200, GOOD)]
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                script.asked.append(self.rfile.read(int(self.headers["content-length"])).decode())
                many = len(script.answers) > 1
                status, content = script.answers.pop(0) if many else script.answers[0]
                raw = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                if status == 302:
                    self.send_header("location", "/elsewhere")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/token"


@pytest.fixture
def endpoint() -> Iterator[Script]:
    script = Script()
    thread = threading.Thread(target=script.server.serve_forever, args=(0.01,))
    thread.start()
    yield script
    script.server.shutdown()
    thread.join()
    script.server.server_close()


@pytest.fixture
def clock() -> list[float]:
    return [1000.0]


def provider(script: Script, clock: list[float], scope: str | None = None) -> TokenProvider:
    return TokenProvider(script.url, CLIENT, SECRET, scope, lambda: clock[0])


async def test_a_token_is_kept_until_a_minute_before_it_expires(
    endpoint: Script, clock: list[float]
) -> None:
    tokens = provider(endpoint, clock, "read write")
    assert await tokens.token() == "abc.def."
    clock[0] += 539.0
    assert await tokens.token() == "abc.def."
    assert endpoint.asked == ["grant_type=client_credentials&scope=read+write"]
    clock[0] += 2.0
    await tokens.token()
    assert len(endpoint.asked) == 2


async def test_of_a_short_lifetime_four_fifths_are_used(
    endpoint: Script, clock: list[float]
) -> None:
    endpoint.answers = [(200, {**GOOD, "expires_in": "10"})]
    tokens = provider(endpoint, clock)
    for at, fetched in ((0.0, 1), (7.9, 1), (8.1, 2)):
        clock[0] = 1000.0 + at
        await tokens.token()
        assert len(endpoint.asked) == fetched


async def test_clients_that_connect_at_once_share_a_token(
    endpoint: Script, clock: list[float]
) -> None:
    tokens = provider(endpoint, clock)
    await asyncio.gather(*(tokens.token() for _ in range(8)))
    assert len(endpoint.asked) == 1


async def test_an_endpoint_that_fails_is_asked_again_while_the_old_token_is_valid(
    endpoint: Script, clock: list[float]
) -> None:
    tokens = provider(endpoint, clock)
    await tokens.token()
    endpoint.answers = [(503, b"")]
    clock[0] += 599.0
    assert await tokens.token() == "abc.def."
    assert len(endpoint.asked) == 2
    clock[0] += 2.0
    with pytest.raises(NoToken, match=r"status 503$"):
        await tokens.token()


@pytest.mark.parametrize(
    ("status", "content", "told"),
    [
        (401, {"error": "invalid_client", "error_description": SECRET}, "401 (invalid_client)"),
        (400, {"error": f"{SECRET} !"}, "status 400"),
        (302, b"", "status 302"),
        (200, b"<html>", "answered without an access_token"),
        (200, [], "answered without an access_token"),
        (200, {"access_token": "a", "token_type": "mac"}, "something else than a bearer token"),
        (200, {**GOOD, "access_token": "a\u0001b"}, "something else than a bearer token"),
    ],
)
async def test_no_token_is_a_sentence_without_secrets(
    endpoint: Script, clock: list[float], status: int, content: Any, told: str
) -> None:
    endpoint.answers = [(status, content)]
    with pytest.raises(NoToken) as problem:
        await provider(endpoint, clock).token()
    assert str(problem.value).endswith(told)
    assert "the token endpoint 127.0.0.1" in str(problem.value)
    assert SECRET not in str(problem.value)
    assert len(endpoint.asked) == 1  # a redirect is not followed


async def test_an_absent_endpoint_is_a_sentence() -> None:
    away = TokenProvider(f"http://127.0.0.1:{broker.free_port()}/token", CLIENT, SECRET)
    with pytest.raises(NoToken, match=r"does not answer \(ConnectError\)$"):
        await away.token()


async def test_name_and_secret_are_encoded_as_the_standard_says() -> None:
    thread_server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=thread_server.serve_forever, args=(0.01,))
    thread.start()
    try:
        url = f"http://127.0.0.1:{thread_server.server_port}/token"
        assert (await TokenProvider(url, CLIENT, SECRET).token()).count(".") == 2
        with pytest.raises(NoToken, match="invalid_client"):
            await TokenProvider(url, CLIENT, "wrong").token()
    finally:
        thread_server.shutdown()
        thread.join()
        thread_server.server_close()


async def test_a_refused_token_raises_in_every_client(endpoint: Script, clock: list[float]) -> None:
    assert aiokafka.conn.OAuthAuthenticator is CheckedAuthenticator
    sign_in = CheckedAuthenticator(sasl_oauth_token_provider=provider(endpoint, clock))
    assert await sign_in.step(None) == (b"n,,\x01auth=Bearer abc.def.\x01\x01", True)
    with pytest.raises(SaslAuthenticationFailed, match="invalid_token"):
        await sign_in.step(b'{"status":"invalid_token"}')
    assert await sign_in.step(b"") is None


def oauth(**changes: Any) -> Settings:
    return Settings().model_copy(
        update={
            "kafka_security": SecurityProtocol.SASL_SSL,
            "kafka_sasl_mechanism": SaslMechanism.OAUTHBEARER,
            "kafka_oauth_token_url": "https://login.example.org/token",
            "kafka_oauth_client_id": CLIENT,
            "kafka_oauth_client_secret": SecretStr(SECRET),
            **changes,
        }
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://login.example.org/token",
        "login.example.org",
        "ftp://localhost/x",
        "http://localhost.example.org/",
    ],
)
def test_the_secret_is_sent_by_https_only(url: str) -> None:
    with pytest.raises(BrokerUnavailable, match="RAPPORT_KAFKA_OAUTH_TOKEN_URL must be an https"):
        security_options(oauth(kafka_oauth_token_url=url))


@pytest.mark.parametrize(
    "name", ["kafka_oauth_token_url", "kafka_oauth_client_id", "kafka_oauth_client_secret"]
)
def test_a_missing_setting_is_named(name: str) -> None:
    with pytest.raises(BrokerUnavailable, match=f"needs RAPPORT_{name.upper()}$"):
        security_options(oauth(**{name: None}))
