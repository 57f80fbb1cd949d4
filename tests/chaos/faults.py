"""What is done to the service while it works, and when: a plan that depends on the seed alone."""

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
"""Seconds in which a worker starts and joins its group."""
PAUSE = 8.0
"""Seconds that a zombie is stopped for: longer than its session timeout."""


@dataclass(frozen=True)
class Fault:
    """At a share of the log that is sent, something happens."""

    at: float
    name: str


def plan(seed: int, count: int) -> list[Fault]:
    """So many faults, every sort about equally often."""
    chance = random.Random(f"faults-{seed}")
    order: list[str] = []
    while len(order) < count:
        order += chance.sample(list(FAULTS), len(FAULTS))
    moments = sorted(chance.uniform(0.03, 0.97) for _ in range(count))
    return [Fault(at, name) for at, name in zip(moments, order, strict=False)]


def kill_worker(chaos: Chaos, chance: random.Random) -> None:
    """SIGKILL in the middle of whatever it does."""
    chaos.workers.end(chance, signal.SIGKILL)


def stop_worker(chaos: Chaos, chance: random.Random) -> None:
    """SIGTERM: it drains its batch and leaves the group."""
    chaos.workers.end(chance, signal.SIGTERM)


def add_worker(chaos: Chaos, chance: random.Random) -> None:
    """One more joins: a rebalance."""
    chaos.workers.start()


def pause_worker(chaos: Chaos, chance: random.Random) -> None:
    """Stopped for longer than its session timeout: it comes back as a zombie."""
    worker = chaos.workers.any(chance)
    if worker is None:
        return
    worker.send_signal(signal.SIGSTOP)
    time.sleep(PAUSE)
    worker.send_signal(signal.SIGCONT)


def restart_broker(chaos: Chaos, chance: random.Random) -> None:
    """SIGTERM and start again."""
    chance.choice(chaos.cluster.nodes).restart(signal.SIGTERM)
    chaos.restarts += 1


def kill_broker(chaos: Chaos, chance: random.Random) -> None:
    """SIGKILL and start again."""
    chance.choice(chaos.cluster.nodes).restart(signal.SIGKILL, away=chance.uniform(0.0, 3.0))
    chaos.restarts += 1


def restart_database(chaos: Chaos, chance: random.Random) -> None:
    """Immediate shutdown, crash recovery at the next start."""
    chaos.server.stop(signal.SIGQUIT)
    time.sleep(chance.uniform(0.0, 2.0))
    chaos.server.start()
    chaos.restarts += 1


def database_outage(chaos: Chaos, chance: random.Random) -> None:
    """Nobody gets through to the database for a while."""
    chaos.proxy.refusing = True
    chaos.proxy.cut()
    time.sleep(chaos.outage)
    chaos.proxy.refusing = False


def failing_commit(chaos: Chaos, chance: random.Random) -> None:
    """Connections break at random moments: some commits fail, some succeed unheard."""
    for _ in range(10):
        chaos.proxy.cut()
        time.sleep(chance.uniform(0.05, 0.4))


def refused_commit(chaos: Chaos, chance: random.Random) -> None:
    """The database answers and refuses, as with a full disk: workers crash and are started."""
    chaos.read_only(True)
    time.sleep(chance.uniform(1.0, 4.0))
    chaos.read_only(False)


def jump_clock(chaos: Chaos, chance: random.Random) -> None:
    """The wall clock of one worker goes hours or days ahead, or back, while it works.

    A worker of its own, and for this time only: libfaketime makes each change of thread cost
    milliseconds.
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
    """Environment in which a process reads its wall clock with the offset that stands in the file.

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
    """Every packet takes a while."""
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
