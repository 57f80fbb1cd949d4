"""Broker and databases of a run; every deployment has its own topics, group and tables.

By default the embedded broker and SQLite; Apache Kafka and PostgreSQL as in the tests. The embedded
broker takes longer for a request the more its log holds, so that each deployment has a new one.
"""

import asyncio
import itertools
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from benchmarks.errors import Unavailable
from benchmarks.load.keys import keys
from servers import kafka, postgres
from stream_app.demo import up
from stream_app.settings import Settings
from stream_app.worker.kafka import broker
from stream_app.worker.kafka.topics import declare_topics

PARTITIONS: Final = 12
POSTGRES: Final = {"fsync": "on", "shared_buffers": "256MB", "synchronous_commit": "on"}
"""Unlike the tests' server, this one waits for its disk."""


class Testbed:
    """The servers of a run; ``folder`` holds databases and logs."""

    def __init__(self, folder: Path, bundle: Path, kafka: str | None = None) -> None:
        """``kafka``: address of a running Apache Kafka; None: the embedded broker."""
        self.folder = folder
        self.bundle = bundle
        self.broker_name = "Apache Kafka" if kafka else "embedded"
        self._kafka = kafka
        self._embedded = ExitStack()
        self._numbers = itertools.count(1)
        self._server: postgres.Server | None = None

    def server(self) -> postgres.Server:
        """The PostgreSQL server, started at first use.

        Raises:
            Unavailable: it is not installed.
        """
        if self._server is None:
            binaries = postgres.binaries()
            if binaries is None:
                raise Unavailable("PostgreSQL's server (initdb, postgres) is not installed")
            self._server = postgres.Server(binaries, POSTGRES)
        return self._server

    def deployment(self, database: str = "sqlite", **changes: Any) -> Settings:
        """Create schema and topics of a new, isolated deployment; return its settings.

        The deployment before it loses its broker, unless that is Apache Kafka.

        Raises:
            Unavailable: ``postgresql`` is given and its server is not installed.
        """
        settings = self.topics(database, **changes)
        up.prepare(settings)
        return settings

    def topics(self, database: str = "none", **changes: Any) -> Settings:
        """As ``deployment``, with topics only, for consumers with their own tables."""
        number = next(self._numbers)
        name = f"bench-{number}"
        url = f"sqlite:///{self.folder}/{name}.db"
        if database == "postgresql":
            url = self.server().new_database()
        settings = Settings().model_copy(
            update={
                **self._broker(),
                "kafka_group": name,
                "topic_prefix": name,
                "topic_partitions": PARTITIONS,
                "database_url": SecretStr(url),
                **keys(),
                "bundle": self.bundle,
                "log_level": "WARNING",
                **changes,
            }
        )
        if database == "none":
            asyncio.run(declare_topics(settings))
        return settings

    def _broker(self) -> dict[str, Any]:
        """Settings of the broker; a new one, if it is the embedded one."""
        if self._kafka is not None:
            return {"kafka_brokers": self._kafka}
        self._embedded.close()
        address = self._embedded.enter_context(broker.running())
        return {"kafka_brokers": address, **up.EMBEDDED_BROKER}

    def close(self) -> None:
        """Stop the servers started at first use."""
        self._embedded.close()
        if self._server is not None:
            self._server.remove()


@contextmanager
def opened(bundle: Path, on_kafka: bool) -> Iterator[Testbed]:
    """A testbed that is closed at the end of the ``with``.

    Raises:
        Unavailable: Apache Kafka is requested but cannot run here.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rapport-bench-")))
        address = None
        if on_kafka:
            try:
                address = stack.enter_context(kafka.running(folder / "kafka")).address
            except kafka.KafkaMissing as problem:
                raise Unavailable(str(problem)) from problem
        testbed = Testbed(folder, bundle, address)
        stack.callback(testbed.close)
        yield testbed
