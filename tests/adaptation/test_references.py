"""References refitted to an installation's sessions, and outcome risks rescaled."""

import numpy as np
import pytest

from stream_app.adaptation.crossvalidation import validate
from stream_app.adaptation.fitting import Candidate, Family, fit
from stream_app.adaptation.outcome_risks import of_outcome, parse_definition, rescaled
from stream_app.adaptation.references import SessionIndex, refit
from stream_app.core.measures.empathy import DomainEmpathy
from stream_app.core.measures.outcomes import log_odds, probability
from tests.fakes import FakeScorer

HERE = FakeScorer.empathy.domains["peer-support"]


def sessions(n: int, centre: float, groups: int = 10) -> list[SessionIndex]:
    values = np.random.default_rng(1).normal(centre, 0.05, n).clip(0, 1)
    return [SessionIndex(float(value), 0.5, i % groups) for i, value in enumerate(values)]


def measured(found: list[SessionIndex]):  # type: ignore[no-untyped-def]
    def measure(here: DomainEmpathy) -> list[SessionIndex]:
        return found

    return measure


def test_sessions_far_from_the_reference_move_it() -> None:
    found = refit("peer-support", HERE, measured(sessions(400, 0.2)))
    assert found is not None
    assert found.passes
    assert 0.1 < found.reference.low < 0.25
    assert found.reference.quantiles == sorted(found.reference.quantiles)
    assert found.reference.mean == pytest.approx(0.2, abs=0.03)


def test_too_few_sessions_or_counsellors_keep_the_reference() -> None:
    assert refit("peer-support", HERE, measured(sessions(49, 0.2))) is None
    assert refit("peer-support", HERE, measured(sessions(400, 0.2, groups=4))) is None


def test_sessions_of_the_reference_itself_do_not_pass() -> None:
    rng = np.random.default_rng(2)
    drawn = np.interp(rng.random(200), np.linspace(0, 1, 5), HERE.quantiles)
    own = [SessionIndex(float(value), 0.75, i % 10) for i, value in enumerate(drawn)]
    found = refit("peer-support", HERE, measured(own))
    assert found is not None
    assert not found.passes


@pytest.mark.parametrize(
    ("text", "value", "happened"),
    [
        ("a=rating<3", 2.9, True),
        ("a=rating<3", 3.0, False),
        ("a=rating<=3", 3.0, True),
        ("a=like>=1", 1.0, True),
        ("a=reply>-1", -1.0, False),
    ],
)
def test_definitions_of_outcomes(text: str, value: float, happened: bool) -> None:
    definition = parse_definition(text)
    assert definition.happened(value) is happened
    assert definition.words == text


def test_a_rescaled_risk_is_what_was_fitted() -> None:
    rng = np.random.default_rng(4)
    risk = rng.uniform(0.05, 0.95, 300)
    happened = rng.random(300) < risk**2
    cases = [
        (float(p), bool(y), i % 12) for i, (p, y) in enumerate(zip(risk, happened, strict=True))
    ]
    data = of_outcome("chat_failed", cases)
    assert validate(data).passes
    fitted = fit(data, Candidate(Family.SCALE, 1.0))
    model = FakeScorer.outcomes["chat_failed"]
    for words in (0.0, 3.0, 8.0):
        values = {"counsellor_log_words": words, "log_counsellor_turns": 1.0}
        before = probability(log_odds(model, values))
        after = probability(log_odds(rescaled(model, fitted), values))
        one = of_outcome("chat_failed", [(before, True, 0)])
        assert after == pytest.approx(fitted.predict(one)[0, 1], abs=1e-6)
    closing = rescaled(model, fitted).closing
    assert closing is not None
    assert closing.weights != (model.closing.weights if model.closing else {})
