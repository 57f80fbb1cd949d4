"""One run: traffic, faults, and the comparison with an offline run over the same log."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from pydantic import SecretStr

from servers import kafka, postgres
from stream_app.store import tables
from stream_app.worker.topics import client_options
from tests.chaos import faults, traffic
from tests.chaos.proxy import Proxy
from tests.e2e.service import Service, differences, scored_offline, stored

GROUP_SESSION_TIMEOUT = 6.0
PATIENCE = 900.0


@dataclass(frozen=True)
class Size:
    """Number of turns, workers and faults."""

    turns: int = 20_000
    sessions: int = 800
    workers: int = 2
    brokers: int = 1
    faults: int = 20
    outage: float = 30.0


@dataclass
class Report:
    """The result; `lost`, `doubled` and `different` must be 0."""

    seed: int
    turns_in: int
    rows_expected: int = 0
    rows_found: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0
    restarts_survived: int = 0
    went_back: int = 0
    """How often a worker's consumer detected skipped events and fetched them."""
    seconds: float = 0.0
    examples: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether no row is lost, duplicated or wrong."""
        return not (self.lost or self.doubled or self.different)


class Workers:
    """Supervised worker processes: one that exits is restarted."""

    def __init__(self, service: Service, least: int) -> None:
        self._service = service
        self._least = least
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[bytes]] = []
        self.restarted = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._supervise, daemon=True)
        for _ in range(least):
            self.start()
        self._thread.start()

    def start(self) -> None:
        """Start a worker."""
        with self._lock:
            self._running.append(self._service.start_worker())

    def any(self, chance: random.Random) -> subprocess.Popen[bytes] | None:
        """A random running worker."""
        with self._lock:
            alive = [worker for worker in self._running if worker.poll() is None]
        return chance.choice(alive) if alive else None

    def end(self, chance: random.Random, how: signal.Signals) -> None:
        """End a random worker; supervision starts another."""
        worker = self.any(chance)
        if worker is not None:
            worker.send_signal(how)

    def replace_all(self, **settings: object) -> None:
        """End all workers; supervision starts others with these settings."""
        self._service.settings = self._service.settings.model_copy(update=settings)
        with self._lock:
            for worker in self._running:
                worker.send_signal(signal.SIGTERM)

    def _supervise(self) -> None:
        while not self._stopped.wait(0.5):
            with self._lock:
                ended = [worker for worker in self._running if worker.poll() is not None]
                self._running = [worker for worker in self._running if worker.poll() is None]
                self.restarted += len(ended)
                missing = self._least - len(self._running)
            for _ in range(missing):
                self.start()

    def stop(self) -> None:
        """Stop the supervision; the service stops the workers."""
        self._stopped.set()
        self._thread.join()


class Chaos:
    """The service with the parts that faults affect."""

    def __init__(self, seed: int, size: Size, folder: Path) -> None:
        self.seed = seed
        self.size = size
        self.outage = size.outage
        self.restarts = 0
        self._stack = ExitStack()
        binaries = postgres.binaries()
        if binaries is None:
            raise SystemExit("error: PostgreSQL's server (initdb, postgres) is not installed")
        self.cluster = self._stack.enter_context(kafka.running(folder / "kafka", size.brokers))
        self.server = postgres.Server(binaries)
        self._stack.callback(self.server.remove)
        self.proxy = Proxy("127.0.0.1", self.server.port)
        self._stack.callback(self.proxy.close)
        self.clock = folder / "clock"
        direct = self.server.new_database()
        behind = direct.replace(f":{self.server.port}/", f":{self.proxy.port}/")
        self.service = Service(
            folder,
            kafka_brokers=self.cluster.address,
            kafka_session_timeout=GROUP_SESSION_TIMEOUT,
            topic_partitions=6,
            topic_replication=size.brokers,
            topic_prefix=f"chaos-{seed}",
            database_url=SecretStr(behind),
            batch_max=64,
        )
        self._stack.callback(self.service.close)
        self.workers = Workers(self.service, size.workers)
        self._stack.callback(self.workers.stop)

    def run(self) -> Report:
        """Send all events during the faults, wait for the workers, compare."""
        started = time.monotonic()
        log = traffic.log(self.seed, self.size.sessions, self.size.turns)
        chance = random.Random(f"chaos-{self.seed}")
        progress = Progress(len(log))
        sender = threading.Thread(target=self._send, args=(log, progress), daemon=True)
        sender.start()
        for fault in faults.plan(self.seed, self.size.faults):
            progress.wait_for(fault.at, lambda: self._stored_share(len(log)))
            print(f"{time.monotonic() - started:6.1f} s  {fault.at:4.0%}  {fault.name}", flush=True)
            faults.FAULTS[fault.name](self, chance)
        sender.join(PATIENCE)
        if progress.problem is not None or sender.is_alive():
            raise AssertionError(f"the traffic could not be sent: {progress.problem}")
        self._wait(self._drained, "the log is read to its end")
        self.workers.replace_all(idle_timeout=1.0)  # sessions without an end stay open until then
        self._wait(self._rested, "no session is open")
        self._wait(lambda: self.service.count(tables.outbox) == 0, "the outbox is empty")
        report = self._compare()
        report.restarts_survived = self.restarts + self.workers.restarted
        workers_log = (self.service.folder / "worker.log").read_text("utf-8", "replace")
        report.went_back = workers_log.count("log.gap")
        report.seconds = round(time.monotonic() - started, 1)
        return report

    def read_only(self, yes: bool) -> None:
        """Make the database refuse writes, or accept them again."""
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            connection.execute(
                f"ALTER SYSTEM SET default_transaction_read_only = {'on' if yes else 'off'}"
            )
            connection.execute("SELECT pg_reload_conf()")

    def close(self) -> None:
        """Stop everything."""
        self._stack.close()

    def _send(self, log: list[tuple[bytes, bytes]], progress: Progress) -> None:
        try:
            asyncio.run(self._produce(log, progress))
        except Exception as problem:  # noqa: BLE001  # reported by `run`
            progress.problem = problem

    async def _produce(self, log: list[tuple[bytes, bytes]], progress: Progress) -> None:
        """Produce each event once and in order, also across broker restarts."""
        producer = AIOKafkaProducer(
            **client_options(self.service.settings),
            enable_idempotence=True,
            request_timeout_ms=120_000,
            retry_backoff_ms=200,
        )
        await producer.start()
        try:
            for start in range(0, len(log), 200):
                part = log[start : start + 200]
                topic = self.service.settings.turns_topic
                sending = [await producer.send(topic, value, key=key) for key, value in part]
                await asyncio.gather(*sending)
                progress.sent += len(part)
        finally:
            await producer.stop()

    def _stored_share(self, events: int) -> float:
        try:
            return self.service.count(tables.turns) / events
        except Exception:  # noqa: BLE001  # the database may be away just now
            return 0.0

    def _drained(self) -> bool:
        try:
            return asyncio.run(self._lag()) == 0
        except KafkaError:
            return False

    async def _lag(self) -> int:
        settings = self.service.settings
        admin = AIOKafkaAdminClient(**client_options(settings))
        await admin.start()
        try:
            done = await admin.list_consumer_group_offsets(settings.kafka_group)
        finally:
            await admin.close()
        consumer = AIOKafkaConsumer(**client_options(settings))
        await consumer.start()
        try:
            parts = [
                TopicPartition(settings.turns_topic, p) for p in range(settings.topic_partitions)
            ]
            ends = await consumer.end_offsets(parts)
        finally:
            await consumer.stop()
        return sum(end - (done[tp].offset if tp in done else 0) for tp, end in ends.items())

    def _rested(self) -> bool:
        rows = self.service.rows(tables.session_scores)
        return bool(rows) and all(row["status"] != "open" for row in rows)

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            try:
                if condition():
                    return
            except Exception as problem:  # noqa: BLE001  # a part may just be starting
                print(f"waiting: {type(problem).__name__}", flush=True)
            time.sleep(0.5)
        tail = (self.service.folder / "worker.log").read_text("utf-8", "replace")[-3000:]
        raise AssertionError(f"never happened: {what}\n{tail}")

    def _compare(self) -> Report:
        settings = self.service.settings
        records = self.service.messages(settings.turns_topic)
        records.sort(key=lambda record: (record.partition, record.offset))
        values = [record.value for record in records]
        offline = scored_offline(settings, values, 256)
        places = {
            (body["session_id"], body["seq"]): f"{record.partition}:{record.offset}"
            for record in records
            if (body := _body(record.value)).get("type") == "turn" and "seq" in body
        }
        turns = set(places)
        found = stored(self.service)
        stored_turns = {(row["session_id"], row["seq"]) for row in self.service.rows(tables.turns)}
        wrong = differences(offline, found)
        lost = [line for line in wrong if line.startswith("lost:")]
        doubled = [line for line in wrong if line.startswith("not in the offline run:")]
        lost += [f"lost: turn {key} at {places[key]}" for key in turns - stored_turns]
        doubled += [f"not in the log: turn {key}" for key in stored_turns - turns]
        different = [line for line in wrong if line not in lost and line not in doubled]
        (self.service.folder / "differences.txt").write_text("\n".join(lost + doubled + different))
        return Report(
            self.seed,
            turns_in=len(values),
            rows_expected=len(offline) + len(turns),
            rows_found=len(found) + len(stored_turns),
            lost=len(lost),
            doubled=len(doubled),
            different=len(different),
            examples=[*lost[:3], *doubled[:3], *different[:3]],
        )


class Progress:
    """The number of sent events."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.sent = 0
        self.problem: Exception | None = None

    def wait_for(self, share: float, stored_share: Callable[[], float]) -> None:
        """Wait until a share is sent and the workers are at most a given number behind."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up and self.problem is None:
            if self.sent >= share * self.total and stored_share() >= share * 0.8:
                return
            time.sleep(0.1)


def _body(value: bytes) -> dict[str, Any]:
    try:
        body = json.loads(value)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def once(seed: int, size: Size, logs: Path | None = None) -> Report:
    """Run in a temporary folder; keep the workers' log in ``logs``."""
    with tempfile.TemporaryDirectory(prefix="rapport-chaos-") as folder:
        chaos = Chaos(seed, size, Path(folder))
        try:
            return chaos.run()
        finally:
            chaos.close()
            if logs is not None:
                logs.mkdir(parents=True, exist_ok=True)
                for name in ("worker.log", "differences.txt"):
                    if (Path(folder) / name).exists():
                        shutil.copy(Path(folder) / name, logs / f"seed-{seed}-{name}")


def line(report: Report) -> str:
    """Format the figures of one run as a line."""
    values = asdict(report)
    values.pop("examples")
    return "  ".join(f"{name} {value}" for name, value in values.items())
