"""Events are processed in log order, whatever the consumer skips."""

from faust.types import TP
from hypothesis import given
from hypothesis import strategies as st

from stream_app.worker.kafka.offsets import OffsetTracker

P0, P1 = TP("dialogue.turns", 0), TP("dialogue.turns", 1)


def at(offset: int | None = None) -> OffsetTracker:
    offsets = OffsetTracker()
    offsets.on_seek({P0: offset})
    return offsets


def test_no_offset_is_known_before_a_seek() -> None:
    assert not OffsetTracker().is_known(P0)
    offsets = at(5)
    assert offsets.is_known(P0)
    assert not offsets.is_known(P1)
    offsets.on_revoked()
    assert not offsets.is_known(P0)


def test_only_the_next_offset_is_accepted() -> None:
    offsets = at(5)
    assert offsets.record_fetch(P0, 5) is None
    assert offsets.record_fetch(P0, 6) is None
    assert offsets.record_fetch(P0, 9) == 7
    assert offsets.record_fetch(P0, 7) is None


def test_a_group_without_a_committed_offset_starts_at_0() -> None:
    offsets = at(None)
    assert offsets.record_fetch(P0, 40) == 0
    assert offsets.record_fetch(P0, 0) is None


def test_a_gap_that_persists_after_a_seek_is_real() -> None:
    offsets = at(5)
    assert offsets.record_fetch(P0, 9) == 5
    assert offsets.record_fetch(P0, 9) is None
    assert offsets.admit(P0, 9) == 0
    assert offsets.record_fetch(P0, 10) is None


def test_a_gap_may_be_smaller_after_the_seek() -> None:
    offsets = at(5)
    assert offsets.record_fetch(P0, 9) == 5
    assert offsets.record_fetch(P0, 7) is None, "5 and 6 do not exist"
    assert offsets.record_fetch(P0, 9) == 8, "this gap has not been verified"


def test_skipped_events_are_counted() -> None:
    offsets = at(5)
    assert offsets.admit(P0, 5) == 0
    assert offsets.admit(P0, 9) == 3


def test_started_events_are_not_processed_again_although_uncommitted() -> None:
    offsets = at(5)
    assert [offsets.admit(P0, offset) for offset in (5, 6, 7)] == [0, 0, 0]
    offsets.on_seek({P0: 5})
    assert [offsets.admit(P0, offset) for offset in (5, 6, 7, 8)] == [0, 0, 0, 0]


def test_only_finished_offsets_are_committable() -> None:
    offsets = at(5)
    assert offsets.committable(P0) is None
    offsets.admit(P0, 5)
    offsets.admit(P0, 6)
    offsets.finish(P0, 6)
    assert offsets.committable(P0) == 6


def test_events_in_progress_during_a_rebalance_are_not_committable_after_it() -> None:
    offsets = at(5)
    offsets.admit(P0, 5)
    offsets.on_revoked()
    offsets.finish(P0, 6)
    assert offsets.committable(P0) == 6
    offsets.on_assigned()
    assert offsets.committable(P0) is None
    assert offsets.admit(P0, 9) == 0, "a late event without a known position"
    offsets.finish(P0, 10)
    assert offsets.committable(P0) is None


def test_events_committed_by_another_worker_are_not_processed_again() -> None:
    offsets = at(5)
    offsets.on_assigned()
    offsets.on_seek({P0: 50})
    assert offsets.admit(P0, 50) == 0


def test_partitions_are_tracked_separately() -> None:
    offsets = OffsetTracker()
    offsets.on_seek({P0: 3, P1: 8})
    assert offsets.record_fetch(P0, 3) is None
    assert offsets.record_fetch(P1, 8) is None
    assert offsets.admit(P1, 8) == 0
    assert offsets.admit(P0, 4) == 1


@given(
    exists=st.sets(st.integers(0, 60), min_size=1),
    moves=st.lists(st.tuples(st.sampled_from(["jump", "commit", "seek"]), st.integers(0, 60))),
)
def test_no_event_is_skipped_whatever_the_consumer_does(
    exists: set[int], moves: list[tuple[str, int]]
) -> None:
    """A log with gaps and a consumer that jumps ahead, seeks back and commits at random."""
    log = sorted(exists)
    offsets = OffsetTracker()
    offsets.on_seek({P0: None})
    place, committed, done = 0, 0, set[int]()
    for move, to in [*moves, *[("read", 0)] * 200]:
        if move == "jump":
            place = max(place, to)
        elif move == "commit":
            committed = offsets.committable(P0) or 0
        elif move == "seek":
            place = committed
            offsets.on_seek({P0: committed or None})
        offset = next((o for o in log if o >= place), None)
        if offset is None:  # the end of the log: the next event reveals skipped ones
            log.append(log[-1] + 1)
            continue
        if offset < offsets._next_to_fetch[P0]:
            continue  # Faust drops records that it has already read
        back_to = offsets.record_fetch(P0, offset)
        if back_to is not None:
            offset = next(o for o in log if o >= back_to)
            assert offsets.record_fetch(P0, offset) is None
        assert offsets.admit(P0, offset) == 0
        assert {o for o in log if o < offset} <= done
        offsets.finish(P0, offsets.begin(P0, offset))
        done.add(offset)
        place = offset + 1


def test_the_position_stays_before_the_oldest_event_that_waits() -> None:
    offsets = at(5)
    offsets.record_fetch(P0, 5)
    for offset in (5, 6, 9):
        offsets.admit(P0, offset)
    assert [offsets.begin(P0, offset) for offset in (6, 5, 9)] == [5, 9, 10]


def test_an_event_of_an_earlier_assignment_moves_no_position() -> None:
    offsets = at(5)
    offsets.admit(P0, 5)
    offsets.on_assigned()
    offsets.on_seek({P0: 3})
    offsets.finish(P0, offsets.begin(P0, 5))
    assert offsets.committable(P0) is None
    assert offsets.done(P0) == 3


def test_fetched_and_unstarted_events_are_pending() -> None:
    offsets = OffsetTracker()
    assert offsets.count_pending() == 0
    offsets.on_seek({P0: 5, P1: None})
    for offset in (5, 6, 7):
        offsets.record_fetch(P0, offset)
    offsets.record_fetch(P1, 0)
    assert offsets.count_pending() == 4
    offsets.admit(P0, 5)
    assert offsets.count_pending() == 4, "admitted events wait too"
    offsets.begin(P0, 5)
    assert offsets.count_pending() == 3
    offsets.on_revoked()
    assert offsets.count_pending() == 0


def test_an_offset_before_the_last_one_means_a_recreated_log() -> None:
    offsets = at(5)
    assert not offsets.is_replaced(P0, 5)
    assert not offsets.is_replaced(P0, 9)
    assert offsets.is_replaced(P0, 0)


def test_a_recreated_log_is_read_on_if_nothing_is_in_progress() -> None:
    offsets = at(5)
    assert offsets.restart_at(P0, 0)
    assert offsets.record_fetch(P0, 0) is None
    assert offsets.admit(P0, 0) == 0
    offsets.finish(P0, 1)
    assert offsets.committable(P0) == 1
    assert not offsets.restart_at(P0, 0), "records of the old log may still be in progress"
