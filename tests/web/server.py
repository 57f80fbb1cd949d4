"""Runs the web application as a separate process, with a database filled by real batches."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from aiokafka import AIOKafkaProducer
from pydantic import SecretStr

from stream_app.analytics.views import schema as analytics
from stream_app.contracts import scores
from stream_app.core.session.batch import BatchResult
from stream_app.processes.child_processes import environment
from stream_app.settings import Settings
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.stream.repository import Store
from stream_app.worker.kafka.broker import free_port
from stream_app.worker.kafka.topics import client_options
from tests.store import batches, databases
from tests.store.databases import open_store

PATIENCE = 120.0
PERSONS = (
    Person("sue", PersonRole.SUPERVISOR, all_teams=True),
    Person("nora", PersonRole.SUPERVISOR, team="north"),
    Person("sam", PersonRole.SUPERVISOR, team="south"),
    Person("cleo", PersonRole.COUNSELLOR, speaker="cleo@example.org"),
    Person("ana", PersonRole.ANALYST),
    Person("ada", PersonRole.ADMIN),
    Person("pump", PersonRole.INGEST),
    Person("stu", PersonRole.STUDY, all_teams=True),
)


@dataclass
class Web:
    """One web process. ``broker``: host:port; by default a port on which nothing listens."""

    folder: Path
    broker: str = "127.0.0.1:1"
    changes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.port = free_port()
        url = self.changes.get("database_url")
        if url is None:
            url = SecretStr(databases.sqlite(self.folder / "rapport.db"))
        self.settings = Settings().model_copy(
            update={
                "kafka_brokers": self.broker,
                "database_url": url,
                **databases.keys(url.get_secret_value()),
                "topic_partitions": 2,
                "web_port": self.port,
                **self.changes,
            }
        )
        self.store: Store = open_store(self.settings.database_url.get_secret_value())
        batches.prepare(self.store)
        analytics.create_views(self.store)
        self.tokens = {person.name: self._account(person) for person in PERSONS}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, name: str | None = "sue", **options: Any) -> httpx.Client:
        """A client signed in as this person."""
        headers = {"Authorization": f"Bearer {self.tokens[name]}"} if name else {}
        return self.anonymous_client(path="/api/v1", headers=headers, **options)

    def anonymous_client(self, path: str = "", **options: Any) -> httpx.Client:
        """A client without a token."""
        return httpx.Client(base_url=self.url + path, timeout=20, **options)

    def commit(self, *events: bytes) -> BatchResult:
        """Process events with the core and commit the result to the database."""
        result = batches.process(list(events), self.states)
        self.store.commit(result)
        self.states.update(result.sessions)
        return result

    @property
    def states(self) -> dict[str, Any]:
        return self.__dict__.setdefault("_states", {})

    def publish(self, result: BatchResult) -> None:
        """Publish scores and alerts to the topics, as a worker does."""
        asyncio.run(self._publish(result))

    async def _publish(self, result: BatchResult) -> None:
        producer = AIOKafkaProducer(**client_options(self.settings))
        await producer.start()
        try:
            for topic, messages in (
                (self.settings.turn_score_topic, result.turn_scores),
                (self.settings.session_score_topic, result.session_scores),
                (self.settings.alert_topic, result.alerts),
            ):
                for message in messages:
                    key = message.session_id.encode()
                    await producer.send(topic, scores.encode(message), key=key)
            await producer.flush()
        finally:
            await producer.stop()

    def start(self) -> None:
        with (self.folder / "web.log").open("ab") as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "stream_app.cli", "web"],
                env={**os.environ, **environment(self.settings)},
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self._process.kill()
            self._process.wait()
            self._process = None
            raise

    def _wait_until_ready(self, process: "subprocess.Popen[bytes]") -> None:
        give_up = time.monotonic() + PATIENCE
        while True:
            try:
                httpx.get(f"{self.url}/sign-in")
            except httpx.TransportError:
                assert process.poll() is None, self.log()
                assert time.monotonic() < give_up, self.log()
                time.sleep(0.1)
            else:
                return

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
                raise AssertionError("the web process did not stop:\n" + self.log()) from None
            finally:
                self._process = None
        self.store.close()

    def log(self) -> str:
        return (self.folder / "web.log").read_text("utf-8", "replace")[-3000:]

    def _account(self, person: Person) -> str:
        people = People(self.store)
        speaker = self.store.privacy.pseudonym(person.speaker) if person.speaker else None
        if people.find(person.name) is None:
            people.add(replace(person, speaker=speaker), None)
            people.finish_tour(person.name)
        return people.create_token(person.name, secrets.token_hex(4))


@contextmanager
def serving(folder: Path, broker: str = "127.0.0.1:1", **changes: Any) -> Iterator[Web]:
    """Run a web process inside the ``with`` block."""
    web = Web(folder, broker, changes)
    try:
        web.start()
        yield web
    finally:
        web.stop()
