"""A database with many open sessions, and turns from all of them.

Their states are copies of one state computed by the real pipeline from a session's first turns, so
each has a full window; computing all of them with the model would take hours.
"""

import random
from datetime import UTC, datetime
from typing import Final

from msgspec import structs

from benchmarks.load import workload
from benchmarks.load.workload import Turn
from stream_app import bootstrap
from stream_app.contracts.scores import SessionStatus
from stream_app.core.pipeline.pipeline import Source, receive
from stream_app.core.session.session_state import SessionState, Versioned, pack, unpack
from stream_app.settings import Settings
from stream_app.store.database import rows, tables
from stream_app.store.stream import windows

SPOKEN: Final = 8
"""Number of earlier turns of each session."""
ROWS_AT_A_TIME: Final = 2000


class OpenSessions:
    """Sessions of one run, in the database of a deployment without workers."""

    def __init__(self, settings: Settings, run: str, count: int) -> None:
        self.run = run
        self.first_seq = SPOKEN
        self._count = count
        self._next = [0] * count
        self._chance = random.Random(1)
        _store(settings, _template(settings), run, count)

    def each_once(self, tokens: int) -> list[Turn]:
        """One turn of every session."""
        return self._said(list(range(self._count)), workload.fixed(self._count, tokens, 1))

    def turns(self, count: int) -> list[Turn]:
        """Turns of randomly chosen sessions, with real lengths."""
        picked = [self._chance.randrange(self._count) for _ in range(count)]
        return self._said(picked, workload.turns(count))

    def _said(self, picked: list[int], what: list[Turn]) -> list[Turn]:
        found = []
        for session, turn in zip(picked, what, strict=True):
            seq = self._next[session]
            self._next[session] += 1
            role = workload.ROLES[seq % 2]
            found.append(structs.replace(turn, session=session, seq=seq, role=role))
        return found


def _template(settings: Settings) -> SessionState:
    """The state of a session after its first turns."""
    pipeline = bootstrap.pipeline(settings, bootstrap.scorer(settings))
    now = datetime.now(UTC).timestamp()
    values = [
        workload.event(structs.replace(turn, session=0, seq=seq), "template", now)
        for seq, turn in enumerate(workload.turns(SPOKEN))
    ]
    states: dict[str, Versioned] = {}
    pipeline.process(
        [receive(Source("template", 0, offset), value) for offset, value in enumerate(values)],
        states,
    )
    return next(iter(states.values())).state


def _store(settings: Settings, template: SessionState, run: str, count: int) -> None:
    packed, now = pack(template), datetime.now(UTC)
    store = bootstrap.store(settings)
    for numbers in batched_range(count, ROWS_AT_A_TIME):
        states = [unpack(packed) for _ in numbers]
        for number, state in zip(numbers, states, strict=True):
            state.session_id = workload.session_name(run, number)
            state.team = workload.team(number)
        versioned = [
            Versioned(state, partition=number % settings.topic_partitions, seen_at=now)
            for number, state in zip(numbers, states, strict=True)
        ]
        split = [windows.split_state(one) for one in versioned]
        known = [
            rows.state_row(one, SessionStatus.OPEN, parts.state)
            for one, parts in zip(versioned, split, strict=True)
        ]
        for row in known:
            del row["was"]
        with store.transaction() as connection:
            store.upsert(connection, tables.session_states, known, keep=False)
            turns = [row for parts in split for row in parts.turns]
            store.upsert(connection, tables.window_turns, turns, keep=False)
            facts = [rows.session_row(state, now, hide_withdrawn=True) for state in states]
            store.upsert(connection, tables.sessions, facts, keep=False)
    store.close()


def batched_range(count: int, size: int) -> list[range]:
    """The numbers below ``count`` in ranges of at most ``size``.

    >>> batched_range(5, 2)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    return [range(start, min(start + size, count)) for start in range(0, count, size)]
