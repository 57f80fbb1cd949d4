"""Tracks fetched, waiting and finished offsets of each partition.

Faust's own bookkeeping loses events (0.15.3):

- After a rebalance it continues after events that were fetched and discarded: it resumes fetching
  before it seeks back, and does not seek if the group has not committed an offset yet. It treats
  the skipped events as a gap in the log and commits them.
- An event that a stream skips during a rebalance is acknowledged nevertheless, and so is the last
  event of a stream that ends.

A log may have real gaps (compaction, transaction markers, retention). A gap is therefore verified
once: if the records after it come again after a seek back, the gap is real.

Events are admitted in log order and may be processed in another one (``fair_order``). Then the
position is before the oldest event that waits: after a crash some events beyond it are read again,
and their sessions recognise them.
"""

from collections import OrderedDict
from collections.abc import Mapping

from faust.types import TP


class OffsetTracker:
    """Offsets of the partitions of one consumer: next to fetch and to admit, finished, gaps."""

    def __init__(self) -> None:
        self._next_to_fetch: dict[TP, int] = {}
        self._next_to_admit: dict[TP, int] = {}
        self._waiting: dict[TP, OrderedDict[int, None]] = {}
        self._finished: dict[TP, int] = {}
        self._rechecked: dict[TP, int] = {}
        self._gaps: dict[TP, dict[int, int]] = {}
        self._seek_target: dict[TP, int] = {}
        self._skipped: set[TP] = set()

    def on_revoked(self) -> None:
        """Handle the start of a rebalance: no fetch is valid before the next seek."""
        self._next_to_fetch.clear()
        self._skipped.clear()

    def on_assigned(self) -> None:
        """Handle the end of a rebalance: forget the previous assignment."""
        for offsets in (
            self._next_to_fetch,
            self._next_to_admit,
            self._finished,
            self._rechecked,
        ):
            offsets.clear()
        self._gaps.clear()
        self._waiting.clear()

    def on_seek(self, committed: Mapping[TP, int | None]) -> None:
        """Record a seek of all assigned partitions to their committed offsets, None meaning 0."""
        self._rechecked.clear()
        self._next_to_fetch = {tp: offset or 0 for tp, offset in committed.items()}
        self._seek_target = dict(self._next_to_fetch)
        self._next_to_admit = {
            tp: max(self._next_to_admit.get(tp, 0), offset)
            for tp, offset in self._next_to_fetch.items()
        }

    def is_known(self, tp: TP) -> bool:
        """Whether there was a seek since the last rebalance."""
        return tp in self._next_to_fetch

    def is_replaced(self, tp: TP, offset: int) -> bool:
        """Whether this offset precedes the last one: the topic was deleted and recreated."""
        return offset < self._next_to_fetch[tp]

    def restart_at(self, tp: TP, offset: int) -> bool:
        """Continue at this offset of a recreated log; False while old records are pending."""
        if self._next_to_fetch[tp] != self._seek_target.get(tp):
            return False
        self._next_to_fetch[tp] = self._next_to_admit[tp] = self._seek_target[tp] = offset
        self._finished.pop(tp, None)
        return True

    def record_fetch(self, tp: TP, offset: int) -> int | None:
        """Record a fetched event; return None if it may come next, else the offset to seek to."""
        expected = self._next_to_fetch[tp]
        if offset > expected:
            if self._rechecked.get(tp) != expected:
                self._rechecked[tp] = expected
                return expected
            self._gaps.setdefault(tp, {})[expected] = offset
        self._rechecked.pop(tp, None)
        self._next_to_fetch[tp] = offset + 1
        return None

    def admit(self, tp: TP, offset: int) -> int:
        """Record that an event waits for processing; return how many before it were skipped.

        Call it in the order of arrival. The number is 0 if the order is correct.
        """
        if tp not in self._next_to_admit:  # during a rebalance: it will not count as finished
            return 0
        self._waiting.setdefault(tp, OrderedDict())[offset] = None
        expected = self._next_to_admit[tp]
        gaps = self._gaps.get(tp, {})
        while expected in gaps:
            expected = gaps.pop(expected)
        self._next_to_admit[tp] = max(expected, offset + 1)
        return max(0, offset - expected)

    def begin(self, tp: TP, offset: int) -> int:
        """Record that an event is processed next; return the position once it is finished.

        The position is that of the oldest event that still waits, or behind all admitted ones; 0
        for an event of an earlier assignment, which moves no position.
        """
        waiting = self._waiting.get(tp)
        if waiting is None or offset not in waiting:
            return 0
        del waiting[offset]
        return next(iter(waiting), self._next_to_admit[tp])

    def count_pending(self) -> int:
        """Number of fetched events that are not in processing; an estimate if the log has gaps.

        May be called from any thread.
        """
        fetched = list(self._next_to_fetch.items())
        waiting = sum(map(len, list(self._waiting.values())))
        return waiting + sum(
            max(0, offset - self._next_to_admit.get(tp, offset)) for tp, offset in fetched
        )

    def finish(self, tp: TP, position: int) -> None:
        """Record that all events before this position are in the database."""
        if position and tp in self._next_to_admit:
            self._finished[tp] = max(self._finished.get(tp, 0), position)

    def done(self, tp: TP) -> int:
        """The offset up to which all delivered events are finished under this assignment."""
        return self._finished.get(tp, self._seek_target.get(tp, 0))

    def next_expected(self, tp: TP) -> int:
        """The offset that the next fetched event has if the log has no gap."""
        return self._next_to_fetch[tp]

    def skip_to(self, tp: TP, offset: int) -> None:
        """Continue after a part of the log that contains no event, when all events are finished."""
        if self._next_to_fetch.get(tp, offset) < offset:
            self._next_to_fetch[tp] = offset
            self._next_to_admit[tp] = max(self._next_to_admit.get(tp, 0), offset)
            self._skipped.add(tp)

    def skipped(self) -> set[TP]:
        """Partitions that were moved by ``skip_to`` since the last rebalance."""
        return set(self._skipped)

    def committable(self, tp: TP) -> int | None:
        """The offset to commit; None if nothing has finished under this assignment."""
        return self._finished.get(tp)
