"""A web process with sessions scored by the real pipeline and the shipped bundle."""

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
from stream_app.contracts import scores
from stream_app.contracts.events import Event, decode
from stream_app.contracts.scores import SessionScore
from stream_app.core.pipeline.pipeline import Pipeline, Source, receive
from stream_app.core.session.batch import BatchResult
from stream_app.inference.scorer import OnnxScorer
from stream_app.recordings.event_files import SAMPLE_FOLDER, sample_events
from stream_app.settings import Settings
from stream_app.store.accounts.people import People
from stream_app.work.passwords import hash_password
from stream_app.worker.kafka.topics import client_options, declare_topics
from tests.web.server import Web

PASSWORD = "long enough to pass"


@cache
def scorer() -> OnnxScorer:
    return bootstrap.scorer(Settings())


@cache
def _hash() -> str:
    return hash_password(PASSWORD)


class ScoredWeb(Web):
    """A web process with its own database; ``sue`` sees all teams, ``nora`` only north."""

    def __post_init__(self) -> None:
        super().__post_init__()
        manifest = msgspec.to_builtins(scorer().bundle.manifest)
        self.store.prepare(scorer().bundle_id, scorer().bundle.digest, manifest, redact=True)
        self.signed_in: dict[str | None, Any] = {}
        self.pipeline: Pipeline = bootstrap.pipeline(self.settings, scorer())
        for person in ("sue", "nora", "cleo", "ana", "ada"):
            People(self.store).set_password(person, _hash())

    def commit(self, *events: bytes) -> BatchResult:
        """Score events and commit the result to the database."""
        batch = [receive(Source("t", 0, i), raw) for i, raw in enumerate(events)]
        result = self.pipeline.process(batch, self.states)
        self.store.commit(result)
        self.states.update(result.sessions)
        return result

    def start_live(self) -> None:
        """Create the topics, then start: the process reads only new records."""
        self._in_thread(lambda: asyncio.run(declare_topics(self.settings)))
        self.start()

    def commit_and_publish(self, *events: bytes) -> None:
        """Commit, then publish, as a worker does."""
        result = self.commit(*events)
        self._in_thread(lambda: self.publish(result))

    def publish_scores(self, messages: list[SessionScore]) -> None:
        """Publish session scores without committing them."""
        self._in_thread(lambda: asyncio.run(self._publish_scores(messages)))

    async def _publish_scores(self, messages: list[SessionScore]) -> None:
        producer = AIOKafkaProducer(**client_options(self.settings), linger_ms=5)
        await producer.start()
        try:
            for message in messages:
                key = message.session_id.encode()
                topic = self.settings.session_score_topic
                await producer.send(topic, scores.encode(message), key=key)
        finally:
            await producer.stop()  # flushes

    def kill(self) -> None:
        """Kill the web process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Suspend the web process; its connections stay open."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume the web process."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def now(self) -> datetime:
        """The current time."""
        return datetime.now(UTC)

    def _in_thread(self, work: Callable[[], None]) -> None:
        """Run in another thread, because Playwright occupies this thread's event loop."""
        with ThreadPoolExecutor(1) as other:
            other.submit(work).result()

    def play_sample(
        self,
        sample: str,
        session: str,
        *,
        ago: timedelta = timedelta(minutes=20),
        until: int | None = None,
        **changes: Any,
    ) -> list[bytes]:
        """Commit a sample session that began ``ago``, up to turn ``until``; return later events.

        The session stays open unless all its events are committed.
        """
        events = sample_session_events(sample, session, datetime.now(UTC) - ago, **changes)
        place = len(events) if until is None else until + 1
        self.commit(*events[:place])
        return events[place:]


def sample_session_events(
    sample: str, session: str, start: datetime, **changes: Any
) -> list[bytes]:
    """Events of a shipped sample session, with another session id."""
    path = next(Path(SAMPLE_FOLDER).glob(f"{sample}*.jsonl"))
    found = []
    for event in sample_events(path, session, start, 1.0):
        decoded: Event = decode(event.value)
        turn = msgspec.json.decode(event.value)
        if turn["type"] == "turn":
            turn["speaker_id"] = changes.get(turn["role"], f"{session}/{turn['role']}")
            turn |= {name: value for name, value in changes.items() if name in ("team", "domain")}
        assert decoded.session_id == session
        found.append(json.dumps(turn).encode())
    return found


def turn(session: str, seq: int, text: str, **changes: Any) -> bytes:
    """One turn; even seqs are the client's. The first one states domain and team."""
    role = "counsellor" if seq % 2 else "client"
    body = {
        "type": "turn",
        "session_id": session,
        "seq": seq,
        "speaker_id": f"{session}/{role}",
        "role": role,
        "text": text,
        "occurred_at": datetime.now(UTC).isoformat(),
        "consent": True,
    }
    if seq == 0:
        body |= {"domain": "counselling", "team": "north"}
    return json.dumps({**body, **changes}, ensure_ascii=False).encode()
