"""The session's aggregates of head outputs and speech."""

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_app.contracts.events import Role
from stream_app.contracts.scores import AlertState, Expressed, Level
from stream_app.core.measures.aggregates import (
    LARGEST_LOG_ODDS,
    MILLION,
    Aggregates,
    contribution,
    evidence,
)
from stream_app.core.measures.outcomes import OutcomeModel, features, log_odds, outcome_risks
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline, Received
from stream_app.core.rules.alerts import AlertStatus
from stream_app.core.session.environment import Policy
from stream_app.core.session.session_state import Versioned, pack, unpack
from tests import fakes
from tests.fakes import FakeScorer, end, received, scored, turn

AFTER = 3
EVIDENCE = st.dictionaries(
    st.sampled_from(["sympathy", "satisfaction"]), st.integers(-8 * MILLION, 8 * MILLION)
)
ROLES = st.sampled_from([Role.CLIENT, Role.COUNSELLOR])


@given(st.lists(st.tuples(ROLES, EVIDENCE, EVIDENCE), min_size=1, max_size=30))
def test_final_outputs_of_both_roles_replace_provisional_ones_exactly(
    turns: list[tuple[Role, dict[str, int], dict[str, int]]],
) -> None:
    both, finals = Aggregates(), Aggregates()
    for seq, (role, provisional, _) in enumerate(turns):
        if seq >= AFTER:
            earlier, _, final = turns[seq - AFTER]
            both.observe(fakes.contribution(seq - AFTER, evidence=final), AFTER, role=earlier)
        both.observe(fakes.contribution(seq, evidence=provisional), AFTER, role=role)
    for seq in range(max(0, len(turns) - AFTER), len(turns)):
        both.observe(fakes.contribution(seq, evidence=turns[seq][2]), AFTER, role=turns[seq][0])
    for seq, (role, _, final) in enumerate(turns):
        finals.observe(fakes.contribution(seq, evidence=final), AFTER, role=role)
    assert both == finals


def test_means_cover_all_turns_and_the_last_five_of_the_role() -> None:
    aggregates = Aggregates()
    for seq in range(10):
        value = MILLION if seq >= 5 else 0
        aggregates.observe(fakes.contribution(seq, evidence={"sympathy": value}), AFTER)
        aggregates.observe(
            fakes.contribution(100 + seq, evidence={"satisfaction": -value}),
            AFTER,
            role=Role.CLIENT,
        )
    found = aggregates.summary().evidence
    assert (found["sympathy"].mean, found["sympathy"].recent) == (0.5, 1.0)
    assert (found["satisfaction"].mean, found["satisfaction"].recent) == (-0.5, -1.0)


def test_evidence_of_a_counsellor_turn() -> None:
    score = scored(
        Role.COUNSELLOR,
        expressed=Expressed(
            explorations=Level(1, [0.25, 0.5, 0.25]), strategy={"question": 0.75, "others": 0.25}
        ),
        perceived={"sympathy": 0.5, "helpfulness": 1.0},
    )
    assert evidence(score) == {
        "sympathy": 0,
        "helpfulness": 8 * MILLION,
        "expected.explorations": MILLION,
        "strategy.question": 750_000,
        "strategy.others": 250_000,
    }
    kept = contribution(score)
    assert kept.levels == (None, None, 1)
    assert kept.expected == (0, 0, MILLION)
    assert kept.shown == (0, 0, 750_000)


def test_an_abstaining_head_shows_no_level_but_its_probabilities_count() -> None:
    score = scored(
        Role.COUNSELLOR,
        expressed=Expressed(interpretations=Level(0, [0.5, 0.3, 0.2])),
        abstained=["interpretations"],
    )
    kept = contribution(score)
    assert kept.levels == (None, None, None)
    assert (kept.expected[1], kept.shown[1]) == (700_000, 500_000)


def test_evidence_of_a_client_turn() -> None:
    score = scored(
        Role.CLIENT,
        client={
            "satisfaction": {"no": 0.2, "yes": 0.8},
            "talk_type": {"change": 0.5, "neutral": 0.5, "sustain": 0.0},
        },
    )
    kept = evidence(score)
    assert kept["satisfaction"] == round(math.log(4) * MILLION)
    assert kept["talk_type.change"] == MILLION // 2


@given(st.floats(0, 1))
def test_log_odds_are_bounded(p: float) -> None:
    kept = evidence(scored(Role.COUNSELLOR, perceived={"sympathy": p}))["sympathy"]
    assert abs(kept) <= LARGEST_LOG_ODDS * MILLION


def test_lengths_short_turns_repetitions_and_recent_words() -> None:
    aggregates = Aggregates()
    for role, words in (
        (Role.CLIENT, 2),
        (Role.CLIENT, 30),
        (Role.COUNSELLOR, 4),
        (Role.COUNSELLOR, 5),
        (Role.CLIENT, 10),
        (Role.CLIENT, 20),
    ):
        aggregates.count_turn(role, words, late=False)
    aggregates.count_turn(Role.CLIENT, 99, late=True)
    client = aggregates.summary().client
    assert client.turns == 5
    assert client.short_share == 0.2
    assert client.repeat_share == 0.4
    assert client.log_recent == pytest.approx(math.log1p(20))
    assert client.log_longest == math.log1p(99)
    assert aggregates.summary().counsellor.short_share == 0.5


def test_a_state_round_trips_through_its_row() -> None:
    states: dict[str, Versioned] = {}
    pipeline = Pipeline(FakeScorer(), Policy(WindowPolicy()))
    pipeline.process(received([turn(seq=seq) for seq in range(12)]), states)
    state = states["s"].state
    assert state.aggregates.client_latest
    assert unpack(pack(state)) == state


@settings(deadline=None)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=8))
def test_client_evidence_does_not_depend_on_the_batches(sizes: list[int]) -> None:
    log: list[Received] = received([*(turn(seq=seq) for seq in range(20)), end()])

    def run(cuts: list[int]) -> Versioned:
        states: dict[str, Versioned] = {}
        pipeline = Pipeline(FakeScorer(), Policy(WindowPolicy()))
        start = 0
        for size in [*cuts, len(log)]:
            pipeline.process(log[start : start + size], states)
            start += size
        return states["s"]

    assert run(sizes).state.aggregates == run([]).state.aggregates


def test_bounds_and_weights_that_change_with_the_turns() -> None:
    aggregates = Aggregates()
    for seq in range(10):
        aggregates.observe(fakes.contribution(seq, evidence={"sympathy": 3 * MILLION}), AFTER)
    values = features(aggregates.summary())
    model = OutcomeModel(
        intercept=0.5,
        weights={"sympathy_mean": 2.0},
        domain="a",
        turn_weights={"sympathy_mean": 100.0},
        bounds={"sympathy_mean": (-1.0, 1.5)},
    )
    assert log_odds(model, values) == pytest.approx(0.5 + 2.0 * 1.5)
    later = {**values, "log_counsellor_turns": math.log(22)}
    change = 100.0 * 1.5 * math.log(2)
    assert log_odds(model, later) == pytest.approx(3.5 + change)


def test_a_head_without_scores_contributes_nothing() -> None:
    weights = {"satisfaction_mean": 5.0}
    model = OutcomeModel(intercept=0.0, weights=weights, domain="a", min_counsellor_turns=0)
    assert outcome_risks({"it": model}, Aggregates().summary(), "a", None) == {"it": 0.5}


def test_an_alert_of_a_release_with_one_rule_continues_under_its_name() -> None:
    """Its episode count continues, so that no alert id is reused."""
    alert = {"state": "firing", "episode": 2, "turns_in_state": 3}
    state = unpack(msgspec.msgpack.encode({"session_id": "s", "bundle": "b", "alert": alert}))
    assert state.alerts == {
        "low-empathy-risk": AlertStatus(AlertState.FIRING, episode=2, turns_in_state=3)
    }
    assert unpack(pack(state)) == state
