"""The context in which wordings of a turn are scored."""

from collections.abc import Sequence

import pytest

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.pipeline.practice import SaidTurn, context_of, score_wordings
from stream_app.core.session.environment import Policy
from tests.fakes import FakeScorer, end, received, turn


def said(*seqs: int, late: Sequence[int] = (), gone: Sequence[int] = ()) -> list[SaidTurn]:
    """Turns with these seqs; the client has the even numbers."""
    return [
        SaidTurn(
            seq,
            Role.COUNSELLOR if seq % 2 else Role.CLIENT,
            None if seq in gone else f"I say this at {seq} in s.",
            seq in late,
        )
        for seq in seqs
    ]


def distances(turns: list[SaidTurn], seq: int, before: int = 2, after: int = 2) -> dict[int, int]:
    return {turn.seq: place for turn, place in context_of(turns, seq, before, after).turns}


def test_the_context_is_the_window_of_a_final_score() -> None:
    """
    ::

        seq       0   1   2   3   4   5   6
        window        -2  -1 [3]  +1  +2
    """
    assert distances(said(*range(7)), 3) == {1: -2, 2: -1, 4: 1, 5: 2}
    assert distances(said(*range(7)), 1) == {0: -1, 2: 1, 3: 2}
    assert distances(said(*range(7)), 3, before=0, after=1) == {4: 1}


def test_turns_that_never_came_take_no_place() -> None:
    assert distances(said(0, 1, 5, 9, 10), 5) == {0: -2, 1: -1, 9: 1, 10: 2}


def test_late_turns_are_in_no_window_but_their_own() -> None:
    assert distances(said(0, 1, 2, 3, 4, late=[2]), 3) == {0: -2, 1: -1, 4: 1}
    assert distances(said(0, 1, 2, 3, 4, late=[2]), 2) == {0: -2, 1: -1, 3: 1, 4: 2}


def test_turns_without_text_are_left_out_and_counted() -> None:
    context = context_of(said(0, 1, 2, 3, 4, gone=[2]), 3, 2, 2)
    assert [(each.seq, place) for each, place in context.turns] == [(1, -2), (4, 1)]
    assert context.unknown == 1


@pytest.mark.parametrize("seq", [1, 3, 5, 9])
def test_an_unchanged_turn_has_its_final_score(seq: int) -> None:
    """The fake scorer's levels depend on every input, as do the real ones."""
    scorer = FakeScorer()
    log = [turn(seq=number) for number in range(10)]
    result = Pipeline(scorer, Policy(WindowPolicy())).process(received([*log, end()]), {})
    finals = {s.seq: s.expressed for s in result.turn_scores if s.stage.value == "final"}
    turns = said(*range(10))
    context = context_of(turns, seq, *scorer.window)
    text = turns[seq].text or ""
    same, other = score_wordings(scorer, context, Role.COUNSELLOR, [text, "Something else."])
    assert same.levels == {name: finals[seq].level(name) for name in MECHANISMS}
    assert other.levels != same.levels
