"""Sends turns on a schedule from a separate process: ``Job`` in, ``Sent`` out.

A turn's ``occurred_at`` is its intended send time, to the microsecond.
"""

import asyncio
import subprocess
import sys
import time
from typing import Final

import msgspec
import uvloop
from aiokafka import AIOKafkaProducer
from msgspec import Struct

from benchmarks.load import processes, workload
from benchmarks.load.workload import Turn

LEAD: Final = 0.3
"""Seconds from the end of the preparation to the first turn."""
ENCODING: Final = 5e-5
"""Seconds allowed for preparing each turn, a generous estimate."""


class Job(Struct, frozen=True):
    """The turns to send. ``at``: seconds from the start, one for each turn; empty: all at once.

    Sessions are assigned to partitions round-robin by number, as evenly as hashing would assign
    many more sessions.
    """

    brokers: str
    topic: str
    partitions: int
    run: str
    turns: list[Turn]
    at: list[float] = []
    first_seq: int = 0


class Sent(Struct, frozen=True):
    """``start``: earliest intended send time, seconds since 1970.

    ``late``: 99th percentile of the sender's delay in milliseconds.
    """

    start: float
    turns: int
    late: float


def send(job: Job, patience: float) -> Sent:
    """Send from a child process and wait until it ends."""
    done = subprocess.run(  # no shell
        [sys.executable, "-m", "benchmarks.load.generator"],
        input=msgspec.json.encode(job),
        stdout=subprocess.PIPE,
        cwd=processes.REPOSITORY,
        timeout=patience,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=Sent)


async def produce(job: Job) -> Sent:
    """Send in this process."""
    # without a linger, as Rapport's gateway
    client = AIOKafkaProducer(bootstrap_servers=job.brokers, acks="all", linger_ms=0)
    await client.start()
    late: list[float] = []
    try:
        planned = job.at or [0.0] * len(job.turns)
        start = time.time() + LEAD + ENCODING * len(job.turns)
        ready = [
            (turn, start + after, workload.event(turn, job.run, start + after, job.first_seq))
            for turn, after in zip(job.turns, planned, strict=True)
        ]
        for turn, due, value in ready:
            pause = due - time.time()
            if pause > 0:
                await asyncio.sleep(pause)
            late.append(time.time() - due)
            key = workload.session_name(job.run, turn.session).encode()
            partition = turn.session % job.partitions
            await client.send(job.topic, value, key, partition, timestamp_ms=int(due * 1000))
        await client.flush()
    finally:
        await client.stop()
    late_p99 = sorted(late)[int(0.99 * (len(late) - 1))] * 1000.0
    return Sent(start, len(ready), round(late_p99, 2))


def main() -> None:
    """Read a job from standard input, write the result to standard output."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    sent = uvloop.run(produce(job))
    sys.stdout.buffer.write(msgspec.json.encode(sent))


if __name__ == "__main__":
    main()
