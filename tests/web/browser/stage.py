"""A web process over sessions that the real pipeline has scored with the shipped bundle."""

import asyncio
import json
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from aiokafka import AIOKafkaProducer

from stream_app import bootstrap
from stream_app.commands.event_files import SAMPLE_FOLDER, sample_events
from stream_app.contracts import scores
from stream_app.contracts.events import Event, decode
from stream_app.contracts.scores import SessionScore
from stream_app.core.batch import BatchResult
from stream_app.core.pipeline import Pipeline, Source, receive
from stream_app.inference.scorer import OnnxScorer
from stream_app.settings import Settings
from stream_app.store.people import People
from stream_app.web.auth import hash_password
from stream_app.worker.topics import client_options, declare_topics
from tests.web.server import Web

PASSWORD = "long enough to pass"


@cache
def scorer() -> OnnxScorer:
    return bootstrap.scorer(Settings())


@cache
def _hash() -> str:
    return hash_password(PASSWORD)


class Stage(Web):
    """One web process with a database of its own; ``sue`` sees all teams, ``nora`` the north."""

    def __post_init__(self) -> None:
        super().__post_init__()
        manifest = msgspec.to_builtins(scorer().bundle.manifest)
        self.store.prepare(scorer().bundle_id, scorer().bundle.digest, manifest, redact=True)
        self.signed_in: dict[str | None, Any] = {}
        self.pipeline: Pipeline = bootstrap.pipeline(self.settings, scorer())
        for person in ("sue", "nora", "cleo", "ana"):
            People(self.store).set_password(person, _hash())

    def commit(self, *events: bytes) -> BatchResult:
        """Events through the real core into the database."""
        batch = [receive(Source("t", 0, i), raw) for i, raw in enumerate(events)]
        result = self.pipeline.process(batch, self.states)
        self.store.commit(result)
        self.states.update(result.sessions)
        return result

    def go_live(self) -> None:
        """Topics first: the web process reads them from where it finds them."""
        self._aside(lambda: asyncio.run(declare_topics(self.settings)))
        self.start()

    def commit_and_tell(self, *events: bytes) -> None:
        """As a worker does: into the database, then to the topics."""
        result = self.commit(*events)
        self._aside(lambda: self.publish(result))

    def tell(self, messages: list[SessionScore]) -> None:
        """To the topics only."""
        self._aside(lambda: asyncio.run(self._tell(messages)))

    async def _tell(self, messages: list[SessionScore]) -> None:
        producer = AIOKafkaProducer(**client_options(self.settings), linger_ms=5)
        await producer.start()
        try:
            for message in messages:
                key = message.session_id.encode()
                topic = self.settings.session_score_topic
                await producer.send(topic, scores.encode(message), key=key)
        finally:
            await producer.stop()  # sends what waits

    def break_off(self) -> None:
        """The web process dies at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def hold(self) -> None:
        """The web process stands still; its connections stay open."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """It moves again."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def now(self) -> datetime:
        """Of this machine."""
        return datetime.now(UTC)

    def _aside(self, work: Callable[[], None]) -> None:
        """In another thread: Playwright holds the event loop of this one."""
        with ThreadPoolExecutor(1) as other:
            other.submit(work).result()

    def play(
        self,
        sample: str,
        session: str,
        *,
        ago: timedelta = timedelta(minutes=20),
        until: int | None = None,
        **changes: Any,
    ) -> list[bytes]:
        """Commit a sample that began so long ago, up to the turn ``until``; returns what is left.

        The session stays open unless all of it is played.
        """
        events = sample_turns(sample, session, datetime.now(UTC) - ago, **changes)
        place = len(events) if until is None else until + 1
        self.commit(*events[:place])
        return events[place:]


def sample_turns(sample: str, session: str, start: datetime, **changes: Any) -> list[bytes]:
    """The events of a shipped sample under another session id."""
    path = next(Path(SAMPLE_FOLDER).glob(f"{sample}*.jsonl"))
    found = []
    for event in sample_events(path, session, start, 1.0):
        decoded: Event = decode(event.value)
        turn = msgspec.json.decode(event.value)
        if turn["type"] == "turn":
            turn["speaker_id"] = changes.get(turn["role"], f"{sample}/{turn['role']}")
            turn |= {name: value for name, value in changes.items() if name in ("team", "domain")}
        assert decoded.session_id == session
        found.append(json.dumps(turn).encode())
    return found


def turn(session: str, seq: int, text: str, **changes: Any) -> bytes:
    """One turn; the client speaks at even places."""
    role = "counsellor" if seq % 2 else "client"
    body = {
        "type": "turn",
        "session_id": session,
        "seq": seq,
        "speaker_id": f"{session}/{role}",
        "role": role,
        "text": text,
        "occurred_at": datetime.now(UTC).isoformat(),
        "domain": "counselling",
        "team": "north",
        "consent": True,
    }
    return json.dumps({**body, **changes}, ensure_ascii=False).encode()
