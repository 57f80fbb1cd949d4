"""Events of many concurrent sessions, with the disorder of real logs.

    repeated     an event is sent again later
    reordered    within the bound: the window restores the order
    late         beyond the bound: the turn gets late scores
    conflicting  another text with a used seq
    broken       bytes that are not an event

Equal seeds give equal logs.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from stream_app.commands.event_files import sample_sessions

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
LATE_BY = 12
BROKEN = (b"{", b"[]", b"\xff\xfe", b'{"type": "turn"}', b'{"type": "unknown", "session_id": "s"}')


Log = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Shares:
    """Shares of turns with each kind of disorder."""

    repeated: float = 0.02
    reordered: float = 0.03
    late: float = 0.01
    conflicting: float = 0.002
    broken: float = 0.003
    unfinished: float = 0.2
    """Share of sessions without an end."""


def log(seed: int, sessions: int, turns: int, shares: Shares = Shares()) -> Log:
    """Keys and values in the order of sending, with about `turns` turns in total."""
    chance = random.Random(seed)
    texts = _texts()
    streams = []
    for number in range(sessions):
        length = max(2, round(chance.expovariate(sessions / turns)))
        streams.append(_session(f"chaos-{seed}-{number}", length, chance, texts, shares))
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
            if chance.random() < shares.broken:
                merged.append((event[0], chance.choice(BROKEN)))
    return merged


def _texts() -> list[str]:
    lines = [line for path in sample_sessions() for line in path.read_text("utf-8").splitlines()]
    found = (json.loads(line) for line in lines if line)
    return [item["text"] for item in found if item.get("type") == "turn"]


def _session(
    name: str, length: int, chance: random.Random, texts: list[str], shares: Shares
) -> Log:
    at = START + timedelta(seconds=chance.randrange(36_000))
    events: list[tuple[float, dict[str, object]]] = []
    for seq in range(length):
        at += timedelta(seconds=chance.uniform(0.5, 9.0))
        event = {
            "type": "turn",
            "session_id": name,
            "seq": seq,
            "speaker_id": f"{name}/{seq % 2}",
            "role": ("client", "counsellor")[seq % 2],
            "text": chance.choice(texts),
            "occurred_at": at.isoformat(),
            "consent": True,
        }
        place = float(seq)
        if chance.random() < shares.late:
            place += LATE_BY
        elif chance.random() < shares.reordered:
            place += chance.uniform(1.0, 3.0)
        events.append((place, event))
        if chance.random() < shares.repeated:
            events.append((place + chance.uniform(0.1, 30.0), event))
        if chance.random() < shares.conflicting:
            events.append((place + 1.5, {**event, "text": f"Not that, but {seq}."}))
    events.sort(key=lambda item: item[0])
    if chance.random() >= shares.unfinished:
        end = {"type": "session_end", "session_id": name, "occurred_at": at.isoformat()}
        events.append((0.0, end))
    return [(name.encode(), json.dumps(event).encode()) for _, event in events]
