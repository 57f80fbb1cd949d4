"""The client for programs with threads."""

import queue
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeVar

import httpx
from msgspec import Struct
from tenacity import Retrying

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
    done: "Future[Any]"
    last: bool = False


class RapportClient:
    """Sends events and reads scores; safe to share between threads.

    >>> from stream_app.client import RapportClient, end, turn
    >>> with RapportClient("http://127.0.0.1:8080", "rapport_…") as rapport:  # doctest: +SKIP
    ...     rapport.send(turn("chat-1", "client", "Hello", speaker_id="c-9", consent=True))
    ...     rapport.queue(end("chat-1"))

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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(
            base_url=url, headers=headers, timeout=timeout, transport=transport
        )
        self._retrying = Retrying(**(retries or Retries()).options())
        self._batching = batching or Batching()
        self._queue: queue.Queue[_Queued] = queue.Queue(self._batching.waiting)
        self._losses = Losses()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def __enter__(self) -> "RapportClient":
        """The client; it is closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the client."""
        self.close()

    def send(self, *events: Sendable, key: str | None = None) -> list[EventResult]:
        """Send events now, in this order; refused ones have a ``code``.

        ``key``: identifies these events, such as the id of a webhook's delivery. Sending them again
        with it, even from another process, adds nothing (for a day).

        Raises:
            ServiceUnavailable: no answer in all attempts; send the same events with the same key.
            RequestRefused: nothing was accepted.
        """
        return self._send([requests.encode(event) for event in events], key)

    def queue(self, event: Sendable) -> "Future[EventResult]":
        """Queue an event for the next batch; waits if too many are queued.

        Events reach the service in the order in which they were queued. What is refused or lost is
        in the future, and is also raised by ``flush`` and ``close``.
        """
        done: Future[EventResult] = Future()
        done.set_running_or_notify_cancel()  # it can no longer be cancelled
        self._put(_Queued(requests.encode(event), done))
        return done

    def flush(self) -> None:
        """Wait until all queued events have an answer.

        Raises:
            EventsNotSent: some were refused or lost since the last call.
        """
        done: Future[None] = Future()
        self._put(_Queued(None, done))
        done.result()
        self._losses.report()

    def close(self) -> None:
        """Send what is queued, then disconnect.

        Raises:
            EventsNotSent: some queued events were refused or lost.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
            if thread is not None:
                self._queue.put(_Queued(None, Future(), last=True))
        if thread is not None:
            thread.join()
        self._http.close()
        self._losses.report()

    def session(self, session_id: str) -> Session:
        """A session with its aggregates so far.

        Raises:
            RequestRefused: 404 outside the access scope of the token.
        """
        return self._get(requests.path_of(session_id), {}, Session)

    def turns(self, session_id: str) -> Iterator[TurnScores]:
        """A session's turns with their scores, in order."""
        return self._pages(requests.path_of(session_id, "turns"), {}, Page[TurnScores])

    def sessions(self, **filters: str) -> Iterator[Session]:
        """All sessions within the access scope; ``filters``: such as ``status="open"``."""
        return self._pages(requests.SESSIONS, {"order": "id", **filters}, Page[Session])

    def _pages(self, path: str, query: dict[str, str], kind: type[Page[T]]) -> Iterator[T]:
        cursor: dict[str, str] = {}
        while True:
            page = self._get(path, {**query, **cursor}, kind)
            yield from page.items
            if page.next_cursor is None:
                return
            cursor = {"cursor": page.next_cursor}

    def _get(self, path: str, query: dict[str, str], kind: type[T]) -> T:
        return self._retrying.copy()(
            lambda: requests.decoded(self._ask("GET", path, params=query), kind)
        )

    def _send(self, encoded: list[bytes], key: str | None = None) -> list[EventResult]:
        results: list[EventResult] = []
        for batch in requests.batches(encoded, key):
            results += self._retrying.copy()(self._send_batch, batch)
        return results

    def _send_batch(self, batch: Batch) -> list[EventResult]:
        response = self._ask("POST", requests.EVENTS, content=batch.body, headers=batch.headers)
        return requests.results_of(response, batch)

    def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **options)
        except httpx.HTTPError as problem:
            raise requests.unreachable(problem) from None

    def _put(self, queued: _Queued) -> None:
        with self._lock:  # a full queue is emptied by the thread, which does not take the lock
            if self._closed:
                raise ClientError("the client is closed")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rapport", daemon=True)
                self._thread.start()
            self._queue.put(queued)

    def _run(self) -> None:
        while True:
            batch, marker = self._collect()
            if batch:
                self._deliver(batch)
            if marker is not None:
                marker.done.set_result(None)
                if marker.last:
                    return

    def _collect(self) -> tuple[list[_Queued], _Queued | None]:
        """The next batch, and the marker that ended it."""
        batch: list[_Queued] = []
        size = 0
        until: float | None = None
        while not self._batching.is_full(len(batch), size):
            try:
                wait = None if until is None else max(0.0, until - time.monotonic())
                queued = self._queue.get(timeout=wait)
            except queue.Empty:
                break
            if queued.encoded is None:
                return batch, queued
            batch.append(queued)
            size += len(queued.encoded)
            until = until or time.monotonic() + self._batching.linger
        return batch, None

    def _deliver(self, batch: list[_Queued]) -> None:
        try:
            results = self._send([each.encoded for each in batch if each.encoded is not None])
        except Exception as problem:  # noqa: BLE001  # the thread must go on; close() raises it
            self._losses.lost(len(batch), problem)
            for each in batch:
                each.done.set_exception(problem)
            return
        for each, result in zip(batch, results, strict=True):
            if not result.accepted:
                self._losses.refused(result)
            each.done.set_result(result)
