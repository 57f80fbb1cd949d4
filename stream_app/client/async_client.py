"""The client for programs with an event loop."""

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, TypeVar

import httpx
from msgspec import Struct
from tenacity import AsyncRetrying

from stream_app.client import requests
from stream_app.client.answers import EventResult, Page, Session, TurnScores
from stream_app.client.batching import Batching, Losses
from stream_app.client.errors import ClientError
from stream_app.client.events import Sendable
from stream_app.client.requests import Batch, Retries

T = TypeVar("T")


class _Queued(Struct, frozen=True):
    """A queued event, or a marker without one: everything before it is sent, then it is done."""

    encoded: bytes | None
    done: "asyncio.Future[Any]"
    last: bool = False


class AsyncRapportClient:
    """Sends events and reads scores; the same as ``RapportClient``, with ``await``.

    Args:
        url: of ``rapport web``, without a path.
        token: of ``rapport people token``; the role ``ingest`` sends, the others read.
        retries: when to give up.
        batching: of ``queue``.
        timeout: seconds for an answer.
        transport: for tests; by default HTTP.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        retries: Retries | None = None,
        batching: Batching | None = None,
        timeout: float = 20.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.AsyncClient(
            base_url=url, headers=headers, timeout=timeout, transport=transport
        )
        self._retrying = AsyncRetrying(**(retries or Retries()).options())
        self._batching = batching or Batching()
        self._queue: asyncio.Queue[_Queued] = asyncio.Queue(self._batching.waiting)
        self._losses = Losses()
        self._order = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def __aenter__(self) -> "AsyncRapportClient":
        """The client; it is closed at the end of the block."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the client."""
        await self.close()

    async def send(self, *events: Sendable, key: str | None = None) -> list[EventResult]:
        """Send events now, in this order; refused ones have a ``code``.

        ``key``: identifies these events, such as the id of a webhook's delivery. Sending them again
        with it, even from another process, adds nothing (for a day).

        Raises:
            ServiceUnavailable: no answer in all attempts; send the same events with the same key.
            RequestRefused: nothing was accepted.
        """
        return await self._send([requests.encode(event) for event in events], key)

    async def queue(self, event: Sendable) -> "asyncio.Future[EventResult]":
        """Queue an event for the next batch; waits if too many are queued.

        Events reach the service in the order in which they were queued. What is refused or lost is
        in the future, and is also raised by ``flush`` and ``close``.
        """
        done: asyncio.Future[EventResult] = asyncio.get_running_loop().create_future()
        await self._put(_Queued(requests.encode(event), done))
        return done

    async def flush(self) -> None:
        """Wait until all queued events have an answer.

        Raises:
            EventsNotSent: some were refused or lost since the last call.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self._put(_Queued(None, done))
        await done
        self._losses.report()

    async def close(self) -> None:
        """Send what is queued, then disconnect.

        Raises:
            EventsNotSent: some queued events were refused or lost.
        """
        async with self._order:
            if self._closed:
                return
            self._closed = True
            if self._task is not None:
                last = asyncio.get_running_loop().create_future()
                await self._queue.put(_Queued(None, last, last=True))
        if self._task is not None:
            await self._task
        await self._http.aclose()
        self._losses.report()

    async def session(self, session_id: str) -> Session:
        """A session with its aggregates so far.

        Raises:
            RequestRefused: 404 outside the access scope of the token.
        """
        return await self._get(requests.path_of(session_id), {}, Session)

    def turns(self, session_id: str) -> AsyncIterator[TurnScores]:
        """A session's turns with their scores, in order."""
        return self._pages(requests.path_of(session_id, "turns"), {}, Page[TurnScores])

    def sessions(self, **filters: str) -> AsyncIterator[Session]:
        """All sessions within the access scope; ``filters``: such as ``status="open"``."""
        return self._pages(requests.SESSIONS, {"order": "id", **filters}, Page[Session])

    async def _pages(
        self, path: str, query: dict[str, str], kind: type[Page[T]]
    ) -> AsyncIterator[T]:
        cursor: dict[str, str] = {}
        while True:
            page = await self._get(path, {**query, **cursor}, kind)
            for item in page.items:
                yield item
            if page.next_cursor is None:
                return
            cursor = {"cursor": page.next_cursor}

    async def _get(self, path: str, query: dict[str, str], kind: type[T]) -> T:
        async def get() -> T:
            return requests.decoded(await self._ask("GET", path, params=query), kind)

        return await self._retrying.copy()(get)

    async def _send(self, encoded: list[bytes], key: str | None = None) -> list[EventResult]:
        results: list[EventResult] = []
        for batch in requests.batches(encoded, key):
            results += await self._retrying.copy()(self._send_batch, batch)
        return results

    async def _send_batch(self, batch: Batch) -> list[EventResult]:
        response = await self._ask(
            "POST", requests.EVENTS, content=batch.body, headers=batch.headers
        )
        return requests.results_of(response, batch)

    async def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            return await self._http.request(method, path, **options)
        except httpx.HTTPError as problem:
            raise requests.unreachable(problem) from None

    async def _put(self, queued: _Queued) -> None:
        async with self._order:  # keeps the order of callers that wait for room
            if self._closed:
                raise ClientError("the client is closed")
            if self._task is None:
                self._task = asyncio.create_task(self._run(), name="rapport")
            await self._queue.put(queued)

    async def _run(self) -> None:
        while True:
            batch, marker = await self._collect()
            if batch:
                await self._deliver(batch)
            if marker is not None:
                _set(marker.done, None)
                if marker.last:
                    return

    async def _collect(self) -> tuple[list[_Queued], _Queued | None]:
        """The next batch, and the marker that ended it."""
        batch: list[_Queued] = []
        size = 0
        until: float | None = None
        clock = asyncio.get_running_loop().time
        while not self._batching.is_full(len(batch), size):
            try:
                wait = None if until is None else max(0.0, until - clock())
                queued = await asyncio.wait_for(self._queue.get(), wait)
            except TimeoutError:
                break
            if queued.encoded is None:
                return batch, queued
            batch.append(queued)
            size += len(queued.encoded)
            until = until or clock() + self._batching.linger
        return batch, None

    async def _deliver(self, batch: list[_Queued]) -> None:
        try:
            results = await self._send([each.encoded for each in batch if each.encoded is not None])
        except Exception as problem:  # noqa: BLE001  # the task must go on; close() raises it
            self._losses.lost(len(batch), problem)
            for each in batch:
                if not each.done.done():
                    each.done.set_exception(problem)
                    each.done.exception()  # retrieved: close() raises it, too
            return
        for each, result in zip(batch, results, strict=True):
            if not result.accepted:
                self._losses.refused(result)
            _set(each.done, result)


def _set(future: "asyncio.Future[Any]", value: object) -> None:
    """Resolve a future, unless its reader has given up."""
    if not future.done():
        future.set_result(value)
