"""A hand-written consumer: poll, score, write to SQLite in one transaction, commit offsets."""

import asyncio
import sqlite3
from collections.abc import Callable

from aiokafka import AIOKafkaConsumer

from benchmarks.consumers.job import INSERT, SCHEMA, Job, Row
from benchmarks.load.commits import CommitWriter
from stream_app.contracts.events import Turn, decode

Score = Callable[[list[Turn]], list[Row]]

POLL = 256
POLL_MS = 20


def run(job: Job, score: Score, model_cpu: Callable[[], float], poll: int = POLL) -> None:
    """Consume until a signal arrives."""
    asyncio.run(_consume(job, score, model_cpu, poll))


async def _consume(job: Job, score: Score, model_cpu: Callable[[], float], poll: int) -> None:
    database = sqlite3.connect(job.database)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=NORMAL")
    database.execute(SCHEMA)
    commits = CommitWriter(job.commits)
    consumer = AIOKafkaConsumer(
        job.topic,
        bootstrap_servers=job.brokers,
        group_id=job.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
        session_timeout_ms=int(job.session_timeout * 1000),
        heartbeat_interval_ms=int(job.session_timeout * 250),
        max_poll_interval_ms=600_000,
    )
    await consumer.start()
    try:
        while True:
            polled = await consumer.getmany(timeout_ms=POLL_MS, max_records=poll)
            values = [record.value for records in polled.values() for record in records]
            if not values:
                continue
            turns = [event for event in map(decode, values) if isinstance(event, Turn)]
            rows = score(turns)
            with database:
                database.executemany(INSERT, rows)
            commits.write([(t.session_id, t.occurred_at.timestamp()) for t in turns], model_cpu())
            await consumer.commit()
    finally:
        await consumer.stop()
