"""Restricted outputs: for which sessions, and what a session does without them."""

from typing import Any

import pytest

from stream_app.contracts.scores import SessionStatus
from stream_app.core.measures.heads import Dimension
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.pipeline.shadow import Shadow
from stream_app.core.session.environment import Policy
from stream_app.core.session.restrictions import NO_RESTRICTIONS, parse_restrictions
from tests.fakes import FakeScorer, end, received, turn

CLIENT = {Dimension.CLIENT, Dimension.OUTCOME}
PERCEIVED = {Dimension.PERCEIVED}


@pytest.mark.parametrize(
    ("given", "facts", "expected"),
    [
        ({}, (None, None, None), set()),
        ({"all": ["perceived"]}, ("counselling", "web", "north"), PERCEIVED),
        ({"all": ["perceived"], "team:north": ["client"]}, (None, None, "south"), PERCEIVED),
        ({"team:north": ["client"]}, (None, None, "north"), CLIENT),
        ({"team:north": ["client"]}, (None, None, None), CLIENT),
        ({"domain:counselling": ["client"]}, ("peer-support", None, None), set()),
        ({"channel:eu:web": ["client", "perceived"]}, (None, "eu:web", None), CLIENT | PERCEIVED),
    ],
)
def test_a_session_has_the_restrictions_of_its_groups_and_of_unknown_ones(
    given: dict[str, list[str]], facts: tuple[Any, Any, Any], expected: set[Dimension]
) -> None:
    assert parse_restrictions(given).of(*facts) == expected


@pytest.mark.parametrize("key", ["team:", "x:y", "berlin", ""])
def test_an_unknown_key_is_an_error(key: str) -> None:
    with pytest.raises(ValueError, match=f"unknown key `{key}`; keys are"):
        parse_restrictions({key: ["client"]})


def test_nothing_restricts_nothing() -> None:
    assert parse_restrictions({}) == NO_RESTRICTIONS


def test_a_restricted_session_has_no_client_scores_and_no_predicted_outcomes() -> None:
    log = [
        turn(name, seq, team=team, domain="peer-support")
        for name, team in (("free", "boston"), ("bound", "berlin"))
        for seq in range(8)
    ]
    policy = Policy(WindowPolicy(), restrictions=parse_restrictions({"team:berlin": ["client"]}))
    events = received([*log, end("free"), end("bound")])
    pipeline = Pipeline(FakeScorer(), policy)
    pipeline.shadow = Shadow(FakeScorer(), pytest.fail, shares_encoder=True)
    result = pipeline.process(events, {})
    shadows = {score.session_id for score in result.shadow_scores if score.client}
    assert shadows == {"free"}
    clients = {
        name: [score.client for score in result.turn_scores if score.session_id == name]
        for name in ("free", "bound")
    }
    assert any(clients["free"])
    assert not any(clients["bound"])
    risks = {score.session_id: score.outcome_risks for score in result.session_scores}
    assert risks["free"]
    assert risks["bound"] == {}
    [bound] = [score for score in result.session_scores if score.session_id == "bound"]
    assert bound.status is SessionStatus.CLOSED
    assert bound.empathy_index is not None, "expressed empathy is not restricted"
    assert bound.missed_opportunities == []
