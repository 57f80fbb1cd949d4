"""Whether the events of each partition come in the order of the log, none left out.

Faust can leave events out: after a rebalance it may go on behind events that were fetched and
thrown away (it resumes fetching before it seeks back, and does not seek where the group has
committed nothing yet), and takes what lies between for a gap of the log, which it then commits.
A log may have gaps of its own (compaction, transaction markers, retention), so a gap is checked
once: what comes after a seek back to its first offset is what there is.
"""

from collections.abc import Mapping

from faust.types import TP


class Positions:
    """Of the partitions of one consumer: what was fetched, what was taken, what does not exist."""

    def __init__(self) -> None:
        self._to_fetch: dict[TP, int] = {}
        self._to_take: dict[TP, int] = {}
        self._asked: dict[TP, int] = {}
        self._nowhere: dict[TP, dict[int, int]] = {}

    def outdate(self) -> None:
        """Partitions move: where each one is to be read on is not known until the next seek."""
        self._to_fetch.clear()

    def knows(self, tp: TP) -> bool:
        """Whether there was a seek since partitions moved."""
        return tp in self._to_fetch

    def sought(self, committed: Mapping[TP, int | None]) -> None:
        """Every assigned partition is read on from what the group has committed, or from 0."""
        self._asked.clear()
        self._to_fetch = {tp: offset or 0 for tp, offset in committed.items()}
        self._to_take = {
            tp: max(self._to_take.get(tp, 0), offset) for tp, offset in self._to_fetch.items()
        }
        self._nowhere = {
            tp: {start: end for start, end in gaps.items() if start >= self._to_take.get(tp, 0)}
            for tp, gaps in self._nowhere.items()
            if tp in self._to_fetch
        }

    def fetched(self, tp: TP, offset: int) -> int | None:
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

    def taken(self, tp: TP, offset: int) -> int:
        """How many events were left out before this one; 0 as long as the order is kept.

        Only what is taken counts as done, so call it in the order in which events are worked on.
        """
        expected = self._to_take.get(tp, 0)
        gaps = self._nowhere.get(tp, {})
        while expected in gaps:
            expected = gaps.pop(expected)
        self._to_take[tp] = max(expected, offset + 1)
        return max(0, offset - expected)
