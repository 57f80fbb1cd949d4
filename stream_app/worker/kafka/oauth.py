"""Access tokens for Kafka's OAUTHBEARER, by OAuth 2.0 client credentials (RFC 6749, section 4.4).

A token is kept until shortly before it expires. Clients in several threads share one provider, so
it does not depend on an event loop.
"""

import asyncio
import re
import threading
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, urlsplit

import aiokafka.conn
import httpx
import msgspec
from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import OAuthAuthenticator
from aiokafka.errors import KafkaError, SaslAuthenticationFailed

TIMEOUT: Final = 10.0
MARGIN: Final = 60.0
"""Seconds before its expiry in which a token is replaced; at most a fifth of its lifetime."""
UNSTATED_LIFETIME: Final = 60.0
"""Seconds that a token is used if the endpoint does not state a lifetime."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_ERROR: Final = re.compile(r"[a-z_]{1,40}")


class NoToken(KafkaError):  # type: ignore[misc]  # aiokafka has no types
    """The token endpoint gave no token; aiokafka retries errors of this base class."""


class CheckedAuthenticator(OAuthAuthenticator):  # type: ignore[misc]  # aiokafka has no types
    """Raises when the broker refuses the token.

    The refusal comes as the broker's second message (RFC 7628, section 3.2.2). aiokafka 0.14 does
    not read it, considers itself signed in and then misreads the answer to its first request.
    """

    async def step(self, payload: bytes | None) -> Any:
        """Send the token; then expect an empty message."""
        if payload:
            raise SaslAuthenticationFailed(payload.decode("utf-8", "replace"))
        return await super().step(payload)


aiokafka.conn.OAuthAuthenticator = CheckedAuthenticator  # the connections' only way to get one


class _Answer(msgspec.Struct, frozen=True):
    """The response of a token endpoint (RFC 6749, section 5.1)."""

    access_token: str
    token_type: str
    expires_in: float = UNSTATED_LIFETIME


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    """Fetches tokens from an endpoint and caches the newest.

    Args:
        url: the token endpoint.
        client_id: the client's name at the endpoint.
        client_secret: sent with HTTP Basic authentication.
        scope: requested scope, if the endpoint needs one.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        url: str,
        client_id: str,
        client_secret: str,
        scope: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        # RFC 6749, section 2.3.1: both are form-encoded before HTTP Basic
        self._login = (quote(client_id, safe=""), quote(client_secret, safe=""))
        self._form = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
        self._clock = clock
        self._lock = threading.Lock()
        self._cached = ""
        self._replace_at = self._expires_at = float("-inf")

    async def token(self) -> str:
        """A token that has not expired.

        Raises:
            NoToken: the endpoint does not answer or refused the client.
        """
        return await asyncio.to_thread(self._current)

    def _current(self) -> str:
        with self._lock:
            now = self._clock()
            if now < self._replace_at:
                return self._cached
            try:
                answer = self._fetch()
            except NoToken:
                if now < self._expires_at:
                    return self._cached
                raise
            self._cached = answer.access_token
            self._expires_at = now + answer.expires_in
            self._replace_at = self._expires_at - min(MARGIN, answer.expires_in / 5)
            return self._cached

    def _fetch(self) -> _Answer:
        where = f"the token endpoint {urlsplit(self._url).hostname}"
        try:
            response = httpx.post(self._url, data=self._form, auth=self._login, timeout=TIMEOUT)
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise NoToken(f"{where} does not answer ({_reason(problem)})") from None
        if response.status_code != httpx.codes.OK:
            raise NoToken(f"{where} gave no token: status {response.status_code}{_error(response)}")
        try:
            answer = msgspec.json.decode(response.content, type=_Answer, strict=False)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise NoToken(f"{where} answered without an access_token") from None
        if answer.token_type.lower() != "bearer" or not _TOKEN.fullmatch(answer.access_token):
            raise NoToken(f"{where} answered with something else than a bearer token")
        return answer


def _reason(problem: Exception) -> str:
    """The type of the error, and the reason if TLS failed; never the request."""
    about_tls = "CERTIFICATE_VERIFY_FAILED" in str(problem)
    return f"{type(problem).__name__}{': its certificate was refused' if about_tls else ''}"


def _error(response: httpx.Response) -> str:
    """The error code of RFC 6749, section 5.2, if there is one."""
    try:
        found: Any = msgspec.json.decode(response.content)
        code = str(found["error"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        return ""
    return f" ({code})" if _ERROR.fullmatch(code) else ""
