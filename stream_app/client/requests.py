"""Requests and answers without I/O: keys, chunks, what is repeated and when.

Every request that sends events has an idempotency key, and a repetition has the same one. So it
adds nothing, whatever became of the first attempt.
"""

import re
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx
import msgspec
from msgspec import Struct
from tenacity import (
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    stop_any,
    stop_before_delay,
    wait_random_exponential,
)

from stream_app.client.answers import BatchAnswer, EventResult, Problem
from stream_app.client.errors import ClientError, RequestRefused, ServiceUnavailable
from stream_app.client.events import Sendable

T = TypeVar("T")
MAX_EVENTS: Final = 500
MAX_BYTES: Final = 4 * 1024 * 1024
"""Largest request body that the service accepts, in bytes."""
EVENTS: Final = "/api/v1/events"
SESSIONS: Final = "/api/v1/sessions"
KEY_BUSY: Final = "urn:rapport:problem:key-busy"
REPEATED: Final = frozenset({429, 502, 503, 504})
BROKER: Final = "broker"
NOTHING_ACCEPTED: Final = 422
_KEY: Final = re.compile(r"[ !#-\[\]-~]{1,190}")
_NEVER_SENT: Final = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.DecodingError)


class Retries(Struct, frozen=True):
    """When to give up: after ``attempts``, or before ``seconds`` would pass.

    ``first_wait`` and ``longest_wait``: of the exponential back-off with jitter, in seconds. A
    longer ``Retry-After`` of the service is honoured.
    """

    attempts: int = 10
    seconds: float = 120.0
    first_wait: float = 0.5
    longest_wait: float = 20.0

    def options(self) -> dict[str, Any]:
        """Arguments of tenacity's ``Retrying`` and ``AsyncRetrying``."""
        backoff = wait_random_exponential(multiplier=self.first_wait, max=self.longest_wait)

        def wait(state: RetryCallState) -> float:
            problem = state.outcome.exception() if state.outcome else None
            asked = problem.retry_after if isinstance(problem, ServiceUnavailable) else None
            return max(backoff(state), asked or 0.0)

        return {
            "retry": retry_if_exception_type(ServiceUnavailable),
            "stop": stop_any(stop_after_attempt(self.attempts), stop_before_delay(self.seconds)),
            "wait": wait,
            "reraise": True,
        }


class Batch(Struct, frozen=True):
    """One request with events: ``body`` is a JSON array of ``count`` events."""

    body: bytes
    count: int
    key: str

    @property
    def headers(self) -> dict[str, str]:
        """Headers with the key as a string of a structured header."""
        return {"Content-Type": "application/json", "Idempotency-Key": f'"{self.key}"'}


def encode(event: Sendable) -> bytes:
    """An event as JSON."""
    return msgspec.json.encode(event)


def batches(encoded: Sequence[bytes], key: str | None) -> Iterator[Batch]:
    """Split events into requests, in order. ``key``: of all of them; without one, random keys.

    Raises:
        ClientError: the key has characters that a header cannot have, or is too long.
    """
    if key is not None and not _KEY.fullmatch(key):
        raise ClientError('a key has 1 to 190 printable ASCII characters without " and \\')
    some: list[bytes] = []
    size = number = 0
    for event in encoded:
        if some and (len(some) == MAX_EVENTS or size + len(event) + 1 > MAX_BYTES - 2):
            yield _batch(some, key, number)
            some, size, number = [], 0, number + 1
        some.append(event)
        size += len(event) + 1
    if some:
        yield _batch(some, key, number)


def _batch(events: list[bytes], key: str | None, number: int) -> Batch:
    own = str(uuid.uuid4()) if key is None else key if number == 0 else f"{key}/{number}"
    return Batch(b"[" + b",".join(events) + b"]", len(events), own)


def path_of(session_id: str, *more: str) -> str:
    """The path of a session in the API."""
    return "/".join((SESSIONS, quote(session_id, safe=""), *more))


def unreachable(problem: httpx.HTTPError) -> ClientError:
    """Return the error of a failed request: try again, unless it could not be built."""
    if isinstance(problem, _NEVER_SENT):
        return ClientError(f"the request cannot be sent ({type(problem).__name__}): check the URL")
    return ServiceUnavailable(f"Rapport does not answer ({type(problem).__name__})")


def decoded(response: httpx.Response, kind: type[T]) -> T:
    """The answer of a request.

    Raises:
        ServiceUnavailable: repeat the request.
        RequestRefused: repeating it does not help.
        ClientError: the answer is not Rapport's.
    """
    status = response.status_code
    if not response.is_success:
        problem = _problem(response)
        if status in REPEATED or (status == 409 and problem.type == KEY_BUSY):
            detail = f"Rapport answered {status}: {problem.detail}"
            raise ServiceUnavailable(detail, _retry_after(response))
        raise RequestRefused(status, problem.type, problem.detail)
    try:
        return msgspec.json.decode(response.content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ClientError("the answer is not one of Rapport's API: check the URL") from None


def results_of(response: httpx.Response, batch: Batch) -> list[EventResult]:
    """Results of a batch, one for each event.

    Raises:
        ServiceUnavailable: repeat the request; the broker did not accept all events.
        RequestRefused: repeating it does not help.
        ClientError: the answer is not Rapport's.
    """
    nothing = _nothing_accepted(response)
    results = decoded(response, BatchAnswer).results if nothing is None else nothing.results
    if len(results) != batch.count:
        raise ClientError("the answer is not one of Rapport's API: check the URL")
    missing = sum(result.code == BROKER for result in results)
    if missing:
        raise ServiceUnavailable(f"the broker did not accept {missing} of {batch.count} events")
    return results


def _nothing_accepted(response: httpx.Response) -> BatchAnswer | None:
    """Results none of which is accepted; their status is also that of an invalid request."""
    if response.status_code != NOTHING_ACCEPTED:
        return None
    try:
        return msgspec.json.decode(response.content, type=BatchAnswer)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _problem(response: httpx.Response) -> Problem:
    try:
        return msgspec.json.decode(response.content, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Problem(detail=response.reason_phrase)


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds of ``Retry-After``, which is a number or a date."""
    value = response.headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isdecimal():
        return float(value[:9])
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
