"""The empathy index: values of turns, changes of index and risk, and their wording."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Expressed, Level
from stream_app.core.measures.baselines import Baseline, Pinned, Usual
from stream_app.core.measures.empathy import (
    COUNSELLOR_FEATURES,
    ENOUGH_SESSIONS,
    LOWEST_TENTH,
    SHOWN,
    AnswerModel,
    DomainEmpathy,
    EmpathyModel,
    EmpathySummary,
    client_features,
    counsellor_features,
    session_empathy,
    summary,
    turn_value,
)
from stream_app.core.measures.exchanges import KEPT, MILLION, MISSED_KEPT, Exchanges, Weighing
from stream_app.core.measures.watch import Facts
from tests.fakes import scored

HERE = DomainEmpathy(
    service="peer support",
    messages="emotional messages",
    opportunity={"distress": 1.0, "change_or_sustain_talk": 0.5},
    answer=AnswerModel(0.1, {"emotional_reactions": 0.5, "advice_unacknowledged": -0.2}),
    weighing=Weighing(floor=0.2, opportunity=0.5, answered=0.4),
    mean=0.5,
    between=0.2,
    within=0.3,
    quantiles=[0.1, 0.4, 0.5, 0.6, 0.9],
    low=0.25,
    answered_share=0.75,
)
ELSEWHERE = replace(
    HERE, service="customer service", mean=0.7, low=0.6, opportunity={"change_or_sustain_talk": 1.0}
)
MODEL = EmpathyModel(
    domains={"peer-support": HERE, "customer-service": ELSEWHERE},
    approaches={},
    default="peer-support",
    change=0.05,
    min_answers=3,
    enter=0.4,
    exit=0.3,
)
SHARES = st.integers(0, 10).map(lambda tenths: tenths / 10)
PAIRS = st.lists(st.tuples(SHARES, SHARES), min_size=1, max_size=30)


def exchanges(*pairs: tuple[float, float]) -> Exchanges:
    """A session of exchanges by (opportunity, answer)."""
    found = Exchanges()
    for place, (opportunity, answer) in enumerate(pairs):
        for seq, role, value in (
            (2 * place, Role.CLIENT, opportunity),
            (2 * place + 1, Role.COUNSELLOR, answer),
        ):
            found.observe(role, seq, round(value * MILLION), 3, HERE.weighing)
    return found


def of(
    *pairs: tuple[float, float],
    model: EmpathyModel = MODEL,
    domain: str | None = None,
    usual: Usual | None = None,
) -> EmpathySummary:
    found = summary(exchanges(*pairs), model, model.of(domain, None), usual)
    assert found is not None
    return found


def risk(*pairs: tuple[float, float], model: EmpathyModel = MODEL) -> float:
    found = of(*pairs, model=model).risk
    assert found is not None
    return found


def level(p: float) -> Level:
    """A mechanism whose strong level has this probability."""
    return Level(2 if p > 0.5 else 0, [1.0 - p, 0.0, p])


def test_the_opportunity_of_a_client_turn_is_its_largest_weight() -> None:
    talk = {"change": 0.5, "neutral": 0.2, "sustain": 0.3}
    score = scored(Role.CLIENT, client={"talk_type": talk, "distress": {"no": 0.7, "yes": 0.3}})
    assert client_features(score) == {
        "distress": 0.3,
        "change_or_sustain_talk": 0.8,
        "opportunity": 0.0,
    }
    assert turn_value(score, HERE) == 400_000
    assert turn_value(score, ELSEWHERE) == 800_000


def test_without_its_heads_a_client_turn_is_not_an_opportunity() -> None:
    assert turn_value(scored(Role.CLIENT), HERE) == 0


def test_an_answer_is_the_weighted_sum_of_its_features() -> None:
    score = scored(
        Role.COUNSELLOR,
        expressed=Expressed(
            emotional_reactions=Level(1, [0.2, 0.6, 0.2]), input={"advice": 0.5, "none": 0.5}
        ),
    )
    found = counsellor_features(score)
    assert found["emotional_reactions"] == pytest.approx(0.5)
    assert found["advice"] == 0.5
    assert found["advice_unacknowledged"] == pytest.approx(0.5 * 0.2)
    assert turn_value(score, HERE) == pytest.approx((0.1 + 0.25 - 0.02) * MILLION, abs=1)


def test_every_feature_has_a_value_with_and_without_its_head() -> None:
    nothing = counsellor_features(scored(Role.COUNSELLOR))
    assert set(COUNSELLOR_FEATURES) <= nothing.keys()
    assert set(nothing.values()) == {0.0}


@pytest.mark.parametrize(
    ("parts", "missing"),
    [
        ({}, 1.0),
        ({"explorations": level(1.0)}, 1.0),
        ({"emotional_reactions": level(0.75)}, 0.25),
        ({"interpretations": level(0.5)}, 0.5),
        ({"reflection": {"none": 0.2, "simple": 0.5, "complex": 0.3}}, 0.2),
    ],
)
def test_advice_is_unacknowledged_without_signs_of_understanding(
    parts: dict[str, object], missing: float
) -> None:
    given = {"input": {"advice": 0.4, "information": 0.6}, **parts}
    found = counsellor_features(scored(Role.COUNSELLOR, expressed=Expressed(**given)))
    assert found["advice_unacknowledged"] == pytest.approx(0.4 * missing)
    assert found["information_unacknowledged"] == pytest.approx(0.6 * missing)


@pytest.mark.parametrize("intercept", [-5.0, 5.0])
def test_an_answer_stays_within_its_scale(intercept: float) -> None:
    here = replace(HERE, answer=AnswerModel(intercept, {}))
    assert turn_value(scored(Role.COUNSELLOR), here) == (MILLION if intercept > 0 else 0)


def test_a_head_that_abstains_changes_nothing() -> None:
    """Its probabilities are calibrated; omitting them would lower the turn's value."""
    expressed = Expressed(emotional_reactions=Level(0, [0.4, 0.3, 0.3]))
    sure = scored(Role.COUNSELLOR, expressed=expressed)
    unsure = scored(Role.COUNSELLOR, expressed=expressed, abstained=["emotional_reactions"])
    assert (
        turn_value(unsure, HERE)
        == turn_value(sure, HERE)
        > turn_value(scored(Role.COUNSELLOR), HERE)
    )


def test_without_a_model_or_an_answer_there_is_no_index() -> None:
    assert session_empathy(exchanges((1.0, 1.0)), Facts(), None) is None
    assert session_empathy(Exchanges(), Facts(), MODEL) is None
    waiting = Exchanges()
    waiting.observe(Role.CLIENT, 0, MILLION, 3, HERE.weighing)
    assert session_empathy(waiting, Facts(), MODEL) is None


def test_one_exchange_moves_the_index_from_the_mean_towards_its_answer() -> None:
    """A normal prior (mean 0.5, sd 0.2) and one answer of full weight (1.0, sd 0.3)."""
    found = of((1.0, 1.0))
    prior, data = 1 / 0.2**2, 1 / 0.3**2
    index = (0.5 * prior + 1.0 * data) / (prior + data)
    half = 1.959964 / math.sqrt(prior + data)
    assert found.index == pytest.approx(index)
    assert (found.low, found.high) == pytest.approx((index - half, index + half))


def test_an_answer_has_more_weight_after_a_stronger_opportunity() -> None:
    """The same two answers; the warm one follows the distress or the small talk."""
    met, missed = of((1.0, 0.9), (0.0, 0.1)), of((1.0, 0.1), (0.0, 0.9))
    assert met.index > 0.5 > missed.index
    even = of((0.5, 0.9), (0.5, 0.1))
    assert even.index == pytest.approx(0.5)


def test_small_talk_has_the_minimum_weight() -> None:
    prior, data = 1 / 0.2**2, 0.2 / 0.3**2
    assert of((0.0, 1.0)).index == pytest.approx((0.5 * prior + data) / (prior + data))


@settings(deadline=None)
@given(PAIRS, st.integers(1, 10))
def test_the_risk_rises_when_the_latest_answer_falls(
    pairs: list[tuple[float, float]], steps: int
) -> None:
    model = replace(MODEL, min_answers=1)
    opportunity, answer = pairs[-1]
    colder = [*pairs[:-1], (opportunity, max(0.0, answer - steps / 10))]
    before, after = of(*pairs, model=model), of(*colder, model=model)
    if colder == pairs:
        assert before == after
        return
    assert after.index < before.index
    assert after.recent < before.recent
    assert before.risk is not None
    assert after.risk is not None
    assert after.risk > before.risk


def test_after_a_change_the_index_follows_the_later_answers() -> None:
    cold, warm = (1.0, 0.0), (1.0, 1.0)
    turning_cold, turning_warm = [warm] * 4 + [cold] * 4, [cold] * 4 + [warm] * 4
    assert of(*turning_cold).index == pytest.approx(of(*turning_warm).index)
    assert of(*turning_cold).recent < of(*turning_cold).index < of(*turning_warm).recent
    assert risk(*turning_cold) > 0.6 > 0.1 > risk(*turning_warm)


def test_without_changes_of_level_all_exchanges_have_equal_weight() -> None:
    """One level with a normal prior; the threshold is 0.25."""
    answers = [0.3, 0.2, 0.1]
    prior, data = 1 / 0.2**2, 3.0 / 0.3**2
    centre = (0.5 * prior + sum(answers) / 0.3**2) / (prior + data)
    z = (0.25 - centre) * math.sqrt(prior + data)
    expected = 0.5 * (1 + math.erf(z / math.sqrt(2)))
    steady = replace(MODEL, change=1e-12)
    found = of((1.0, 0.3), (1.0, 0.2), (1.0, 0.1), model=steady)
    assert found.risk == pytest.approx(expected)
    assert found.recent == pytest.approx(centre) == pytest.approx(found.index)


def test_the_probability_of_a_change_equals_an_enumeration_of_its_places() -> None:
    """Two exchanges: one level, or a change between them, by the normal marginal likelihoods."""
    answers, change = (0.9, 0.1), 0.05
    between, within = 0.2**2, 0.3**2

    def log_likelihood(*values: float) -> float:
        """Of values around one unknown level: their covariance is within * I + between."""
        n = len(values)
        rest = [value - 0.5 for value in values]
        squares = sum(value**2 for value in rest) / within
        squares -= between * sum(rest) ** 2 / (within * (within + n * between))
        determinant = within ** (n - 1) * (within + n * between)
        return -0.5 * (squares + math.log(determinant))

    one = log_likelihood(*answers) + math.log1p(-change)
    two = sum(log_likelihood(value) for value in answers) + math.log(change)
    share = 1.0 / (1.0 + math.exp(one - two))

    def level(*values: float) -> float:
        n = len(values)
        return (0.5 / between + sum(values) / within) / (1 / between + n / within)

    expected = share * level(answers[1]) + (1 - share) * level(*answers)
    assert of(*((1.0, answer) for answer in answers)).recent == pytest.approx(expected)


def test_settled_exchanges_are_one_segment_that_a_change_may_follow() -> None:
    long = [(1.0, 0.9)] * 30
    assert of(*long).recent == pytest.approx(of(*long).index, abs=0.02)
    assert risk(*long, *[(1.0, 0.0)] * 4) > 0.5 > risk(*long, *[(1.0, 0.9)] * 4)
    prior, data = 1 / 0.2**2, KEPT / 0.3**2
    cold = of(*long, *[(1.0, 0.0)] * KEPT)
    assert cold.recent == pytest.approx(0.5 * prior / (prior + data), abs=0.003)


def test_a_threshold_at_the_recent_index_gives_a_risk_of_one_half() -> None:
    here = replace(HERE, low=0.5)
    model = replace(MODEL, domains={"peer-support": here})
    assert risk(*[(1.0, 0.5)] * 4, model=model) == pytest.approx(0.5)


@pytest.mark.parametrize("answered", range(1, 6))
def test_there_is_no_risk_before_enough_answers(answered: int) -> None:
    found = of(*[(1.0, 0.0)] * answered)
    assert (found.risk is None) is (answered < MODEL.min_answers)
    assert 0.0 < found.index < 0.5


def test_settled_answers_count_towards_the_minimum_for_a_risk() -> None:
    model = replace(MODEL, min_answers=25)
    assert of(*[(1.0, 0.5)] * 24, model=model).risk is None
    assert of(*[(1.0, 0.5)] * 25, model=model).risk is not None


def test_the_interval_shrinks_with_every_exchange() -> None:
    widths = []
    for number in range(1, 40):
        found = of(*[(0.5, 0.5)] * number)
        assert found.low < found.index < found.high
        widths.append(found.high - found.low)
    assert all(later < earlier for earlier, later in itertools.pairwise(widths))
    assert widths[-1] < widths[0] / 2


@settings(deadline=None)
@given(PAIRS)
def test_everything_stays_within_its_scale(pairs: list[tuple[float, float]]) -> None:
    found = of(*pairs, model=replace(MODEL, min_answers=1))
    assert found.risk is not None
    for value in (found.index, found.low, found.high, found.recent, found.risk):
        assert 0.0 <= value <= 1.0
    assert 0.0 <= found.percentile <= 100.0


@settings(deadline=None)
@given(st.lists(st.tuples(SHARES, SHARES), min_size=1, max_size=60))
def test_the_index_of_a_long_session_covers_all_its_exchanges(
    pairs: list[tuple[float, float]],
) -> None:
    """Settled exchanges, kept as sums, count as if they were kept individually."""
    weights = [0.2 + 0.8 * opportunity for opportunity, _ in pairs]
    weighted = sum(w * answer for w, (_, answer) in zip(weights, pairs, strict=True))
    prior, data = 1 / 0.2**2, sum(weights) / 0.3**2
    centre = (0.5 * prior + weighted / 0.3**2) / (prior + data)
    found = of(*pairs)
    assert found.index == pytest.approx(centre, abs=1e-5)
    called = [answer for opportunity, answer in pairs if opportunity >= 0.5]
    assert found.opportunities == len(called)
    assert found.met == sum(answer >= 0.4 for answer in called)


def reaching(index: float, model: EmpathyModel = MODEL) -> EmpathySummary:
    """A session with exactly this index: its answers equal the mean, which is this value."""
    domains = {"peer-support": replace(HERE, mean=index)}
    return of((1.0, index), model=replace(model, domains=domains))


@pytest.mark.parametrize(
    ("index", "percentile"),
    [
        (0.05, 0.0),
        (0.1, 0.0),
        (0.25, 12.5),
        (0.4, 25.0),
        (0.5, 50.0),
        (0.55, 62.5),
        (0.6, 75.0),
        (0.9, 100.0),
        (0.95, 100.0),
    ],
)
def test_the_percentile_interpolates_between_quantiles(index: float, percentile: float) -> None:
    found = reaching(index)
    assert found.index == pytest.approx(index)
    assert found.percentile == pytest.approx(percentile, abs=0.01)


def test_equal_quantiles_cause_no_division_by_zero() -> None:
    here = replace(HERE, mean=0.5, quantiles=[0.5, 0.5, 0.5])
    model = replace(MODEL, domains={"peer-support": here})
    assert of((1.0, 0.4), model=model).percentile == 0.0
    assert of((1.0, 0.6), model=model).percentile == 100.0


def test_the_channel_is_the_reference_once_enough_sessions_have_ended() -> None:
    pairs = [(1.0, 0.5)] * 4
    without = of(*pairs)
    few = of(*pairs, usual=Usual(ENOUGH_SESSIONS - 1, 0.8, 0.1))
    enough = of(*pairs, usual=Usual(ENOUGH_SESSIONS, 0.8, 0.1))
    assert few == without
    assert enough.index > without.index
    assert enough.risk is not None
    assert without.risk is not None
    assert enough.risk > without.risk


def test_the_reference_of_a_channel_is_a_normal_distribution() -> None:
    usual = Usual(80, 0.6, 0.15)
    found = of(*[(1.0, 0.6)] * 3, usual=usual)
    assert found.index == pytest.approx(0.6)
    assert found.percentile == pytest.approx(50.0)
    tenth = Usual(80, 0.6 + LOWEST_TENTH * 0.15, 0.15)
    assert of(*[(1.0, 0.6)] * 500, usual=tenth).percentile == pytest.approx(10.0, abs=0.2)


def test_a_channel_without_variance_is_still_a_reference() -> None:
    below = of(*[(1.0, 0.2)] * 3, usual=Usual(50, 0.6, 0.0))
    above = of(*[(1.0, 0.9)] * 3, usual=Usual(50, 0.6, 0.0))
    assert (below.percentile, above.percentile) == (pytest.approx(0.0), pytest.approx(100.0))
    assert below.risk is not None
    assert above.risk is not None
    assert below.risk > 0.8 > 0.2 > above.risk


def test_the_sessions_channel_is_the_reference() -> None:
    usual = Usual(ENOUGH_SESSIONS, 0.9, 0.05)
    pinned = Pinned(channel=Baseline(index=usual), counsellor=Baseline(index=Usual(99, 0.1, 0.1)))
    found = session_empathy(exchanges((1.0, 0.5)), Facts(baselines=pinned), MODEL)
    assert found == of((1.0, 0.5), usual=usual)
    without = Pinned(channel=Baseline(risk=usual, empathy=usual))
    plain = session_empathy(exchanges((1.0, 0.5)), Facts(baselines=without), MODEL)
    assert plain == of((1.0, 0.5))


def test_each_domain_has_its_reference_and_others_use_the_default() -> None:
    pairs = [(1.0, 0.5)] * 4
    known = of(*pairs, domain="customer-service")
    assert known.index > of(*pairs, domain="peer-support").index
    assert of(*pairs, domain="elsewhere") == of(*pairs, domain=None) == of(*pairs)
    assert of(*pairs) == of(*pairs, domain="peer-support")


METHOD = replace(HERE, service="motivational interviewing", mean=0.9, low=0.8)
WITH_METHOD = replace(MODEL, approaches={"motivational-interviewing": METHOD})


@pytest.mark.parametrize("domain", [None, "peer-support", "customer-service", "elsewhere"])
def test_a_session_with_an_approach_uses_the_approachs_reference(domain: str | None) -> None:
    facts = Facts(domain, approach="motivational-interviewing")
    found = session_empathy(exchanges(*[(1.0, 0.5)] * 4), facts, WITH_METHOD)
    alone = session_empathy(exchanges(*[(1.0, 0.5)] * 4), Facts(domain), WITH_METHOD)
    assert found == summary(exchanges(*[(1.0, 0.5)] * 4), WITH_METHOD, METHOD)
    assert alone == of(*[(1.0, 0.5)] * 4, domain=domain)
    assert found != alone


def test_an_approach_without_a_reference_uses_the_domains() -> None:
    facts = Facts("customer-service", approach="another")
    found = session_empathy(exchanges((1.0, 0.5)), facts, WITH_METHOD)
    assert found == of((1.0, 0.5), domain="customer-service")


def test_opportunities_are_counted_and_missed_ones_listed() -> None:
    found = of((0.5, 0.4), (0.49, 0.0), (1.0, 0.39), (0.9, 1.0), (0.8, 0.0))
    assert (found.opportunities, found.met) == (4, 2)
    assert found.missed == [4, 8]
    assert found.answered_share == 0.5
    assert found.recent_opportunities == [(0, True), (4, False), (6, True), (8, False)]


def test_without_an_opportunity_the_answered_share_is_none() -> None:
    found = of((0.1, 0.9), (0.0, 0.0))
    assert found.answered_share is None
    assert found.missed == found.recent_opportunities == []


def test_only_the_latest_missed_opportunities_are_listed() -> None:
    found = of(*[(1.0, 0.0)] * 100)
    assert found.opportunities == 100
    assert found.missed == list(range(200 - 2 * MISSED_KEPT, 200, 2))
    assert len(found.recent_opportunities) == SHOWN


def test_the_nth_use_of_a_template_counts_the_nth_part() -> None:
    level = Level(level=2, probabilities=[0.0, 0.0, 1.0], rationale=[])
    warm = scored(Role.COUNSELLOR, expressed=Expressed({"emotional_reactions": level}))
    asked = scored(Role.CLIENT, client={"distress": {"no": 0.2, "yes": 0.8}})
    first = turn_value(warm, HERE)

    assert first > 0
    assert [turn_value(warm, HERE, uses) for uses in (1, 2, 4)] == [
        first,
        round(first / 2),
        round(first / 4),
    ]
    assert turn_value(asked, HERE, uses=3) == turn_value(asked, HERE), "a client's words count"
