"""One run: traffic, faults, and the comparison with a calculation over the same log."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from pydantic import SecretStr

from servers import kafka, postgres
from stream_app.contracts.scores import AlertState
from stream_app.settings import DEFAULT_RULES
from stream_app.store.database import tables
from stream_app.store.stream import log_positions
from stream_app.worker.kafka.topics import client_options
from tests import topic_log
from tests.chaos import batches, clocks, extremes, faults, miskeyed, traffic, wrong_clock
from tests.chaos.comparison import compare
from tests.chaos.disk import small_disk
from tests.chaos.proxy import Proxy
from tests.chaos.sender import Sender, send
from tests.chaos.truth import calculate
from tests.chaos.workers import Workers
from tests.chaos.wrong_clock import WrongClock
from tests.e2e.service import Service

GROUP_SESSION_TIMEOUT = 6.0
PATIENCE = 900.0
FULL_WITHIN = 30.0
PARTITIONS = 6
AHEAD = 4 * PARTITIONS
"""Sessions two hours ahead beside the silent ones; enough for every partition to have some."""


@dataclass(frozen=True)
class Size:
    """Number of turns, workers and faults.

    ``always``: faults that must be among them. ``extremes``: sessions with an extreme event.
    ``odd``: sessions of each wrong clock, and with wrong keys.
    """

    turns: int = 20_000
    sessions: int = 800
    workers: int = 2
    brokers: int = 1
    faults: int = 20
    outage: float = 30.0
    always: tuple[str, ...] = ()
    extremes: int = 250
    odd: int = 8


@dataclass
class Report:
    """The result; `lost`, `doubled` and `different` must be 0.

    ``faults``: how often each happened, those of events included.
    """

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
    reread: int = 0
    """Partitions that workers read again because a restored database lacked their events."""
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    skipped: list[str] = field(default_factory=list)
    """Faults that this machine does not allow."""
    examples: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether no row is lost, duplicated or wrong."""
        return not (self.lost or self.doubled or self.different)


class Chaos:
    """The service with the parts that faults affect."""

    def __init__(self, seed: int, size: Size, folder: Path) -> None:
        self.seed = seed
        self.size = size
        self.outage = size.outage
        self.restarts = 0
        self.erased: set[str] = set()
        self.skipped: Counter[str] = Counter()
        self.problems: list[str] = []
        self._earlier_records: list[Any] = []
        self._started = time.monotonic()
        self._began = datetime.now(UTC)
        self._stack = ExitStack()
        binaries = postgres.binaries()
        if binaries is None:
            raise SystemExit("error: PostgreSQL's server (initdb, postgres) is not installed")
        self.cluster = self._stack.enter_context(kafka.running(folder / "kafka", size.brokers))
        self.disk = small_disk()
        if self.disk is not None:
            self._stack.callback(self.disk.remove)
        self.server = postgres.Server(binaries, parent=self.disk and self.disk.folder)
        self._stack.callback(self.server.remove)
        self.proxy = Proxy("127.0.0.1", self.server.port)
        self._stack.callback(self.proxy.close)
        self.clock = folder / "clock"
        self.odd_clock = folder / "odd-clock"
        self.database = self.server.new_database()
        behind = self.database.replace(f":{self.server.port}/", f":{self.proxy.port}/")
        rules = DEFAULT_RULES.read_text("utf-8").replace("for: 90s", f"for: {clocks.SILENCE}s")
        (folder / "rules.yaml").write_text(rules, "utf-8")
        self.service = Service(
            folder,
            kafka_brokers=self.cluster.address,
            kafka_session_timeout=GROUP_SESSION_TIMEOUT,
            topic_partitions=PARTITIONS,
            topic_replication=size.brokers,
            topic_prefix=f"chaos-{seed}",
            database_url=SecretStr(behind),
            batch_max=64,
            rules=folder / "rules.yaml",
            clock_tolerance=clocks.TOLERANCE.total_seconds(),
        )
        self._stack.callback(self.service.close)
        self.workers = Workers(self.service, size.workers)
        self._stack.callback(self.workers.stop)
        self.wrong = WrongClock(self.service)
        self._stack.callback(self.wrong.stop)

    def run(self) -> Report:
        """Send all events during the faults, wait for the workers, compare."""
        seed, size = self.seed, self.size
        now = datetime.now(UTC)
        odd = [
            *clocks.sessions(seed, size.odd, now),
            *extremes.sessions(seed, size.extremes),
            *miskeyed.sessions(seed, size.odd),
        ]
        log = traffic.log(seed, size.sessions, size.turns, odd)
        chance = random.Random(f"chaos-{seed}")
        planned = faults.plan(seed, size.faults, size.always)
        holds = [fault.at for fault in planned if fault.name in faults.HOLDING]
        self.sender = Sender(self.service.settings, log, holds, seed)
        happened = Counter(record.fault for record in log if record.fault)
        for fault in planned:
            self.sender.wait_for(fault.at, lambda: self._stored_share(len(log)))
            self._print(f"{fault.at:4.0%}  {fault.name}")
            faults.FAULTS[fault.name](self, chance)
            happened[fault.name] += 1
        happened -= self.skipped
        self.sender.finish()
        happened += self.sender.faults
        self.wait_until_read()
        self.check_idle()
        happened["clock 2 h ahead"] += self._keep_silence()
        self.check_idle()
        self.wrong.stop()
        self.workers.replace_all(idle_timeout=1.0)  # sessions without an end stay open until then
        self._wait(self._rested, "no session is open")
        self.wait_until_read()
        self._wait(lambda: self.service.count(tables.outbox) == 0, "the outbox is empty")
        self.workers.suspend()
        self._print("comparing")
        return self._report(happened)

    def skip(self, why: str) -> None:
        """Count a fault as not happened; ``why`` begins with its name."""
        self._print(f"skipped: {why}")
        self.skipped[why.partition(" ")[0]] += 1

    def wait_until_refused(self) -> None:
        """Wait until the server refuses to store something because its disk is full.

        Raises:
            AssertionError: it never does.
        """
        give_up = time.monotonic() + FULL_WITHIN
        while time.monotonic() < give_up:
            try:
                with psycopg.connect(self.server.url(), autocommit=True) as connection:
                    connection.execute(
                        "CREATE TABLE probe AS SELECT repeat(md5(i::text), 60) "
                        "FROM generate_series(1, 5000) AS i"
                    )
                    connection.execute("DROP TABLE probe")
            except (psycopg.errors.DiskFull, psycopg.OperationalError) as problem:
                self._print(f"the database says: {str(problem).splitlines()[0]}")
                return
        raise AssertionError("the disk was full, but everything was stored")

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

    def stored_turns(self) -> int:
        """Number of stored turns; 0 if the database does not answer."""
        try:
            return self.service.count(tables.turns)
        except Exception:  # noqa: BLE001  # the database may be away just now
            return 0

    def wait_until_read(self) -> None:
        """Wait until brokers and database have every record as read."""
        self._wait(self._drained, "the log is read to its end")

    def keep_records(self) -> None:
        """Keep the records of the topic for the comparison, because it will be deleted."""
        self._earlier_records += self._records()

    def check_idle(self) -> None:
        """Report sessions that are idle although no such time without events has passed."""
        if time.monotonic() - self._started < self.service.settings.idle_timeout:
            rows = self.service.rows(tables.session_scores)
            idle = [row["session_id"] for row in rows if row["status"] == "idle"]
            self.problems += [f"idle too early: {name}" for name in idle]

    def _keep_silence(self) -> int:
        """Send silent sessions beside producers two hours ahead; wait for their alerts."""
        now = datetime.now(UTC)
        ahead = clocks.ahead(self.seed, AHEAD, now)
        log = [*clocks.silent(self.seed, PARTITIONS, now), *ahead]
        planned = batches.planned(log, random.Random(f"silence-{self.seed}"))
        asyncio.run(send(self.service.settings, planned))
        self._print("silence beside clocks that are ahead")
        self._wait(self._alarmed, "an alert about the silence of every silent session")
        return len(ahead)

    def wait_until_purge_refused(self) -> None:
        """Wait until the worker with the wrong clock has tried to purge, and refused."""
        before = self.wrong.refusals()

        def refused() -> bool:
            self.wrong.make_purge_due()
            return self.wrong.refusals() > before

        self._wait(refused, "a worker whose clock is wrong refuses to purge")

    def _alarmed(self) -> bool:
        found = {
            row["session_id"]
            for row in self.service.rows(tables.alerts)
            if clocks.is_silent(row["session_id"])
            and row["rule"] == clocks.SILENCE_RULE
            and row["state"] == AlertState.FIRING.value
        }
        return len(found) == PARTITIONS

    def _report(self, happened: Counter[str]) -> Report:
        records = [*self._earlier_records, *self._records()]
        store, settings = self.service.store, self.service.settings
        store.load_privacy(settings.redact)
        truth = calculate(settings, records, store.privacy, self.erased)
        result = compare(self.service, truth, self.erased)
        result.add(self.problems)
        result.add(wrong_clock.differences(store, self._began, datetime.now(UTC)))
        everything = [*result.lost, *result.doubled, *result.different]
        (self.service.folder / "differences.txt").write_text("\n".join(everything), "utf-8")
        log = (self.service.folder / "worker.log").read_text("utf-8", "replace")
        if "log.deleted" in log:
            result.different.append("events count as deleted by the topic's retention")
        return Report(
            self.seed,
            turns_in=len(records),
            rows_expected=result.expected,
            rows_found=result.found,
            lost=len(result.lost),
            doubled=len(result.doubled),
            different=len(result.different),
            restarts_survived=self.restarts + self.workers.restarted,
            went_back=log.count("log.gap"),
            reread=log.count("log.back"),
            seconds=round(time.monotonic() - self._started, 1),
            faults=happened,
            skipped=sorted(self.skipped),
            examples=[*result.lost[:3], *result.doubled[:3], *result.different[:3]],
        )

    def _records(self) -> list[Any]:
        """The committed records of the topic by partition, in order.

        Raises:
            AssertionError: a record of an aborted transaction is among them.
        """
        records = topic_log.records(self.service.settings, self.service.settings.turns_topic)
        if any(batches.MARK.encode() in (record.value or b"") for record in records):
            raise AssertionError("the comparison reads events of aborted transactions")
        return sorted(records, key=lambda record: (record.partition, record.offset))

    def _stored_share(self, events: int) -> float:
        return self.stored_turns() / events

    def _drained(self) -> bool:
        try:
            ends, committed = asyncio.run(self.offsets())
        except KafkaError:
            return False
        settings = self.service.settings
        stored = log_positions.stored_offsets(
            self.service.store, settings.kafka_group, [settings.turns_topic]
        )
        return all(
            end == committed.get(tp) == stored.get((tp.topic, tp.partition))
            for tp, end in ends.items()
            if end
        )

    async def offsets(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """The topic's end offsets, and those that the group has committed."""
        settings = self.service.settings
        admin = AIOKafkaAdminClient(**client_options(settings))
        await admin.start()
        try:
            done = await admin.list_consumer_group_offsets(settings.kafka_group)
        finally:
            await admin.close()
        consumer = AIOKafkaConsumer(**client_options(settings), isolation_level="read_committed")
        await consumer.start()
        try:
            parts = [TopicPartition(settings.turns_topic, p) for p in range(PARTITIONS)]
            ends = await consumer.end_offsets(parts)
        finally:
            await consumer.stop()
        return ends, {tp: found.offset for tp, found in done.items()}

    def _rested(self) -> bool:
        rows = self.service.rows(tables.session_scores)
        return bool(rows) and all(row["status"] != "open" for row in rows)

    def _print(self, what: str) -> None:
        print(f"{time.monotonic() - self._started:6.1f} s  {what}", flush=True)

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
                for name in ("worker.log", "wrong-clock.log", "differences.txt"):
                    if (Path(folder) / name).exists():
                        shutil.copy(Path(folder) / name, logs / f"seed-{seed}-{name}")


def line(report: Report) -> str:
    """Format the figures of one run as a line, and the number of each fault as another."""
    figures = "  ".join(
        f"{part.name} {getattr(report, part.name)}"
        for part in fields(report)
        if part.name not in ("faults", "skipped", "examples")
    )
    counts = ", ".join(f"{name} {count}" for name, count in sorted(report.faults.items()))
    skipped = f"\n    skipped: {', '.join(report.skipped)}" if report.skipped else ""
    return f"{figures}\n    faults: {counts}{skipped}"
