"""Sessions whose events have other keys than the session id: they are in several partitions.

Workers read them in no particular order, so scores and the order in the window differ between runs.
What does not: each turn is stored and scored once.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

from stream_app.contracts.scores import Stage
from stream_app.store.database import tables
from tests.chaos.traffic import Log, Shares, session
from tests.e2e.service import Service

_KEYS = (None, b"", b"\xff\xfe", b"a", b"b", b"c", b"d")
_PREFIX = "miskeyed-"
_TURNS = 24
_IN_ORDER = Shares(0.05, 0.0, 0.0, 0.0, 0.0, 0.0, unfinished=1.0)
"""With repetitions; without an end, which another partition's turns could follow."""


def sessions(seed: int, count: int) -> list[Log]:
    """``count`` sessions, whose events have seven different keys."""
    chance = random.Random(f"miskeyed-{seed}")
    texts = [f"Well, that is the number {n}." for n in range(200)]
    return [
        [
            event._replace(key=chance.choice(_KEYS), fault="miskeyed")
            for event in session(f"{_PREFIX}{seed}-{number}", _TURNS, chance, texts, _IN_ORDER)
        ]
        for number in range(count)
    ]


def is_miskeyed(session_id: str) -> bool:
    """Whether ``sessions`` made the session."""
    return session_id.startswith(_PREFIX)


def differences(expected: Iterable[tuple[str, int]], service: Service) -> list[str]:
    """What is missing, or too much, given the turns (session and seq) in the log."""
    turns = set(expected)
    stored = {_turn(row) for row in service.rows(tables.turns) if _is_one(row)}
    scores = [row for row in service.rows(tables.turn_scores) if _is_one(row)]
    final = {_turn(row) for row in scores if row["stage"] == Stage.FINAL.value}
    found = [f"lost: turn {turn}" for turn in turns - stored]
    found += [f"lost: final score of {turn}" for turn in turns - final]
    found += [f"not in the log: turn {turn}" for turn in (stored | final) - turns]
    lengths = Counter(name for name, _ in turns)
    for row in service.rows(tables.session_scores):
        if _is_one(row) and row["turns"] != lengths[row["session_id"]]:
            right = lengths[row["session_id"]]
            found.append(f"{row['session_id']} turns: {right} ≠ {row['turns']}")
    return found


def _turn(row: Any) -> tuple[str, int]:
    return row["session_id"], row["seq"]


def _is_one(row: Any) -> bool:
    return is_miskeyed(row["session_id"])
