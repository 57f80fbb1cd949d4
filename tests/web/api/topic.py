"""Takes the place of the broker in tests of a web process in the test process."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiokafka.structs import RecordMetadata, TopicPartition

from stream_app.web.live.publisher import Publisher


@dataclass
class Topic:
    """Records by session. ``problem``: raised instead of sending; ``refusals``: of next records."""

    records: list[tuple[str, bytes]] = field(default_factory=list)
    problem: Exception | None = None
    refusals: list[Exception | None] = field(default_factory=list)

    def replacing_the_broker(self, monkeypatch: pytest.MonkeyPatch) -> "Topic":
        async def send(
            _: Publisher, topic: str, key: bytes, value: bytes, headers: Sequence[Any] = ()
        ) -> "asyncio.Future[Any]":
            return self._send(topic, key, value)

        monkeypatch.setattr(Publisher, "send", send)
        return self

    def of(self, session: str) -> list[bytes]:
        """Values of a session's records, in order."""
        return [value for key, value in self.records if key == session]

    def _send(self, topic: str, key: bytes, value: bytes) -> "asyncio.Future[Any]":
        if self.problem is not None:
            raise self.problem
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        refusal = self.refusals.pop(0) if self.refusals else None
        if refusal is not None:
            future.set_exception(refusal)
            return future
        self.records.append((key.decode(), value))
        place = TopicPartition(topic, 0)
        future.set_result(RecordMetadata(topic, 0, place, len(self.records) - 1, 0, 0, 0))
        return future
