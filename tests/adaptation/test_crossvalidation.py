"""Nested cross-validation, the gate, and figures that other libraries compute too."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa

from stream_app.adaptation.choosing import RECALIBRATION, folds, learn
from stream_app.adaptation.crossvalidation import validate
from stream_app.adaptation.estimates import clustered_mean, kappa, rank_correlation
from stream_app.adaptation.fitting import (
    Candidate,
    Family,
    Floats,
    HeadData,
    fit,
    log_loss,
    unchanged,
)
from stream_app.adaptation.head_results import evaluated
from stream_app.adaptation.thresholds import fit_abstention, fit_offsets
from stream_app.inference.bundles.recalibration import recalibrated, softmax


def data(n: int, shift: list[float], seed: int = 0, groups: int = 12) -> HeadData:
    """Raters whose log-odds differ from the head's by `shift`."""
    rng = np.random.default_rng(seed)
    own = softmax(rng.normal(0.0, 1.5, (n, 3)))
    truth = softmax(np.log(own) + np.array(shift))
    labels = np.array([rng.choice(3, p=row) for row in truth])
    return HeadData(
        head="a",
        labels=("none", "weak", "strong"),
        ordered=True,
        offsets=(),
        probabilities={"a": own, "b": rng.dirichlet(np.ones(4), n)},
        target=np.eye(3)[labels],
        weight=np.ones(n),
        group=rng.integers(0, groups, n),
        disputed=np.zeros(n, dtype=bool),
        blind=np.ones(n, dtype=bool),
    )


def test_a_known_shift_is_found_and_passes_the_gate() -> None:
    found = data(400, [0.0, -0.7, -1.5])
    validation, learnt = validate(found), learn(found, RECALIBRATION)
    assert validation.passes
    unseen = data(4000, [0.0, -0.7, -1.5], seed=1)
    after = log_loss(learnt.fit.predict(unseen), unseen.target).mean()
    assert after < log_loss(unseen.own, unseen.target).mean() - 0.05


@pytest.mark.parametrize("seed", range(6))
def test_raters_who_do_not_differ_do_not_pass(seed: int) -> None:
    assert not validate(data(120, [0.0, 0.0, 0.0], seed)).passes


@pytest.mark.parametrize("seed", range(8))
def test_raters_who_guess_do_not_pass(seed: int) -> None:
    """How often each label is given can be learned from noise; agreement cannot."""
    found = data(300, [0.0, 0.0, 0.0], seed)
    guessed = np.random.default_rng(seed + 100).choice(3, size=300, p=[0.7, 0.2, 0.1])
    noise = replace(found, target=np.eye(3)[guessed])
    validation = validate(noise)
    assert validation.gains
    assert not validation.passes


def test_a_head_says_how_many_ratings_and_raters_are_missing() -> None:
    few = evaluated(data(5, [0.0, 0.0, 0.0]), RECALIBRATION)
    assert few.verdict == "as shipped: fewer than 8 ratings, 3 missing"
    alone = evaluated(data(100, [0.0, 0.0, 0.0]), RECALIBRATION, raters=1)
    assert alone.verdict == "as shipped: fewer than 2 raters, 1 missing"


def test_rank_correlation_is_that_of_scipy() -> None:
    rng = np.random.default_rng(3)
    score, group = rng.normal(size=200), np.repeat(np.arange(10), 20)
    gold = (score + rng.normal(size=200) > 0).astype(int)
    found = rank_correlation(score, gold, group)
    assert found.value == pytest.approx(stats.spearmanr(score, gold).statistic)
    assert 0 < found.low < found.value < found.high
    assert np.isnan(rank_correlation(score, np.ones(200, dtype=int), group).low)


@pytest.mark.parametrize("family", Family)
def test_a_strong_prior_leaves_the_bundle_as_it_is(family: Family) -> None:
    found = data(50, [0.0, -2.0, -2.0])
    fitted = fit(found, Candidate(family, 1e9))
    assert np.abs(fitted.predict(found) - unchanged(found).predict(found)).max() < 1e-4


@pytest.mark.parametrize("family", Family)
def test_the_manifests_parameters_predict_what_was_fitted(family: Family) -> None:
    found = data(200, [0.0, -1.0, 1.0])
    fitted = fit(found, Candidate(family, 1.0))
    applied = recalibrated(found.probabilities, {"a": fitted.recalibration(found)})["a"]
    assert np.abs(applied - fitted.predict(found)).max() < 1e-4


def test_extreme_probabilities_are_fitted_without_overflow() -> None:
    found = data(60, [0.0, 0.0, 0.0])
    found.probabilities["a"][:] = [1.0, 0.0, 0.0]
    for family in Family:
        assert np.isfinite(fit(found, Candidate(family, 0.3)).predict(found)).all()
    assert np.isfinite(validate(found).log_loss).all()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=80))
def test_every_counsellor_is_in_exactly_one_fold(groups: list[int]) -> None:
    parts = [part.tolist() for part in folds(np.array(groups))]
    assert sorted(name for part in parts for name in part) == sorted(set(groups))
    assert len(parts) == min(5, len(set(groups)))


def test_one_giant_counsellor_does_not_stop_the_others() -> None:
    found = data(100, [0.0, 0.0, 0.0])
    found.group[:90] = 0
    found.group[90:] = np.arange(1, 11)
    assert np.isfinite(validate(found).log_loss_difference.low)


@pytest.mark.parametrize("ordered", [True, False])
def test_kappa_is_that_of_statsmodels(ordered: bool) -> None:
    table: Floats = np.array([[20.0, 5.0, 1.0], [3.0, 11.0, 4.0], [0.0, 2.0, 9.0]])
    expected = cohens_kappa(table, wt="quadratic" if ordered else None).kappa
    assert float(kappa(table, ordered=ordered)) == pytest.approx(expected)


def test_the_interval_of_correlated_rows_is_wider() -> None:
    rng = np.random.default_rng(0)
    by_group = np.repeat(rng.normal(size=20), 10)
    together = clustered_mean(by_group, np.repeat(np.arange(20), 10))
    apart = clustered_mean(by_group, np.arange(200))
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_a_single_group_has_no_interval() -> None:
    assert np.isnan(clustered_mean(np.ones(3), np.zeros(3, dtype=np.int64)).high)


def test_thresholds_stay_below_a_hundred_ratings() -> None:
    found = data(99, [0.0, -1.0, -1.0])
    gold = found.target.argmax(axis=-1)
    assert fit_offsets(found.own, gold, (0.0, 0.1, 0.2), ordered=True) == (0.0, 0.1, 0.2)
    assert fit_abstention(found.own.max(axis=-1), np.ones(99, dtype=bool)) is None


def test_abstention_answers_at_least_seven_tenths() -> None:
    confidence = np.linspace(0.4, 1.0, 200)
    assert fit_abstention(confidence, np.ones(200, dtype=bool)) == 0.0
    limit = fit_abstention(confidence, np.zeros(200, dtype=bool))
    assert limit is not None
    assert (confidence >= limit).mean() == pytest.approx(0.7, abs=0.01)
