"""The endpoint of a language model: OpenAI's chat completions by ``httpx``.

The only module of the service that sends text to a language model. Redirects are not followed,
because they would carry the text to another host, and to a loopback address no proxy of the
environment is used. Messages never quote the endpoint's answer, which may repeat the text.
"""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import msgspec
from msgspec import Struct
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from stream_app.core.rules.proposals import Dropped
from stream_app.notifications.notification import DeliveryFailed
from stream_app.notifications.webhook import RETRY_STATUSES, retry_after
from stream_app.settings import is_loopback

ATTEMPTS: Final = 3
LONGEST_PAUSE: Final = 20.0
MAX_TOKENS: Final = 300
MAX_BYTES: Final = 1_000_000
"""Largest answer of the endpoint, in bytes; more is no chat completion."""
_NO_COMPLETION: Final = "the answer of RAPPORT_ASK_ENDPOINT is no chat completion"
_REFUSED: Final = (400, 413, 422)
"""The request itself: too long, or with a form that the endpoint does not know."""


class EndpointFailed(DeliveryFailed):
    """The endpoint gives no answer, or refuses this client; retry later.

    ``temporary``: a repetition within seconds may help.
    """

    def __init__(self, problem: str, retry_after: float = 0.0, *, temporary: bool = True) -> None:
        super().__init__(problem, retry_after)
        self.temporary = temporary


class _Refused(Exception):
    """The endpoint refuses the request itself."""


class _Message(Struct):
    content: str | None = None


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None


class _Completion(Struct):
    choices: list[_Choice]


class ChatEndpoint:
    """Asks one model, one request at a time."""

    def __init__(
        self,
        url: str,
        model: str,
        key: str | None,
        timeout: float,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """``timeout`` in seconds for each attempt; ``pause`` waits between two of them."""
        self.model = model
        self.host = urlsplit(url).hostname or ""
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._pause = pause
        headers = {"user-agent": "rapport"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        self._client = httpx.Client(
            timeout=timeout,
            headers=headers,
            follow_redirects=False,
            trust_env=not is_loopback(self.host),
        )

    def ask(
        self,
        messages: Sequence[dict[str, str]],
        schema: dict[str, Any],
        busy: Callable[[], None] = lambda: None,
    ) -> str | Dropped:
        """The model's answer as it came, or why there is none; ``busy``: before each attempt.

        Raises:
            EndpointFailed: in all attempts.
        """
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": MAX_TOKENS,
        }
        form = {"name": "proposal", "strict": True, "schema": schema}
        shaped = {**body, "response_format": {"type": "json_schema", "json_schema": form}}
        for request in (shaped, body):  # not every server knows the schema
            try:
                return self._completed(self._retrying()(self._post, request, busy))
            except _Refused:
                continue
        return Dropped.REFUSED

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _post(self, body: dict[str, Any], busy: Callable[[], None]) -> bytes:
        busy()
        try:
            with self._client.stream("POST", self._url, json=body) as response:
                _check(response)
                return _content(response)
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise EndpointFailed(
                f"RAPPORT_ASK_ENDPOINT gave no answer ({type(problem).__name__})"
            ) from None

    def _retrying(self) -> Retrying:
        return Retrying(
            retry=retry_if_exception(lambda e: isinstance(e, EndpointFailed) and e.temporary),
            wait=_wait,
            stop=stop_after_attempt(ATTEMPTS),
            sleep=self._pause,
            reraise=True,
        )

    @staticmethod
    def _completed(content: bytes) -> str | Dropped:
        try:
            choice = msgspec.json.decode(content, type=_Completion).choices[0]
        except (msgspec.DecodeError, IndexError, RecursionError):
            raise EndpointFailed(_NO_COMPLETION, temporary=False) from None
        if choice.message.content is None or choice.finish_reason not in (None, "stop"):
            return Dropped.INCOMPLETE
        return choice.message.content


def _check(response: httpx.Response) -> None:
    if response.is_success:
        return
    code = response.status_code
    if code in _REFUSED:
        raise _Refused
    asked = retry_after(response.headers.get("retry-after", ""), datetime.now(UTC))
    temporary = code in RETRY_STATUSES or code >= 500
    raise EndpointFailed(
        f"RAPPORT_ASK_ENDPOINT answered with status {code}", asked, temporary=temporary
    )


def _content(response: httpx.Response) -> bytes:
    found = bytearray()
    for part in response.iter_bytes():
        found += part
        if len(found) > MAX_BYTES:
            raise EndpointFailed(_NO_COMPLETION, temporary=False)
    return bytes(found)


def _wait(attempt: RetryCallState) -> float:
    """Seconds of back-off, or what the endpoint asks for, up to the longest pause."""
    problem = attempt.outcome.exception() if attempt.outcome else None
    asked = problem.retry_after if isinstance(problem, EndpointFailed) else 0.0
    back_off = wait_random_exponential(multiplier=1.0, max=LONGEST_PAUSE)
    return max(back_off(attempt), min(asked, LONGEST_PAUSE))
