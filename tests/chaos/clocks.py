"""Sessions of producers whose clocks are wrong, and live sessions that they must not disturb.

The texts of wrong clocks' sessions express no distress: no timed rule depends on how long a fault
delays their events.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from tests.chaos.traffic import Log, Sent, encoded, end, turn

TOLERANCE = timedelta(hours=3)
"""Events further ahead are dead letters."""
SILENCE = 5
"""Seconds without an answer after which an alert fires."""
SILENCE_RULE = "silence-after-distress"
"""Other rules fire at the words of these sessions, before the silence."""
PLAIN = "Well, that is the number {}."
DISTRESSED = "I can't go on any more. I just want to end my life tonight."
_CLOCKS = {
    "clock 2 h ahead": timedelta(hours=2),
    "clock 26 h ahead": timedelta(hours=26),
    "clock 40 days behind": timedelta(days=-40),
}
_OLDEST = datetime(2000, 1, 2, tzinfo=UTC)


def sessions(seed: int, each: int, now: datetime) -> list[Log]:
    """``each`` sessions of every kind of wrong clock, of which one jumps at every turn."""
    chance = random.Random(f"clocks-{seed}")
    clocks = {fault: now + ahead for fault, ahead in _CLOCKS.items()} | {"clock in 2000": _OLDEST}
    found = [
        _session(f"clock-{seed}-{place}-{number}", [clock], fault, chance)
        for place, (fault, clock) in enumerate(clocks.items())
        for number in range(each)
    ]
    jumping = [at for fault, at in clocks.items() if fault != "clock 26 h ahead"]
    return found + [
        _session(f"clock-{seed}-jumping-{number}", jumping, "jumping clock", chance)
        for number in range(each)
    ]


def ahead(seed: int, count: int, now: datetime) -> Log:
    """Short sessions of producers two hours ahead, one after the other."""
    clock = now + _CLOCKS["clock 2 h ahead"]
    chance = random.Random(f"ahead-{seed}")
    logs = [
        _session(f"clock-{seed}-ahead-{number}", [clock], "clock 2 h ahead", chance, 3)
        for number in range(count)
    ]
    return [event for log in logs for event in log]


def silent(seed: int, count: int, now: datetime) -> Log:
    """Live sessions with the right clock in which a distressed client gets no answer."""
    found: Log = []
    for number in range(count):
        name = f"silent-{seed}-{number}"
        for seq, text in enumerate((PLAIN.format(1), PLAIN.format(2), DISTRESSED)):
            found.append(Sent(name.encode(), encoded(turn(name, seq, now, text))))
    return found


def is_silent(session_id: str) -> bool:
    """Whether ``silent`` made the session."""
    return session_id.startswith("silent-")


def _session(
    name: str, clocks: list[datetime], fault: str, chance: random.Random, length: int | None = None
) -> Log:
    length = length or chance.randrange(3, 16)
    elapsed = timedelta()
    found: Log = []
    for seq in range(length):
        elapsed += timedelta(seconds=chance.uniform(0.5, 9.0))
        at = chance.choice(clocks) + elapsed
        found.append(
            Sent(name.encode(), encoded(turn(name, seq, at, PLAIN.format(seq))), fault, at)
        )
    if chance.random() < 0.5:
        found.append(Sent(name.encode(), encoded(end(name, at)), fault, at))
    return found
