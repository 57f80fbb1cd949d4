"""Errors are clustered by counsellor, and by client where one returns to somebody else."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks import coverage
from stream_app.analytics.questions import over_time
from stream_app.analytics.questions.clustered import Fit, gee
from stream_app.analytics.questions.over_time import POOLED, SAME_MIX
from stream_app.analytics.questions.result import Context
from stream_app.demo.simulator import simulate

COUNSELLORS, CLIENTS, EACH = 30, 40, 6


def _fit(seed: int, *, by_client: bool) -> Fit:
    """A measure that clients bring with them, and an attribute of theirs that does nothing."""
    draw = np.random.default_rng(seed)
    client = np.repeat(np.arange(CLIENTS), EACH)
    counsellor = draw.integers(0, COUNSELLORS, len(client))
    measure = draw.standard_normal(CLIENTS)[client] + 0.3 * draw.standard_normal(len(client))
    design = pd.DataFrame({"attribute": (client % 2).astype(float)})
    return gee(measure, design, counsellor, clients=client if by_client else None)


def _finds(seed: int, *, by_client: bool) -> bool:
    return _fit(seed, by_client=by_client).terms["attribute"].p < 0.05


def test_returning_clients_are_no_new_evidence() -> None:
    """Of 60 draws by chance 3; by counsellor alone, every third finds what is not there."""
    alone = sum(_finds(seed, by_client=False) for seed in range(60))
    both = sum(_finds(seed, by_client=True) for seed in range(60))
    assert alone >= 15
    assert both <= 7


def test_clients_of_one_counsellor_change_nothing() -> None:
    draw = np.random.default_rng(1)
    client = np.repeat(np.arange(CLIENTS), EACH)
    design = pd.DataFrame({"x": draw.standard_normal(len(client))})
    measure = draw.standard_normal(len(client))
    of_one = client % COUNSELLORS
    plain = gee(measure, design, of_one).terms["x"]
    assert gee(measure, design, of_one, clients=client).terms["x"] == plain


@pytest.mark.parametrize("family", ["poisson", "binomial"])
def test_variances_never_shrink(family: str) -> None:
    draw = np.random.default_rng(2)
    client = np.repeat(np.arange(CLIENTS), EACH)
    counsellor = draw.integers(0, COUNSELLORS, len(client))
    design = pd.DataFrame({"x": draw.standard_normal(len(client))})
    happened = (draw.random(len(client)) < 0.4).astype(float)
    one = gee(happened, design, counsellor, family)
    both = gee(happened, design, counsellor, family, clients=client)
    assert all((both.terms[name].error or 0) >= (one.terms[name].error or 0) for name in one.terms)


def test_a_trend_of_the_mix_is_shown_beside_the_trend_at_the_same_mix() -> None:
    """Nobody changes; sessions move to chat, where the index is higher."""
    world = replace(coverage.WORLDS["phone to chat"], seed=2, phone_level=-0.4)
    found = over_time.analyse(simulate(world).frames, Context(), measures=("empathy_index",))
    trend = {each.name: each for each in found.estimates if each.group == "all"}
    assert (trend[POOLED].low or 0) > 0.002
    assert (trend[SAME_MIX].low or 0) < 0 < (trend[SAME_MIX].high or 0)
    [said] = [note for note in found.notes if "Simpson" in note]
    assert SAME_MIX in said


def test_no_paradox_is_told_where_there_is_none() -> None:
    world = replace(coverage.WORLDS["slopes"], seed=2)
    found = over_time.analyse(simulate(world).frames, Context(), measures=("empathy_index",))
    assert not [note for note in found.notes if "Simpson" in note]
