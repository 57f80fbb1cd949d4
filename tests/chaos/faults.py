"""Faults and their times: a plan that depends only on the seed."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.store.database import tables
from stream_app.worker.kafka.topics import client_options, declare_topics
from stream_app.worker.upkeep.requested_erasure import Erasure
from tests.chaos import wrong_clock

if TYPE_CHECKING:
    from tests.chaos.run import Chaos

JOINED_AFTER = 10.0
"""Seconds for a worker to start and join its group."""
LONGEST_WAIT = 60.0
"""Seconds for workers to store something after a backup."""
ERASED_AT_ONCE = 3
PAUSE = 8.0
"""Seconds for which a zombie is suspended; longer than its session timeout."""


@dataclass(frozen=True)
class Fault:
    """A fault that happens when this share of the log has been sent."""

    at: float
    name: str


def plan(seed: int, count: int, always: Sequence[str] = ()) -> list[Fault]:
    """Plan this many faults: those of ``always``, then all kinds about equally often.

    Databases are restored before a topic is recreated: a backup from before that moment has
    positions in the old topic.
    """
    chance = random.Random(f"faults-{seed}")
    order = list(always)
    order += chance.sample(
        [name for name in FAULTS if name not in always], len(FAULTS) - len(order)
    )
    while len(order) < count:
        order += chance.sample(list(FAULTS), len(FAULTS))
    order = order[:count]
    chance.shuffle(order)
    places = [place for place, name in enumerate(order) if name in HOLDING]
    names = sorted((order[place] for place in places), key=lambda name: name in RECREATING)
    for place, name in zip(places, names, strict=True):
        order[place] = name
    moments = sorted(chance.uniform(0.03, 0.97) for _ in range(count))
    return [Fault(at, name) for at, name in zip(moments, order, strict=True)]


def kill_worker(chaos: Chaos, chance: random.Random) -> None:
    """Kill a worker by SIGKILL."""
    chaos.workers.end(chance, signal.SIGKILL)


def stop_worker(chaos: Chaos, chance: random.Random) -> None:
    """Stop a worker by SIGTERM: it finishes its batch and leaves the group."""
    chaos.workers.end(chance, signal.SIGTERM)


def add_worker(chaos: Chaos, chance: random.Random) -> None:
    """Add a worker, which causes a rebalance."""
    chaos.workers.start()


def pause_worker(chaos: Chaos, chance: random.Random) -> None:
    """Suspend a worker for longer than its session timeout, so that it resumes as a zombie."""
    worker = chaos.workers.any(chance)
    if worker is None:
        return
    worker.send_signal(signal.SIGSTOP)
    time.sleep(PAUSE)
    worker.send_signal(signal.SIGCONT)


def restart_broker(chaos: Chaos, chance: random.Random) -> None:
    """Restart the broker by SIGTERM."""
    chance.choice(chaos.cluster.nodes).restart(signal.SIGTERM)
    chaos.restarts += 1


def kill_broker(chaos: Chaos, chance: random.Random) -> None:
    """Restart the broker by SIGKILL."""
    chance.choice(chaos.cluster.nodes).restart(signal.SIGKILL, downtime=chance.uniform(0.0, 3.0))
    chaos.restarts += 1


def restart_database(chaos: Chaos, chance: random.Random) -> None:
    """Shut the database down immediately and start it with crash recovery."""
    chaos.server.stop(signal.SIGQUIT)
    time.sleep(chance.uniform(0.0, 2.0))
    chaos.server.start()
    chaos.restarts += 1


def database_outage(chaos: Chaos, chance: random.Random) -> None:
    """Make the database unreachable for some time."""
    chaos.proxy.refusing = True
    chaos.proxy.cut()
    time.sleep(chaos.outage)
    chaos.proxy.refusing = False


def failing_commit(chaos: Chaos, chance: random.Random) -> None:
    """Break connections at random times: some commits fail, some succeed without a response."""
    for _ in range(10):
        chaos.proxy.cut()
        time.sleep(chance.uniform(0.05, 0.4))


def refused_commit(chaos: Chaos, chance: random.Random) -> None:
    """Make the database refuse writes, as a replica does: workers crash and are restarted."""
    chaos.read_only(True)
    time.sleep(chance.uniform(1.0, 4.0))
    chaos.read_only(False)


def disk_full(chaos: Chaos, chance: random.Random) -> None:
    """Let the database's disk run full while events arrive, until writes are refused (ENOSPC).

    PostgreSQL refuses statements, or stops if its log cannot grow.
    """
    disk = chaos.disk
    if disk is None:
        chaos.skip("disk_full needs root, to mount a small file system")
        chaos.sender.release()
        return
    disk.fill()
    chaos.sender.release()
    chaos.wait_until_refused()
    time.sleep(chance.uniform(1.0, 5.0))
    disk.release()
    if chaos.server.start_if_ended():
        chaos.restarts += 1


def jump_clock(chaos: Chaos, chance: random.Random) -> None:
    """Move the wall clock of one worker by hours or days, forward or back, while it works.

    This uses an additional worker for a limited time, because with libfaketime each thread switch
    costs milliseconds.
    """
    chaos.clock.write_text("+0", "utf-8")
    worker = chaos.service.start_worker(faked_time(chaos.clock))
    time.sleep(JOINED_AFTER)
    chaos.clock.write_text(chance.choice(("+3h", "-3h", "+40d")), "utf-8")
    time.sleep(5.0)
    chaos.clock.write_text("+0", "utf-8")
    time.sleep(2.0)
    worker.send_signal(signal.SIGTERM)


def worker_with_wrong_clock(chaos: Chaos, chance: random.Random) -> None:
    """Let another worker join whose clock is wrong by days and whose purge is due; it must refuse.

    It works with the others until the next one takes its place, or to the end.
    """
    chaos.odd_clock.write_text(chance.choice(wrong_clock.CLOCKS), "utf-8")
    chaos.wrong.start(faked_time(chaos.odd_clock))
    chaos.wait_until_purge_refused()


def faked_time(file: Path) -> dict[str, str]:
    """Environment that adds the offset in the file to a process's wall clock.

    Raises:
        SystemExit: libfaketime is not installed.
    """
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not found:
        raise SystemExit("error: the chaos needs libfaketime (Debian: libfaketime)")
    return {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def slow_database(chaos: Chaos, chance: random.Random) -> None:
    """Delay every packet."""
    chaos.proxy.delay = chance.uniform(0.02, 0.2)
    time.sleep(5.0)
    chaos.proxy.delay = 0.0


def rolling_restart(chaos: Chaos, chance: random.Random) -> None:
    """Restart one worker after the other, as an upgrade does."""
    for worker in chaos.workers.all():
        worker.send_signal(signal.SIGTERM)
        worker.wait()
        time.sleep(JOINED_AFTER / 2)


def recreate_topic(chaos: Chaos, chance: random.Random) -> None:
    """Delete the topic of the turns and create it again, while the workers run.

    Before, they read it to its end: unread events of a deleted topic are lost.
    """
    chaos.wait_until_read()
    chaos.keep_records()
    asyncio.run(_recreate(chaos, chance.uniform(0.5, 3.0)))
    chaos.sender.release()


async def _recreate(chaos: Chaos, pause: float) -> None:
    settings = chaos.service.settings
    client = AIOKafkaAdminClient(**client_options(settings))
    await client.start()
    try:
        await client.delete_topics([settings.turns_topic])
    finally:
        await client.close()
    await asyncio.sleep(pause)
    await declare_topics(settings)
    while not await _is_new(chaos):
        await asyncio.sleep(0.2)
        await declare_topics(settings)


async def _is_new(chaos: Chaos) -> bool:
    """Whether the topic exists and is empty; a worker that starts may have created it."""
    try:
        ends, _ = await chaos.offsets()
    except KafkaError:
        return False
    return not any(ends.values())


def restore_database(chaos: Chaos, chance: random.Random) -> None:
    """Restore an older backup while the workers are stopped; the group keeps its offsets."""
    file = _back_up(chaos)
    chaos.workers.suspend()
    chaos.server.restore(file, chaos.database)
    _erase(chaos, chaos.erased)
    chaos.workers.resume()


def restore_under_workers(chaos: Chaos, chance: random.Random) -> None:
    """Restore an older backup during an outage that the workers survive by retrying."""
    file = _back_up(chaos)
    chaos.proxy.refusing = True
    chaos.proxy.cut()
    chaos.server.restore(file, chaos.database)
    _erase(chaos, chaos.erased)
    chaos.proxy.refusing = False


def _back_up(chaos: Chaos) -> Path:
    """Back the database up, and wait until workers have stored more."""
    file = chaos.service.folder / "backup"
    chaos.server.back_up(chaos.database, file)
    before = chaos.stored_turns()
    chaos.sender.release()
    give_up = time.monotonic() + LONGEST_WAIT
    while chaos.stored_turns() < before + chaos.size.turns / 20 and time.monotonic() < give_up:
        time.sleep(0.2)
    return file


def erase_sessions(chaos: Chaos, chance: random.Random) -> None:
    """Erase sessions whose events still arrive."""
    rows = chaos.service.rows(tables.session_scores)
    going_on = sorted(
        row["session_id"]
        for row in rows
        if row["status"] == "open" and row["session_id"].startswith("chaos-")
    )
    chosen = set(chance.sample(going_on, min(ERASED_AT_ONCE, len(going_on))))
    chaos.erased |= chosen
    _erase(chaos, chosen)


def _erase(chaos: Chaos, sessions: set[str]) -> None:
    if sessions:
        settings = chaos.service.settings
        direct = settings.model_copy(update={"database_url": SecretStr(chaos.database)})
        with bootstrap.opened(direct, privacy=True) as store:
            erasure = Erasure(store, direct, bootstrap.sweep_archive)
            erasure.carry_out(erasure.plan(sorted(sessions), []))


FAULTS = {
    function.__name__: function
    for function in (
        kill_worker,
        stop_worker,
        add_worker,
        pause_worker,
        restart_broker,
        kill_broker,
        restart_database,
        database_outage,
        failing_commit,
        refused_commit,
        disk_full,
        jump_clock,
        worker_with_wrong_clock,
        slow_database,
        rolling_restart,
        recreate_topic,
        restore_database,
        restore_under_workers,
        erase_sessions,
    )
}
RESTORING = (restore_database.__name__, restore_under_workers.__name__)
RECREATING = (recreate_topic.__name__,)
HOLDING = (*RESTORING, *RECREATING, disk_full.__name__)
"""Faults before which the sender waits, so that events follow them."""
