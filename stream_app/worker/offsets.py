"""Which events of each partition may come next, and which ones are done.

Faust keeps books of this, too, and loses events by them (0.15.3):

- After a rebalance it goes on behind events that were fetched and thrown away: it resumes fetching
  before it seeks back, and does not seek where the group has committed nothing yet. It takes what
  lies between for a gap of the log and commits it.
- An event that a stream skips because partitions are moving is acknowledged nevertheless, and so
  is the one that a stream holds when it ends.

A log may have gaps of its own (compaction, transaction markers, retention), so a gap is checked
once: what comes after a seek back to its first offset is what there is.
"""

from collections.abc import Mapping

from faust.types import TP


class OffsetTracker:
    """Of the partitions of one consumer: what is fetched, taken, finished and does not exist."""

    def __init__(self) -> None:
        self._to_fetch: dict[TP, int] = {}
        self._to_take: dict[TP, int] = {}
        self._finished: dict[TP, int] = {}
        self._asked: dict[TP, int] = {}
        self._nowhere: dict[TP, dict[int, int]] = {}
        self._sought: dict[TP, int] = {}

    def revoked(self) -> None:
        """A rebalance begins: nothing may be fetched before the next seek."""
        self._to_fetch.clear()

    def assigned(self) -> None:
        """It ends: what was done under the assignment before is for whoever has it now."""
        for books in (self._to_fetch, self._to_take, self._finished, self._asked, self._nowhere):
            books.clear()

    def sought(self, committed: Mapping[TP, int | None]) -> None:
        """Every assigned partition is read on from what the group has committed, or from 0."""
        self._asked.clear()
        self._to_fetch = {tp: offset or 0 for tp, offset in committed.items()}
        self._sought = dict(self._to_fetch)
        self._to_take = {
            tp: max(self._to_take.get(tp, 0), offset) for tp, offset in self._to_fetch.items()
        }

    def is_known(self, tp: TP) -> bool:
        """Whether there was a seek since partitions moved."""
        return tp in self._to_fetch

    def is_replaced(self, tp: TP, offset: int) -> bool:
        """Whether this record lies before what came last: the topic was deleted and made anew."""
        return offset < self._to_fetch[tp]

    def restart_at(self, tp: TP, offset: int) -> bool:
        """Go on at this offset of a log that was made anew; False if records are in hand."""
        if self._to_fetch[tp] != self._sought.get(tp):
            return False
        self._to_fetch[tp] = self._to_take[tp] = self._sought[tp] = offset
        self._finished.pop(tp, None)
        return True

    def check_fetched(self, tp: TP, offset: int) -> int | None:
        """None if this offset may come next; else the offset to seek back to."""
        expected = self._to_fetch[tp]
        if offset > expected:
            if self._asked.get(tp) != expected:
                self._asked[tp] = expected
                return expected
            self._nowhere.setdefault(tp, {})[expected] = offset
        self._asked.pop(tp, None)
        self._to_fetch[tp] = offset + 1
        return None

    def count_skipped(self, tp: TP, offset: int) -> int:
        """How many events were left out before this one; 0 as long as the order is kept.

        To be called in the order in which events are worked on.
        """
        if tp not in self._to_take:  # partitions are moving: it will not count as finished
            return 0
        expected = self._to_take[tp]
        gaps = self._nowhere.get(tp, {})
        while expected in gaps:
            expected = gaps.pop(expected)
        self._to_take[tp] = max(expected, offset + 1)
        return max(0, offset - expected)

    def count_pending(self) -> int:
        """How many events are fetched and not taken; roughly, where the log has gaps.

        From any thread.
        """
        fetched = list(self._to_fetch.items())
        return sum(max(0, to_fetch - self._to_take.get(tp, to_fetch)) for tp, to_fetch in fetched)

    def finish(self, tp: TP, offset: int) -> None:
        """This event, and all before it, are in the database."""
        if tp in self._to_take:
            self._finished[tp] = max(self._finished.get(tp, 0), offset + 1)

    def committable(self, tp: TP) -> int | None:
        """The offset to commit; None while nothing was finished under this assignment."""
        return self._finished.get(tp)
