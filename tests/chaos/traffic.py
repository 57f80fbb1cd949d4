"""Events of many concurrent sessions, with the disorder of real logs.

    repeated     an event is sent again later
    reordered    within the bound: the window restores the order
    late         beyond the bound: the turn gets late scores
    conflicting  another text with a used seq
    broken       bytes that are not an event

Between them are events at impossible times and sessions of wrong clocks (`clocks`), events with
extreme fields (`extremes`), and sessions whose events have different keys (`miskeyed`). Equal seeds
give equal logs.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from stream_app.recordings.event_files import sample_sessions

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
LATE_BY = 12
BROKEN = (b"{", b"[]", b"\xff\xfe", b'{"type": "turn"}', b'{"type": "unknown", "session_id": "s"}')


class Sent(NamedTuple):
    """A record to send; ``fault``: what is wrong with it, if anything.

    ``produced_at``: the time stamp that the producer sets, by default its clock's.
    """

    key: bytes | None
    value: bytes
    fault: str | None = None
    produced_at: datetime | None = None


Log = list[Sent]


@dataclass(frozen=True)
class Shares:
    """Shares of turns with each kind of disorder."""

    repeated: float = 0.02
    reordered: float = 0.03
    late: float = 0.01
    conflicting: float = 0.002
    broken: float = 0.003
    impossible: float = 0.004
    """Share of turns that are also sent with an impossible time."""
    unfinished: float = 0.2
    """Share of sessions without an end."""


IMPOSSIBLE = {
    "year 1": "0001-01-01T00:00:00Z",
    "year 9999": "9999-12-31T23:59:30Z",
    "before the service": "1999-12-31T23:59:59Z",
}
"""Times that no event can have."""


def log(seed: int, sessions: int, turns: int, more: Sequence[Log] = ()) -> Log:
    """The records in the order of sending, with about `turns` turns; `more`: other sessions."""
    chance = random.Random(seed)
    texts = _texts()
    streams = [
        session(
            f"chaos-{seed}-{number}",
            max(2, round(chance.expovariate(sessions / turns))),
            chance,
            texts,
            Shares(),
        )
        for number in range(sessions)
    ]
    for stream in more:
        streams.insert(chance.randrange(len(streams) + 1), stream)
    merged: Log = []
    # A limited number of sessions is open at once, as on a real platform.
    waiting, active = streams[::-1], []
    while waiting or active:
        while waiting and len(active) < max(8, sessions // 8):
            active.append(iter(waiting.pop()))
        place = chance.randrange(len(active))
        event = next(active[place], None)
        if event is None:
            active.pop(place)
        else:
            merged.append(event)
            if chance.random() < Shares.broken:
                merged.append(Sent(event.key, chance.choice(BROKEN), "broken"))
    return merged


def turn(name: str, seq: int, at: datetime, text: str) -> dict[str, object]:
    """A turn with consent; even ones are the client's."""
    return {
        "type": "turn",
        "session_id": name,
        "seq": seq,
        "speaker_id": f"{name}/{seq % 2}",
        "role": ("client", "counsellor")[seq % 2],
        "text": text,
        "occurred_at": at.isoformat(),
        "consent": True,
    }


def end(name: str, at: datetime) -> dict[str, object]:
    """The end of a session."""
    return {"type": "session_end", "session_id": name, "occurred_at": at.isoformat()}


def encoded(event: dict[str, object]) -> bytes:
    """The event as bytes."""
    return json.dumps(event).encode()


def _texts() -> list[str]:
    lines = [line for path in sample_sessions() for line in path.read_text("utf-8").splitlines()]
    found = (json.loads(line) for line in lines if line)
    return [item["text"] for item in found if item.get("type") == "turn"]


def session(name: str, length: int, chance: random.Random, texts: list[str], shares: Shares) -> Log:
    """The events of one session in the order of sending."""
    at = START + timedelta(seconds=chance.randrange(36_000))
    events: list[tuple[float, dict[str, object], str | None]] = []
    for seq in range(length):
        at += timedelta(seconds=chance.uniform(0.5, 9.0))
        event = turn(name, seq, at, chance.choice(texts))
        place, fault = float(seq), None
        if chance.random() < shares.late:
            place, fault = place + LATE_BY, "late"
        elif chance.random() < shares.reordered:
            place, fault = place + chance.uniform(1.0, 3.0), "reordered"
        events.append((place, event, fault))
        if chance.random() < shares.repeated:
            events.append((place + chance.uniform(0.1, 30.0), event, "repeated"))
        if chance.random() < shares.conflicting:
            other = {**event, "text": f"Not that, but {seq}."}
            events.append((place + 1.5, other, "conflicting"))
        if chance.random() < shares.impossible:
            kind = chance.choice(list(IMPOSSIBLE))
            events.append((place - 0.05, {**event, "occurred_at": IMPOSSIBLE[kind]}, kind))
    events.sort(key=lambda item: item[0])
    if chance.random() >= shares.unfinished:
        events.append((0.0, end(name, at), None))
    return [Sent(name.encode(), encoded(event), fault) for _, event, fault in events]
