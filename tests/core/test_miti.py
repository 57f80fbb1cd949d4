"""Counting of volleys, the MITI measures, and the sessions that have them."""

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Expressed, MitiSummary, Stage, Standing, TurnScore
from stream_app.core.measures import miti
from stream_app.core.measures.miti import (
    CLOSED,
    COMPLEX,
    FEWEST_VOLLEYS,
    INFORMATION,
    MILLION,
    NOT_COUNTED,
    OPEN,
    PERMITTED,
    PERSUADE,
    SEEKING,
    SIMPLE,
    MitiCounts,
    merged,
    miti_summary,
)
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline, Policy
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.session_state import SessionState, Versioned, pack, unpack
from tests.core.earlier_states import as_map
from tests.fakes import FakeScorer, end, received, scored, turn

AFTER = 3
MI = "motivational-interviewing"


def score(seq: int, stage: Stage = Stage.PROVISIONAL, late: bool = False, **p: float) -> TurnScore:
    """A counsellor turn with these label probabilities; the remainder of each head is none."""
    heads: dict[str, dict[str, float]] = {}
    for head, labels in (
        ("question", ("open", "closed")),
        ("reflection", ("simple", "complex")),
        ("input", ("information", "advice", "options", "negotiation")),
    ):
        found = {label: p.get(label, 0.0) for label in labels}
        heads[head] = {"none": 1.0 - sum(found.values()), **found}
    score = scored(Role.COUNSELLOR, seq, expressed=Expressed(**heads))
    return msgspec.structs.replace(score, stage=stage, late=late)


def observed(*turns: TurnScore) -> MitiCounts:
    counts = MitiCounts()
    for score in turns:
        counts.observe(score, AFTER)
    return counts


def found(*turns: TurnScore) -> MitiSummary:
    summary = miti_summary(observed(*turns))
    assert summary is not None
    return summary


def test_expected_counts_are_sums_of_probabilities() -> None:
    summary = found(
        score(1, open=0.75, complex=0.5, simple=0.25),
        score(3, closed=0.5, information=0.25),
        score(5, complex=0.5),
    )
    assert (summary.turns, summary.volleys) == (3, 3)
    assert summary.counts == {
        "question": 1.25,
        OPEN: 0.75,
        CLOSED: 0.5,
        SIMPLE: 0.25,
        COMPLEX: 1.0,
        INFORMATION: 0.25,
        SEEKING: 0.0,
        PERSUADE: 0.0,
        PERMITTED: 0.0,
    }
    values = {name: measure.value for name, measure in summary.measures.items()}
    assert values == {
        "reflection_to_question": 1.0,
        "complex_reflection_share": 0.8,
        "open_question_share": 0.6,
    }


def test_a_volley_has_at_most_one_question_and_one_reflection() -> None:
    """
    ::

        client     0           4
        counsellor    1  2  3     5
    """
    summary = found(
        score(1, open=1.0, simple=1.0),
        score(2, closed=1.0, complex=1.0),
        score(3, open=1.0, simple=1.0),
        score(5, closed=1.0),
    )
    assert (summary.turns, summary.volleys) == (4, 2)
    assert summary.counts["question"] == 2.0
    assert (summary.counts[OPEN], summary.counts[CLOSED]) == (1.0, 1.0)
    assert (summary.counts[SIMPLE], summary.counts[COMPLEX]) == (0.0, 1.0)


def test_advice_is_permitted_by_collaboration_sought_in_or_before_the_volley() -> None:
    summary = found(
        score(1, advice=1.0),  # no permission was sought
        score(3, negotiation=0.75, options=0.25),
        score(5, advice=0.5),
        score(7, advice=1.0),  # the permission is two volleys old
        score(9, negotiation=1.0),
        score(10, advice=1.0),
    )
    assert summary.counts[PERMITTED] == 1.5
    assert summary.counts[PERSUADE] == 2.0
    assert summary.counts[SEEKING] == 2.0
    assert (summary.mi_adherent, summary.mi_non_adherent) == (2.0, 2.0)


@pytest.mark.parametrize(
    ("volleys", "simple", "expected"),
    [
        (FEWEST_VOLLEYS, 1.0, Standing.FAIR),
        (FEWEST_VOLLEYS - 1, 1.0, None),
        (FEWEST_VOLLEYS, 0.5, Standing.BELOW),
    ],
)
def test_the_manuals_thresholds_apply_after_the_minimum_of_turns(
    volleys: int, simple: float, expected: Standing | None
) -> None:
    turns = [score(2 * n + 1, open=1.0, simple=simple) for n in range(volleys)]
    measure = found(*turns).measures["reflection_to_question"]
    assert (measure.value, measure.standing) == (simple, expected)
    assert (measure.fair, measure.good, measure.manual) == (1.0, 2.0, "MITI 4.2.1")


def test_each_threshold_names_its_manual() -> None:
    measures = found(score(1, open=1.0)).measures
    assert {name: (m.fair, m.good, m.manual) for name, m in measures.items()} == {
        "reflection_to_question": (1.0, 2.0, "MITI 4.2.1"),
        "complex_reflection_share": (0.4, 0.5, "MITI 4.2.1"),
        "open_question_share": (0.5, 0.7, "MITI 3.1.1"),
    }


def test_a_zero_denominator_gives_none_without_a_standing() -> None:
    turns = [score(2 * n + 1, open=0.04) for n in range(FEWEST_VOLLEYS)]
    measures = found(*turns).measures.values()
    assert {(measure.value, measure.standing) for measure in measures} == {(None, None)}


def test_a_good_standing_starts_at_the_good_threshold() -> None:
    turns = [score(2 * n + 1, closed=0.5, simple=0.5, complex=0.5) for n in range(FEWEST_VOLLEYS)]
    measures = found(*turns).measures
    assert {name: measure.standing for name, measure in measures.items()} == {
        "reflection_to_question": Standing.GOOD,
        "complex_reflection_share": Standing.GOOD,
        "open_question_share": Standing.BELOW,
    }


def test_a_late_turn_is_a_separate_volley() -> None:
    counts = observed(score(1, open=1.0), score(3, open=1.0))
    counts.observe(score(2, Stage.FINAL, late=True, open=1.0, advice=1.0), AFTER)
    summary = miti_summary(counts)
    assert summary is not None
    assert (summary.turns, summary.volleys) == (3, 3)
    assert (summary.counts["question"], summary.mi_non_adherent) == (3.0, 1.0)


def test_a_bundle_without_a_head_omits_its_codes() -> None:
    expressed = score(1, open=1.0).expressed
    bare = Expressed({name: p for name, p in expressed.items() if name != "input"})
    summary = found(msgspec.structs.replace(score(1), expressed=bare))
    assert summary.counts.keys() == {"question", OPEN, CLOSED, SIMPLE, COMPLEX}
    assert summary.mi_adherent is summary.mi_non_adherent is None
    none = Expressed({name: p for name, p in expressed.items() if name != "question"})
    assert miti_summary(observed(msgspec.structs.replace(score(1), expressed=none))) is None


PROBABILITIES = st.integers(0, 10).map(lambda tenths: tenths / 10)
LABELS = ("open", "simple", "complex", "advice", "negotiation")


@st.composite
def saying(draw: st.DrawFn) -> dict[str, float]:
    """One turn's probabilities; simple and complex sum to at most 1."""
    p = {label: draw(PROBABILITIES) for label in LABELS}
    p["complex"] = min(p["complex"], round(1.0 - p["simple"], 1))
    p["negotiation"] = min(p["negotiation"], round(1.0 - p["advice"], 1))
    return p


SAYINGS = st.lists(st.tuples(st.integers(1, 3), saying(), saying()), min_size=1, max_size=25)


@given(SAYINGS, st.integers(0, 4))
def test_replacing_provisional_scores_equals_final_ones_only(
    given_turns: list[tuple[int, dict[str, float], dict[str, float]]], after: int
) -> None:
    """A turn's final score comes at most ``after`` counsellor turns later."""
    seqs = list(itertools.accumulate(step for step, _, _ in given_turns))
    both, finals = MitiCounts(), MitiCounts()
    for place, (seq, (_, first, final)) in enumerate(zip(seqs, given_turns, strict=True)):
        both.observe(score(seq, **first), after)
        finals.observe(score(seq, **final), after)
        if place >= after:
            both.observe(
                score(seqs[place - after], Stage.FINAL, **given_turns[place - after][2]), 0
            )
    for seq, (_, _, final) in list(zip(seqs, given_turns, strict=True))[-after:]:
        both.observe(score(seq, Stage.FINAL, **final), after)
    assert miti_summary(both) == miti_summary(finals)


def brute(seqs: Sequence[int], turns_said: Sequence[dict[str, float]]) -> dict[str, float]:
    """The manual's rule, applied volley by volley without state."""
    volleys: list[list[dict[str, float]]] = []
    for place, seq in enumerate(seqs):
        if place and seqs[place - 1] == seq - 1:
            volleys[-1].append(turns_said[place])
        else:
            volleys.append([turns_said[place]])
    return {
        OPEN: sum(max(p["open"] for p in volley) for volley in volleys),
        COMPLEX: sum(max(p["complex"] for p in volley) for volley in volleys),
        SIMPLE: sum(
            max(p["simple"] + p["complex"] for p in volley) - max(p["complex"] for p in volley)
            for volley in volleys
        ),
        SEEKING: sum(max(p["negotiation"] for p in volley) for volley in volleys),
        "volleys": len(volleys),
    }


@given(SAYINGS, st.integers(0, 4))
def test_volleys_do_not_depend_on_the_number_of_kept_turns(
    given_turns: list[tuple[int, dict[str, float], dict[str, float]]], after: int
) -> None:
    seqs = list(itertools.accumulate(step for step, _, _ in given_turns))
    turns_said = [first for _, first, _ in given_turns]
    counts = MitiCounts()
    for seq, p in zip(seqs, turns_said, strict=True):
        counts.observe(score(seq, **p), after)
    summary = miti_summary(counts)
    assert summary is not None
    expected = brute(seqs, turns_said)
    assert summary.volleys == expected.pop("volleys")
    for name, value in expected.items():
        assert summary.counts[name] == pytest.approx(value, abs=1e-4), name
    advice = sum(summary.counts[name] for name in (PERSUADE, PERMITTED))
    assert 0.0 <= summary.counts[PERMITTED] <= advice <= summary.turns
    assert len(counts.latest) <= after + 1


@given(st.lists(saying(), min_size=3, max_size=3))
def test_merging_turns_of_a_volley_does_not_depend_on_when_they_settle(
    turns_said: list[dict[str, float]],
) -> None:
    codes = [miti.turn_codes(score(seq, **p)) for seq, p in enumerate(turns_said)]
    one, two, three = (found for found in codes if found is not None)
    assert merged(merged(one, two), three) == merged(one, merged(two, three))
    assert merged(one, one) == one
    assert all(0 <= value <= MILLION for value in merged(one, two).values())


def run(log: list[bytes], states: dict[str, Versioned] | None = None) -> BatchResult:
    pipeline = Pipeline(FakeScorer(), Policy(WindowPolicy()))
    return pipeline.process(received(log), {} if states is None else states)


def talk(seqs: Sequence[int], **changes: Any) -> list[bytes]:
    return [turn(seq=seq, **changes) for seq in seqs]


def test_only_sessions_of_the_approach_are_counted() -> None:
    [plain] = run(talk(range(8))).session_scores
    [score] = run(talk(range(8), approach=MI)).session_scores
    assert plain.miti is None
    assert score.miti is not None
    assert (score.miti.turns, score.miti.volleys) == (4, 4)
    assert score.miti.not_counted == list(NOT_COUNTED)


def test_client_turns_are_not_counted() -> None:
    [score] = run(talk(range(8), approach=MI, role="client")).session_scores
    assert score.miti is None


def test_an_approach_given_later_counts_from_that_turn() -> None:
    """Only final scores of earlier turns follow, and they replace nothing."""
    log = [*talk(range(6)), *talk(range(6, 12), approach=MI), end()]
    [score] = run(log).session_scores
    assert score.miti is not None
    assert score.miti.turns == 3
    states: dict[str, Versioned] = {}
    for event in log:
        [last] = run([event], states).session_scores
    assert last.miti == score.miti


def test_the_end_does_not_change_final_scores() -> None:
    states: dict[str, Versioned] = {}
    result = run([*talk(range(9), approach=MI), end()], states)
    finals = [
        each
        for each in result.turn_scores
        if each.stage is Stage.FINAL and each.role is Role.COUNSELLOR
    ]
    counts = MitiCounts()
    for each in finals:
        counts.observe(msgspec.structs.replace(each, stage=Stage.PROVISIONAL), AFTER)
    assert result.session_scores[0].miti == miti_summary(counts)


def test_states_keep_their_counts_and_old_ones_restart() -> None:
    states: dict[str, Versioned] = {}
    run(talk(range(9), approach=MI), states)
    state = states["s"].state
    assert state.miti is not None
    assert state.miti.boundary is not None or state.miti.latest
    assert unpack(pack(state)).miti == state.miti
    earlier = as_map(state)
    del earlier["miti"]
    found = unpack(msgspec.msgpack.encode(earlier))
    assert isinstance(found, SessionState)
    assert found.miti is None
    again = {"s": Versioned(found)}
    [score] = run(talk(range(9, 14), approach=MI), again).session_scores
    assert score.miti is not None
    assert score.miti.turns == 3
