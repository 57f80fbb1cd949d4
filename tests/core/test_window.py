"""When turns are scored, and with which context.

In the drawings [n] is the scored turn and the other numbers are the seqs of its context.
"""

from datetime import timedelta

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.measures.window import (
    MAX_GAPS,
    Placement,
    ScoringRequest,
    WindowPolicy,
    WindowState,
    WindowTurn,
    flush,
    pass_over,
    placement_of,
    push,
    uses,
)
from tests.fakes import START

POLICY = WindowPolicy(before=2, after=2, reorder_turns=2, reorder_wait=timedelta(seconds=30))
Drawing = list[tuple[str, list[tuple[int, int]]]]


def encoded(seq: int, **changes: object) -> WindowTurn:
    values = {
        "seq": seq,
        "role": Role.CLIENT,
        "occurred_at": START + timedelta(seconds=5 * seq),
        "digest": seq,
        "words": 1,
        "vectors": b"",
        "rationales": {},
        **changes,
    }
    return WindowTurn(**values)


def drawn(requests: list[ScoringRequest]) -> Drawing:
    """Each request as stage and seq, with the (seq, distance) pairs of its context."""
    return [
        (f"{t.stage.value[0]}{t.turn.seq}", [(n.turn.seq, n.distance) for n in t.context])
        for t in requests
    ]


def pushed(state: WindowState, *seqs: int, policy: WindowPolicy = POLICY) -> Drawing:
    return [item for seq in seqs for item in drawn(push(state, encoded(seq), policy))]


def test_provisional_scores_use_preceding_turns_and_final_ones_also_following() -> None:
    """
    ::

        p0  [0]                 p3   1  2 [3]
        p1   0 [1]              f1   0 [1] 2  3
        p2   0  1 [2]
        f0  [0] 1  2
    """
    assert pushed(WindowState(), 0, 1, 2, 3) == [
        ("p0", []),
        ("p1", [(0, -1)]),
        ("f0", [(1, 1), (2, 2)]),
        ("p2", [(0, -2), (1, -1)]),
        ("f1", [(0, -1), (2, 1), (3, 2)]),
        ("p3", [(1, -2), (2, -1)]),
    ]


def test_the_end_makes_all_scores_final_with_the_available_context() -> None:
    state = WindowState()
    pushed(state, 0, 1, 2)
    assert drawn(flush(state, POLICY)) == [("f1", [(0, -1), (2, 1)]), ("f2", [(0, -2), (1, -1)])]
    assert flush(state, POLICY) == []


def test_without_a_window_a_turn_is_final_immediately() -> None:
    policy = WindowPolicy(before=0, after=0)
    assert pushed(WindowState(), 0, 1, policy=policy) == [
        ("p0", []),
        ("f0", []),
        ("p1", []),
        ("f1", []),
    ]


def test_a_window_of_following_turns_only() -> None:
    policy = WindowPolicy(before=0, after=1)
    assert pushed(WindowState(), 0, 1, policy=policy) == [
        ("p0", []),
        ("f0", [(1, 1)]),
        ("p1", []),
    ]


def test_out_of_order_turns_are_reordered() -> None:
    in_order, shuffled = WindowState(), WindowState()
    assert pushed(shuffled, 1, 2, 0, 4, 3) == pushed(in_order, 0, 1, 2, 3, 4)
    assert shuffled == in_order


def test_a_gap_is_given_up_when_too_many_turns_wait() -> None:
    """``reorder_turns`` is 2: with 2, 3 and 4 waiting, 1 is given up."""
    state = WindowState()
    pushed(state, 0)
    assert pushed(state, 2, 3) == []
    assert [name for name, _ in pushed(state, 4)] == ["p2", "f0", "p3", "f2", "p4"]
    assert state.gaps == [(1, 1)]
    assert state.next_seq == 5


def test_a_gap_is_given_up_after_the_wait_in_event_time() -> None:
    state = WindowState()
    pushed(state, 0, 2)
    late = encoded(3, occurred_at=START + timedelta(seconds=41))
    requests = push(state, late, POLICY)
    assert [t.turn.seq for t in requests if t.stage is Stage.PROVISIONAL] == [2, 3]
    assert state.gaps == [(1, 1)]


def test_a_late_turn_is_final_immediately_and_is_no_context_of_others() -> None:
    """
    ::

        0  .  2  3  4   then 1:   f1   0 [1] 2  3
    """
    policy = WindowPolicy(before=3, after=3, reorder_turns=2)
    state = WindowState()
    pushed(state, 0, 2, 3, 4, policy=policy)
    assert placement_of(state, 1, digest=1) is Placement.LATE
    requests = push(state, encoded(1, late=True), policy)
    assert drawn(requests) == [("f1", [(0, -1), (2, 1), (3, 2), (4, 3)])]
    assert [turn.seq for turn in state.history] == [0, 2, 3, 4]
    assert placement_of(state, 1, digest=1) is Placement.DUPLICATE


def test_a_late_turn_splits_its_gap() -> None:
    state = WindowState()
    pushed(state, 0, 5, 6, 7)
    assert state.gaps == [(1, 4)]
    push(state, encoded(2, late=True), POLICY)
    assert state.gaps == [(1, 1), (3, 4)]


def test_an_equal_turn_is_a_duplicate_and_a_different_one_a_conflict() -> None:
    state = WindowState()
    pushed(state, 0, 2)
    assert [placement_of(state, seq, digest=seq) for seq in (0, 2)] == [Placement.DUPLICATE] * 2
    assert [placement_of(state, seq, digest=99) for seq in (0, 2)] == [Placement.CONFLICT] * 2
    assert [placement_of(state, seq, digest=seq) for seq in (1, 3)] == [Placement.NEW] * 2


def test_a_withheld_turn_keeps_its_position_and_is_no_context() -> None:
    state = WindowState()
    pushed(state, 0)
    assert push(state, encoded(1, withheld=True), POLICY) == []
    assert pushed(state, 2) == [("p2", [(0, -1)])]


def test_the_state_stays_small() -> None:
    state = WindowState()
    for seq in range(0, 4000, 2):
        push(state, encoded(seq), POLICY)
    assert len(state.history) <= POLICY.before + POLICY.after + 1
    assert len(state.gaps) <= MAX_GAPS
    assert len(state.waiting) <= POLICY.reorder_turns
    assert len(state.digests) <= 64


def test_a_turn_waits_up_to_and_including_the_limit() -> None:
    state = WindowState()
    pushed(state, 0, 2)
    just = encoded(2).occurred_at + POLICY.reorder_wait
    assert push(state, encoded(3, occurred_at=just), POLICY) == []
    over = just + timedelta(microseconds=1)
    assert push(state, encoded(4, occurred_at=over), POLICY) != []


def test_the_uses_of_a_turns_words_are_counted_up_to_it() -> None:
    state = WindowState()
    for seq, digest in enumerate([1, 7, 2, 7, 3, 7]):
        push(state, encoded(seq, digest=digest), POLICY)

    assert [uses(state, seq) for seq in range(6)] == [1, 1, 1, 2, 1, 3]
    assert uses(state, 99) == 1  # no longer known


def test_a_request_holds_the_uses_of_when_it_was_due() -> None:
    """A batch scores its turns after it took all of them, when the first digests are forgotten."""
    state = WindowState()
    requests = [
        request
        for seq in range(200)
        for request in push(state, encoded(seq, digest=seq % 2), POLICY)
    ]
    first = {each.turn.seq: each.uses for each in requests if each.stage is Stage.PROVISIONAL}
    assert [first[seq] for seq in (0, 1, 2, 9, 199)] == [1, 1, 2, 5, 32]
    last = {each.turn.seq: each.uses for each in requests if each.stage is Stage.FINAL}
    assert [last[seq] for seq in (0, 1, 2, 9)] == [1, 1, 2, 5]


def test_a_late_turn_counts_the_uses_before_it() -> None:
    state = WindowState()
    for seq in (0, 1, 2, 5, 6, 7, 8, 9, 10):
        push(state, encoded(seq, digest=7), POLICY)
    [late] = push(state, encoded(3, digest=7, late=True), POLICY)
    assert late.uses == 4


def test_nobody_waits_for_a_refused_turn() -> None:
    state = WindowState()
    assert [name for name, _ in pushed(state, 0, 2)] == ["p0"]
    due = pass_over(state, 1, POLICY)
    assert due is not None
    assert drawn(due) == [("p2", [(0, -1)])]
    assert [name for name, _ in pushed(state, 3)] == ["f0", "p3"]
    assert placement_of(state, 1, digest=1) is Placement.LATE


def test_a_refused_turn_may_come_before_or_after_the_others() -> None:
    state = WindowState()
    assert pass_over(state, 2, POLICY) == pass_over(state, 0, POLICY) == []
    assert [name for name, _ in pushed(state, 3, 1)] == ["p1", "p3"]
    assert (state.next_seq, state.gaps, state.refused) == (4, [(0, 0), (2, 2)], [])
    assert pass_over(state, 1, POLICY) is None
    assert pass_over(state, 4, POLICY) == []
    assert [name for name, _ in pushed(state, 4)] == ["f1", "p4"]  # mended before a later turn


def test_a_mended_turn_takes_its_place_if_it_comes_in_time() -> None:
    state = WindowState()
    pass_over(state, 1, POLICY)
    assert pass_over(state, 1, POLICY) is None
    assert [name for name, _ in pushed(state, 1, 0)] == ["p0", "p1"]
    assert (state.gaps, state.refused) == ([], [])


def test_a_gap_that_is_given_up_forgets_what_was_refused_in_it() -> None:
    state = WindowState()
    pass_over(state, 1, POLICY)
    pushed(state, 3)
    flush(state, POLICY)
    assert (state.next_seq, state.gaps, state.refused) == (4, [(0, 2)], [])
    for seq in range(5, 500):
        pass_over(state, seq, POLICY)
    assert len(state.refused) == MAX_GAPS
