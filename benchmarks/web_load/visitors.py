"""Opens pages on schedule and keeps streams open, in a process of its own.

Standard input has a ``Job``. Once all streams are open, the first line of standard output says when
the clock starts, in seconds since 1970; then comes what was ``Seen``.

The time of a request counts from when it was due, including any delay of this process (no
coordinated omission), to the last byte of the answer.
"""

import asyncio
import math
import re
import ssl
import sys
import time
from collections import Counter
from typing import Final

import httpx
import msgspec
import psutil
import uvloop
from msgspec import Struct

from benchmarks.web_load.visits import Stream, Visit

LATE: Final = 30.0
"""Seconds after which a request counts as failed."""
OPENING: Final = 30.0
"""Seconds that the streams have to open before the clock starts anyway."""
LEAD: Final = 1.0
"""Seconds from then to the start."""
_TURN: Final = re.compile(rb'"session_id":"([^"]+)","seq":(\d+),"stage":"(\w+)"')


class Job(Struct, frozen=True):
    """Times of ``visits`` count from the start."""

    host: str
    port: int
    certificate: str
    seconds: float
    visits: list[Visit]
    streams: list[Stream]


class Request(Struct, frozen=True):
    """``seconds``: from when it was due; ``status``: 0 if there was no answer."""

    kind: str
    seconds: float
    status: int
    size: int


class Arrival(Struct, frozen=True):
    """A turn's score on a stream; ``at``: seconds since 1970."""

    session: str
    seq: int
    stage: str
    at: float


class Seen(Struct, frozen=True):
    """``late``: 99th percentile of this process's delay, seconds; ``events``: of all streams."""

    requests: list[Request]
    arrivals: list[Arrival]
    events: int
    resyncs: int
    opened: int
    broken: int
    late: float
    cpu: float


class Streams:
    """Counts what the open streams have received."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.counts: Counter[str] = Counter()
        self.began = math.inf

    def receive(self, chunk: bytes) -> None:
        """Count the events of a chunk, and note its turns."""
        now = time.time()
        if now < self.began:
            return
        self.counts["events"] += chunk.count(b"event: ")
        self.counts["resyncs"] += chunk.count(b"event: resync")
        for found in _TURN.finditer(chunk):
            session, seq, stage = found.groups()
            self.arrivals.append(Arrival(session.decode(), int(seq), stage.decode(), now))


async def watch(job: Job, stream: Stream, tls: ssl.SSLContext, seen: Streams) -> None:
    """Keep one stream open until this is cancelled; reconnect as a browser does."""
    position = b""
    while True:
        try:
            reader, writer = await asyncio.open_connection(job.host, job.port, ssl=tls)
            last = b"Last-Event-ID: " + position + b"\r\n" if position else b""
            writer.write(
                f"GET {stream.path} HTTP/1.1\r\nHost: {job.host}:{job.port}\r\n"
                f"Cookie: {stream.cookie}\r\nSec-Fetch-Mode: cors\r\n".encode()
                + last
                + b"\r\n"
            )
            head = await reader.readuntil(b"\r\n\r\n")
            seen.counts["opened" if b" 200 " in head[:16] else "refused"] += 1
            rest = b""
            while chunk := await reader.read(65536):
                body = rest + chunk
                cut = body.rfind(b"\n\r\n") + 3 if b"\n\r\n" in body else 0
                rest, body = body[cut:], body[:cut]
                seen.receive(body)
                if (at := body.rfind(b"id: ")) >= 0:
                    position = body[at + 4 : body.find(b"\r", at)]
        except (OSError, asyncio.IncompleteReadError):
            pass
        seen.counts["broken"] += 1
        await asyncio.sleep(1.0)


async def visit(client: httpx.AsyncClient, one: Visit, due: float) -> Request:
    """Open one page."""
    headers = {"Cookie": one.cookie, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}
    try:
        answer = await client.get(one.path, headers=headers)
    except httpx.TransportError:
        return Request(one.kind, time.time() - due, 0, 0)
    return Request(one.kind, time.time() - due, answer.status_code, len(answer.content))


async def work(job: Job) -> Seen:
    """Open the streams, then the pages."""
    tls = ssl.create_default_context(cafile=job.certificate)
    seen = Streams()
    process = psutil.Process()
    watching = [asyncio.create_task(watch(job, each, tls, seen)) for each in job.streams]
    give_up = time.monotonic() + OPENING
    while seen.counts["opened"] < len(job.streams) and time.monotonic() < give_up:
        await asyncio.sleep(0.05)
    seen.began = start = time.time() + LEAD
    sys.stdout.buffer.write(f"{start}\n".encode())
    sys.stdout.buffer.flush()
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)
    late: list[float] = [0.0]
    base = f"https://{job.host}:{job.port}"
    async with httpx.AsyncClient(
        base_url=base, verify=tls, limits=limits, timeout=LATE, headers={"Accept-Encoding": "gzip"}
    ) as client:
        asking = []
        before = process.cpu_times()
        for one in job.visits:
            due = start + one.at
            await asyncio.sleep(max(0.0, due - time.time()))
            late.append(time.time() - due)
            asking.append(asyncio.create_task(visit(client, one, due)))
        requests = await asyncio.gather(*asking)
        await asyncio.sleep(max(0.0, start + job.seconds - time.time()))
        after = process.cpu_times()
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    counts = seen.counts
    return Seen(
        list(requests),
        seen.arrivals,
        counts["events"],
        counts["resyncs"],
        counts["opened"],
        counts["broken"] + counts["refused"],
        sorted(late)[int(0.99 * (len(late) - 1))],
        after.user + after.system - before.user - before.system,
    )


def main() -> None:
    """Read a job from standard input, write what was seen to standard output."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(work(job))))


if __name__ == "__main__":
    main()
