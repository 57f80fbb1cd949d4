"""``/events/ws``: a WebSocket for programs that send events all day.

A message is a batch with an optional idempotency key; it is handled exactly as a ``POST /events``
with this body and header. Messages are answered in order, one at a time: a program may send the
next ones before the answer, and the connection then makes it wait.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, HTTPException, Response, WebSocket, WebSocketDisconnect
from msgspec import Meta, Raw, Struct
from starlette.concurrency import run_in_threadpool

from stream_app.contracts import batch_body
from stream_app.errors import RapportError
from stream_app.store.accounts.people import Person
from stream_app.web import problems
from stream_app.web.api.receiving.events import KEY_PATTERN, bare_key
from stream_app.web.ingest import ingest
from stream_app.web.ingest.ingest import MAX_BYTES, MAX_EVENTS
from stream_app.web.live.live_hub import TooManyClients
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import NotSignedIn, sending_program

MAX_SOCKETS: Final = 200
"""Most sockets of a process."""
MAX_SOCKETS_PER_ACCOUNT: Final = 20
IDLE_SECONDS: Final = 600.0
"""Seconds without a message after which the connection is closed."""
EVENTS_PER_SECOND: Final = 500
"""Limit of one connection; faster programs wait for their answers."""
ACCOUNT_CHECK_SECONDS: Final = 10.0
"""How old the last check of the token may be when a message is handled."""
POLICY, GOING_AWAY, TOO_BIG = 1008, 1001, 1009
"""Codes of RFC 6455."""

router = APIRouter(prefix="/events", tags=["ingest"])


class Batch(Struct, frozen=True):
    """A message: ``events`` as in ``POST /events``, ``key`` as its ``Idempotency-Key``."""

    events: Annotated[list[Raw], Meta(min_length=1, max_length=MAX_EVENTS)]
    key: Annotated[str, Meta(pattern=KEY_PATTERN)] | None = None


_decoder: msgspec.json.Decoder[Batch] = msgspec.json.Decoder(Batch)


class _Open:
    """Counts the open connections of this process."""

    def __init__(self) -> None:
        self._by_account: Counter[str] = Counter()

    @contextmanager
    def one_more(self, account: str) -> Iterator[None]:
        """Count a connection while it is open.

        Raises:
            TooManyClients: the process or the account has too many.
        """
        if (
            self._by_account.total() >= MAX_SOCKETS
            or self._by_account[account] >= MAX_SOCKETS_PER_ACCOUNT
        ):
            raise TooManyClients("too many connections are open; close some, or try again later")
        self._by_account[account] += 1
        try:
            yield
        finally:
            self._by_account[account] -= 1


_open = _Open()


@router.websocket("/ws")
async def events_over_websocket(socket: WebSocket, services: ServicesDep) -> None:
    """Take batches of events until the program disconnects or its token is revoked."""
    try:
        person = await run_in_threadpool(sending_program, socket, services)
        with _open.one_more(person.name):
            await socket.accept()
            await _serve(socket, services, person)
    except WebSocketDisconnect:
        return
    except (HTTPException, RapportError) as problem:
        await socket.send_denial_response(await run_in_threadpool(_denial, socket, problem))


async def _serve(socket: WebSocket, services: Services, person: Person) -> None:
    checked = time.monotonic()
    while True:
        try:
            message = await asyncio.wait_for(_receive(socket), IDLE_SECONDS)
        except TimeoutError:
            await socket.close(GOING_AWAY, f"no message for {IDLE_SECONDS:.0f} s")
            return
        if len(message) > MAX_BYTES:
            await socket.close(TOO_BIG, f"a message may have at most {MAX_BYTES} bytes")
            return
        began = time.monotonic()
        if began - checked > ACCOUNT_CHECK_SECONDS:
            checked = began
            if not await run_in_threadpool(_is_still_valid, socket, services, person):
                await socket.close(POLICY, "the token is no longer valid")
                return
        count, answer = await _answer(services, person, message)
        await socket.send_text(msgspec.json.encode(answer).decode())
        await asyncio.sleep(max(0.0, count / EVENTS_PER_SECOND - (time.monotonic() - began)))


async def _receive(socket: WebSocket) -> bytes:
    """The next message, text or binary.

    Raises:
        WebSocketDisconnect: the program has closed the connection.
    """
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", POLICY))
    text = message.get("text")
    return message.get("bytes") or b"" if text is None else text.encode("utf-8", "surrogatepass")


async def _answer(services: Services, person: Person, message: bytes) -> tuple[int, dict[str, Any]]:
    """Handle one message; the number of its events and the answer."""
    key = None
    try:
        sent_key, raw = await run_in_threadpool(_decode, message)
        key = bare_key(sent_key)
        result = await ingest.send_batch(services, person, raw, key)
    except (HTTPException, RapportError) as problem:
        found, headers = problems.describe(problem)
        wait = int(headers["Retry-After"]) if "Retry-After" in headers else None
        about = {"status": found.status, "retry_after": wait, "problem": asdict(found)}
        return 1, {"key": key, **about}
    return len(raw), {"key": key, "status": result.status, **asdict(result)}


def _decode(message: bytes) -> tuple[str | None, list[bytes]]:
    """The key and the events of a message."""
    try:
        batch_body.check_size(message, batch_body.MAX_TOKENS)
        legible = batch_body.masked(message)
        batch = _decoder.decode(legible)
        parts = [bytes(event) for event in batch.events]
        if legible == message:
            return batch.key, parts
        start = max(0, legible.find(b'"events"'))
        return batch.key, batch_body.originals(message, legible, parts, start)
    except batch_body.TooManyEvents:
        raise HTTPException(413, "the message has too many brackets and commas; split it") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise HTTPException(
            422,
            f'send {{"key": …, "events": […]}} with 1 to {MAX_EVENTS} events; `key` is optional, '
            "as the header Idempotency-Key",
        ) from None


def _is_still_valid(socket: WebSocket, services: Services, person: Person) -> bool:
    try:
        return sending_program(socket, services) == person
    except (NotSignedIn, HTTPException):
        return False


def _denial(socket: WebSocket, problem: HTTPException | RapportError) -> Response:
    """The answer to a handshake that is refused."""
    if isinstance(problem, NotSignedIn):
        problems.record_unknown_sender(socket)
        return problems.not_signed_in()
    found, headers = problems.describe(problem)
    problems.record_refusal(socket, found.status)
    return problems.as_response(found, headers)
