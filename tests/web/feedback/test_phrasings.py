"""A shipped model recognises the mechanism of each general phrasing."""

from pathlib import Path

import pytest

from stream_app.contracts.events import Domain, Role
from stream_app.contracts.scores import MECHANISMS
from stream_app.core.pipeline.practice import SaidTurn, context_of, score_wordings
from stream_app.findings.feedback.phrasings import phrasings
from stream_app.inference.bundles import bundle
from stream_app.inference.scorer import OnnxScorer

CLIENTS = {
    Domain.PEER_SUPPORT: "I lie awake every night, and I am scared of going to work.",
    Domain.CUSTOMER_SERVICE: "I took a day off for your engineer, and nobody came.",
}


@pytest.fixture(scope="module")
def nano() -> OnnxScorer:
    return OnnxScorer(bundle.load(bundle.find(Path("nano"))))


@pytest.mark.parametrize("domain", CLIENTS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_each_phrasing_expresses_its_mechanism(
    nano: OnnxScorer, mechanism: str, domain: Domain
) -> None:
    context = context_of([SaidTurn(0, Role.CLIENT, CLIENTS[domain])], 1, *nano.window)
    words = phrasings(mechanism, domain)
    assert len(set(words)) >= 2
    found = score_wordings(nano, context, Role.COUNSELLOR, words)
    present = {
        text: 1 - score.levels[mechanism].probabilities[0]
        for text, score in zip(words, found, strict=True)
    }
    assert min(present.values()) > 0.5, present
