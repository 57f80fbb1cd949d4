"""Faults and their times: a plan that depends only on the seed."""

from __future__ import annotations

import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.chaos.run import Chaos

JOINED_AFTER = 10.0
"""Seconds for a worker to start and join its group."""
PAUSE = 8.0
"""Seconds for which a zombie is suspended; longer than its session timeout."""


@dataclass(frozen=True)
class Fault:
    """A fault that happens when this share of the log has been sent."""

    at: float
    name: str


def plan(seed: int, count: int) -> list[Fault]:
    """Plan this many faults, all kinds about equally often."""
    chance = random.Random(f"faults-{seed}")
    order: list[str] = []
    while len(order) < count:
        order += chance.sample(list(FAULTS), len(FAULTS))
    moments = sorted(chance.uniform(0.03, 0.97) for _ in range(count))
    return [Fault(at, name) for at, name in zip(moments, order, strict=False)]


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
    """Make the database refuse writes, as with a full disk: workers crash and are restarted."""
    chaos.read_only(True)
    time.sleep(chance.uniform(1.0, 4.0))
    chaos.read_only(False)


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
        jump_clock,
        slow_database,
    )
}
