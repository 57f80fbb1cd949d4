"""How producers send the log: compressed with any codec, in transactions or without.

Beside some batches another producer holds a transaction open, which it aborts. It contains what
must not happen to the sessions of the batch: another text, an end, a withdrawal, an outcome, bytes
that would be a dead letter, and a turn of a session that does not exist.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from stream_app.worker.kafka.codecs import CODECS
from tests.chaos.traffic import START, Log, Sent, encoded, end, turn
from tests.e2e.service import key_of

SHORTEST, LONGEST = 20, 200
COMMITTED = "committed transaction"
ABORTED = "aborted transaction"
MARK = "never-committed"
"""In every event of an aborted transaction, and in no other."""
_SESSIONS = 5
"""Sessions of a batch that an aborted transaction concerns."""
_CODECS = (None, *CODECS)
_KINDS = ((), (COMMITTED,), (ABORTED,), (COMMITTED, ABORTED))

T = TypeVar("T")


class Batch(NamedTuple):
    """Records that are sent together.

    ``aborted``: what another producer's transaction contains that is open meanwhile.
    """

    records: Log
    codec: str | None
    in_transaction: bool
    aborted: Log

    @property
    def faults(self) -> list[str]:
        """What is not usual about it."""
        found = [self.codec] if self.codec else []
        found += [COMMITTED] if self.in_transaction else []
        return found + ([ABORTED] if self.aborted else [])


def planned(log: Sequence[Sent], chance: random.Random) -> Iterator[Batch]:
    """Divide the log into batches in which each codec and each kind is about equally often."""
    codecs, kinds = _in_turn(_CODECS, chance), _in_turn(_KINDS, chance)
    start = 0
    while start < len(log):
        records = list(log[start : start + chance.randint(SHORTEST, LONGEST)])
        start += len(records)
        kind = next(kinds)
        aborted = _taken_back(records, chance) if ABORTED in kind else []
        yield Batch(records, next(codecs), COMMITTED in kind, aborted)


def _in_turn(choices: Sequence[T], chance: random.Random) -> Iterator[T]:
    while True:
        yield from chance.sample(choices, len(choices))


def _taken_back(records: Log, chance: random.Random) -> Log:
    """Events about some sessions of the batch, and of one more, which nothing may ever show."""
    names = sorted({name for name in map(_session, records) if name})
    found = [
        Sent(name.encode(), value)
        for name in chance.sample(names, min(_SESSIONS, len(names)))
        for value in chance.sample(_harmful(name, chance.randrange(12), START), 5)
    ]
    alone = f"{MARK}-{chance.randrange(10**9)}"
    return [*found, Sent(alone.encode(), encoded(turn(alone, 0, START, "This is alone.")))]


def _session(record: Sent) -> str:
    """The session of a record; empty if it has none or another key."""
    name = key_of(record.value)
    return name.decode() if name and name == record.key else ""


def _harmful(name: str, seq: int, at: datetime) -> list[bytes]:
    stated = {"session_id": name, "occurred_at": at.isoformat()}
    return [
        encoded(turn(name, seq, at, f"I want to kill myself ({MARK}).")),
        encoded({**end(name, at), "reason": MARK}),
        encoded({**stated, "type": "consent", "status": "withdrawn", "source": MARK}),
        encoded({**stated, "type": "outcome", "kind": "rating", "outcome_id": f"{MARK}-{name}"}),
        f'{{"session_id": "{name}", {MARK}'.encode(),
    ]
