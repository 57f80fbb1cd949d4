"""Live events: replay after Last-Event-ID, resync, a broker that comes and goes, slow clients."""

import asyncio
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from stream_app.worker import broker
from stream_app.worker.topics import declare_topics
from tests.store.batches import turn
from tests.web.server import Web, serving

PATIENCE = 30.0


@dataclass
class Told:
    id: str | None
    event: str | None
    data: Any


class Stream:
    """An open stream; a thread reads it."""

    def __init__(self, response: httpx.Response) -> None:
        self._found: queue.Queue[Told] = queue.Queue()
        self.comments = 0
        threading.Thread(target=self._read, args=(response,), daemon=True).start()
        self.first_id = self.take().id

    def _read(self, response: httpx.Response) -> None:
        fields: dict[str, str] = {}
        try:
            for line in response.iter_lines():
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif fields:
                    data = json.loads(fields["data"]) if "data" in fields else None
                    self._found.put(Told(fields.get("id"), fields.get("event"), data))
                    fields = {}
        except (httpx.TransportError, httpx.StreamError):
            return

    def take(self) -> Told:
        return self._found.get(timeout=PATIENCE)

    def until(self, wanted: Callable[[Told], bool]) -> list[Told]:
        """Events up to the one that is wanted."""
        found = [self.take()]
        while not wanted(found[-1]):
            found.append(self.take())
        return found

    def nothing_for(self, seconds: float) -> None:
        with pytest.raises(queue.Empty):
            pytest.fail(f"told {self._found.get(timeout=seconds)}")


@contextmanager
def listening(
    web: Web, name: str = "sue", last_id: str | None = None, **params: str
) -> Iterator[Stream]:
    headers = {"Last-Event-ID": last_id} if last_id else {}
    with (
        web.client(name) as client,
        client.stream("GET", "/live", params=params, headers=headers) as response,
    ):
        assert response.status_code == 200
        yield Stream(response)


def is_(kind: str) -> Callable[[Told], bool]:
    return lambda told: told.event == kind


def wait_until_read(web: Web) -> None:
    """Until the web process follows the topics."""
    give_up = time.monotonic() + PATIENCE
    with web.client() as client:
        while "live.reading" not in web.log():
            assert time.monotonic() < give_up, web.log()
            assert client.get("/alerts").status_code == 200
            time.sleep(0.1)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with broker.running() as address:
        web = Web(tmp_path_factory.mktemp("live"), address)
        asyncio.run(declare_topics(web.settings))
        try:
            web.start()
            wait_until_read(web)
            yield web
        finally:
            web.stop()


def test_scores_and_alerts_are_told_with_where_they_belong(live: Web) -> None:
    with listening(live) as stream:
        log = [turn(seq, session_id="told", team="north", domain="counselling") for seq in range(2)]
        live.publish(live.commit(*log))
        found = {told.event: told.data for told in stream.until(is_("alert"))}
        found |= (
            {t.event: t.data for t in stream.until(is_("session"))}
            if "session" not in found
            else {}
        )
    assert found["session"]["team"] == "north"
    assert found["session"]["domain"] == "counselling"
    assert len(found["session"]["counsellors"]) == 1
    assert found["alert"]["team"] == "north"
    assert "text" not in json.dumps(found)
