"""Assignment of answers to client turns, and the state of long sessions."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_app.contracts.events import Role
from stream_app.core.measures.exchanges import (
    KEPT,
    MILLION,
    MISSED_KEPT,
    Answered,
    Exchanges,
    Heard,
    Weighing,
    opportunities,
)
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session.environment import Policy
from stream_app.core.session.session_state import Versioned
from tests.fakes import FakeScorer, end, received, turn

AFTER = 3
WEIGHING = Weighing(floor=0.2, opportunity=0.5, answered=0.4)
CLIENT, COUNSELLOR = Role.CLIENT, Role.COUNSELLOR
VALUES = st.integers(0, 10).map(lambda tenths: tenths * MILLION // 10)
ROLES = st.sampled_from([CLIENT, COUNSELLOR])
HIDDEN = st.integers(0, 4).map(lambda number: number == 4)
"""One of five turns is withheld."""
UNSEEN = "?"


def observed(roles: str, values: Sequence[int] | None = None) -> Exchanges:
    """A session with one letter per turn: ``c`` client, ``k`` counsellor, ``?`` withheld.

    Without ``values`` turn n has the value n / 10.
    """
    exchanges = Exchanges()
    for seq, who in enumerate(roles):
        if who == UNSEEN:
            exchanges.forget()
            continue
        value = seq * MILLION // 10 if values is None else values[seq]
        exchanges.observe(CLIENT if who == "c" else COUNSELLOR, seq, value, AFTER, WEIGHING)
    return exchanges


def tenths(exchanges: Exchanges) -> list[tuple[int, int, int]]:
    """Seq, opportunity and answer of the answered exchanges, in tenths."""
    return [
        (each.seq, each.opportunity * 10 // MILLION, each.answer * 10 // MILLION)
        for each in exchanges.answered()
    ]


def test_an_exchange_ends_with_the_next_client_turn() -> None:
    """
    ::

        client      c0 c1       c4    c6
        counsellor        k2 k3    k5
        exchange    └─── 1 ───┘ └ 2 ┘ └ not answered yet
    """
    assert tenths(observed("cckkckc")) == [(1, 1, 3), (4, 4, 5)]


def test_the_strongest_opportunity_and_best_answer_count_in_any_position() -> None:
    """
    ::

        client      c0(9) c1(2)
        counsellor              k2(1) k3(7) k4(3)
    """
    values = [n * MILLION // 10 for n in (9, 2, 1, 7, 3)]
    assert tenths(observed("cckkk", values)) == [(0, 9, 7)]


def test_of_equal_turns_the_earliest_is_named() -> None:
    assert tenths(observed("ccck", [MILLION] * 4)) == [(0, 10, 10)]
    assert tenths(observed("c" * 9 + "k", [MILLION] * 10)) == [(0, 10, 10)]


def test_a_greeting_answers_nothing() -> None:
    """
    ::

        client            c2
        counsellor  k0 k1    k3
    """
    assert observed("kk").answered() == []
    assert tenths(observed("kkck")) == [(2, 2, 3)]


def test_the_final_score_of_a_greeting_answers_nothing_either() -> None:
    """The final score comes after three more turns, when the client has spoken."""
    exchanges = observed("kckc")
    exchanges.observe(COUNSELLOR, 0, MILLION, AFTER, WEIGHING)
    assert tenths(exchanges) == [(1, 1, 2)]


def test_a_waiting_client_has_no_answer_yet() -> None:
    exchanges = observed("ckcc")
    assert tenths(exchanges) == [(0, 0, 1)]
    assert len(exchanges.latest) == 2


def test_withheld_turns_break_an_exchange() -> None:
    """
    ::

        client      c0        c3
        counsellor     ?  k2     k4
                          └ answers a withheld turn
    """
    assert tenths(observed("c?kck")) == [(3, 3, 4)]
    assert tenths(observed("ck?kck")) == [(0, 0, 1), (4, 4, 5)]


def test_a_client_turn_after_withheld_ones_starts_a_new_exchange() -> None:
    """Either turn may have been answered; only the second one is known to be an exchange."""
    assert tenths(observed("c?ck", [MILLION, 0, 0, MILLION // 2])) == [(2, 0, 5)]


def test_a_final_score_after_withheld_turns_restores_no_answer() -> None:
    exchanges = observed("c?kck")
    exchanges.observe(COUNSELLOR, 2, MILLION, AFTER, WEIGHING)
    assert tenths(exchanges) == [(3, 3, 4)]


def test_a_final_score_still_replaces_the_turn_before_the_withheld_ones() -> None:
    exchanges = observed("ck?k")
    exchanges.observe(COUNSELLOR, 1, MILLION, AFTER, WEIGHING)
    assert tenths(exchanges) == [(0, 0, 10)]


def finals_only(roles: list[Role], finals: list[int], hidden: set[int]) -> Exchanges:
    exchanges = Exchanges()
    for seq, role in enumerate(roles):
        if seq in hidden:
            exchanges.forget()
        else:
            exchanges.observe(role, seq, finals[seq], AFTER, WEIGHING)
    return exchanges


@settings(deadline=None)
@given(st.lists(st.tuples(ROLES, VALUES, VALUES, HIDDEN), max_size=60))
def test_replacing_a_provisional_score_equals_final_scores_only(
    turns: list[tuple[Role, int, int, bool]],
) -> None:
    """Final scores precede the provisional score of the turn that completes their window."""
    both, open_seqs = Exchanges(), []
    hidden = {seq for seq, turn in enumerate(turns) if turn[3]}
    for seq, (role, provisional, _, _) in enumerate(turns):
        if seq in hidden:
            both.forget()
            continue
        if len(open_seqs) == AFTER:
            done = open_seqs.pop(0)
            both.observe(turns[done][0], done, turns[done][2], AFTER, WEIGHING)
        both.observe(role, seq, provisional, AFTER, WEIGHING)
        open_seqs.append(seq)
    for done in open_seqs:
        both.observe(turns[done][0], done, turns[done][2], AFTER, WEIGHING)
    roles, finals = [turn[0] for turn in turns], [turn[2] for turn in turns]
    assert both.answered() == finals_only(roles, finals, hidden).answered()
    assert sums(both) == sums(finals_only(roles, finals, hidden))


def sums(exchanges: Exchanges) -> tuple[object, ...]:
    """The kept sums of settled exchanges."""
    return (
        exchanges.count,
        exchanges.weight,
        exchanges.weighted,
        exchanges.opportunities,
        exchanges.met,
        exchanges.missed,
    )


def all_answered(roles: list[Role], values: list[int], hidden: set[int]) -> list[Answered]:
    """The answered exchanges of a session, computed from all its turns."""
    found: list[tuple[list[int], list[int]]] = []
    seen = True
    for seq, role in enumerate(roles):
        if seq in hidden:
            seen = False
        elif role is CLIENT:
            if not found or found[-1][1] or not seen:
                found.append(([], []))
            found[-1][0].append(seq)
            seen = True
        elif found and seen:
            found[-1][1].append(seq)
    best = [
        (max(client, key=values.__getitem__), counsellor)
        for client, counsellor in found
        if counsellor
    ]
    return [Answered(seq, values[seq], max(values[n] for n in answers)) for seq, answers in best]


@settings(deadline=None)
@given(st.lists(st.tuples(ROLES, VALUES, HIDDEN), max_size=150))
def test_the_sums_cover_all_settled_exchanges(turns: list[tuple[Role, int, bool]]) -> None:
    hidden = {seq for seq, turn in enumerate(turns) if turn[2]}
    roles, values = [turn[0] for turn in turns], [turn[1] for turn in turns]
    exchanges = finals_only(roles, values, hidden)
    expected = all_answered(roles, values, hidden)
    latest = exchanges.answered()
    assert latest == expected[len(expected) - len(latest) :]
    settled = expected[: len(expected) - len(latest)]
    weights = [WEIGHING.weight(each.opportunity) for each in settled]
    called = [each for each in settled if each.opportunity >= MILLION // 2]
    missed = [each.seq for each in called if each.answer < MILLION * 4 // 10]
    weighted = [round(w * each.answer / MILLION) for w, each in zip(weights, settled, strict=True)]
    assert sums(exchanges) == (
        len(settled),
        sum(weights),
        sum(weighted),
        len(called),
        len(called) - len(missed),
        missed[-MISSED_KEPT:],
    )


@pytest.mark.parametrize(
    ("opportunity", "weight"), [(0, 200_000), (MILLION // 2, 600_000), (MILLION, MILLION)]
)
def test_an_exchange_has_more_weight_with_a_stronger_opportunity(
    opportunity: int, weight: int
) -> None:
    assert WEIGHING.weight(opportunity) == weight


def size(exchanges: Exchanges) -> int:
    return len(msgspec.msgpack.encode(exchanges))


def test_ten_thousand_client_turns_in_a_row_keep_a_bounded_state() -> None:
    exchanges = observed("c" * 10_000, [MILLION // 2] * 10_000)
    [only] = exchanges.latest
    assert len(only.client.latest) == AFTER + 1
    assert size(exchanges) < 200
    exchanges.observe(COUNSELLOR, 10_000, MILLION, AFTER, WEIGHING)
    assert exchanges.answered() == [Answered(0, MILLION // 2, MILLION)]


def test_ten_thousand_counsellor_turns_in_a_row_are_one_answer() -> None:
    exchanges = observed("c" + "k" * 10_000, [MILLION, *range(10_000)])
    assert exchanges.answered() == [Answered(0, MILLION, 9_999)]
    assert size(exchanges) < 200


def test_a_long_session_keeps_the_latest_exchanges_and_sums() -> None:
    exchanges = observed("ck" * 5_000, [MILLION, MILLION // 10] * 5_000)
    assert len(exchanges.latest) == KEPT
    assert exchanges.count == exchanges.opportunities == 5_000 - KEPT
    assert exchanges.met == 0
    settled = 2 * (5_000 - KEPT)
    assert exchanges.missed == list(range(settled - 2 * MISSED_KEPT, settled, 2))
    assert size(exchanges) < 800


def test_a_longer_following_window_keeps_more_exchanges() -> None:
    exchanges = Exchanges()
    for seq in range(60):
        role = COUNSELLOR if seq % 2 else CLIENT
        exchanges.observe(role, seq, MILLION, 2 * KEPT, WEIGHING)
    assert len(exchanges.latest) == 2 * KEPT + 1


def session(log: list[bytes]) -> Exchanges:
    states: dict[str, Versioned] = {}
    Pipeline(FakeScorer(), Policy(WindowPolicy())).process(received(log), states)
    return states["s"].state.exchanges


def test_the_pipeline_assigns_a_greeting_to_no_client_turn() -> None:
    log = [
        turn(seq=seq, role=role)
        for seq, role in enumerate(["counsellor", "client", "client", "client", "client"])
    ]
    assert session([*log, end()]).answered() == []


def test_the_pipeline_breaks_an_exchange_where_consent_is_withheld() -> None:
    """
    ::

        client      (withheld)       c2
        counsellor               k1       k3
    """
    consent = {0: False, 1: True}
    log = [turn(seq=seq, consent=consent.get(seq)) for seq in range(4)]
    found = session([*log, end()]).answered()
    assert [each.seq for each in found] == [2]


@settings(max_examples=150)
@given(st.lists(st.tuples(ROLES, VALUES, HIDDEN), max_size=60))
def test_opportunities_are_those_that_the_session_counts(
    drawn: list[tuple[Role, int, bool]],
) -> None:
    """With any number of exchanges, and the same missed ones, by the answers' strongest turn."""
    exchanges, heard, unseen = Exchanges(), [], False
    for seq, (role, value, hidden) in enumerate(drawn):
        if hidden:
            exchanges.forget()
            unseen = True
        else:
            exchanges.observe(role, seq, value, AFTER, WEIGHING)
            heard.append(Heard(role, seq, value, unseen))
            unseen = False
    found = opportunities(heard, WEIGHING)
    called = [each for each in exchanges.answered() if each.opportunity >= MILLION // 2]
    assert len(found) == exchanges.opportunities + len(called)
    value_of = {each.seq: each.value for each in heard}
    latest = found[len(found) - len(called) :]
    assert [(each.seq, max(value_of[seq] for seq in each.answers)) for each in latest] == [
        (each.seq, each.answer) for each in called
    ]


def test_an_opportunity_has_all_turns_of_its_answer() -> None:
    heard = [
        Heard(CLIENT if who == "c" else COUNSELLOR, seq, value * MILLION // 10)
        for seq, (who, value) in enumerate(zip("kcckkckc", (9, 2, 8, 3, 1, 4, 9, 9), strict=True))
    ]
    assert [(each.seq, each.answers) for each in opportunities(heard, WEIGHING)] == [(2, [3, 4])]
