"""Fake bundles: heads on a shared encoder, and encoders of their own."""

from collections.abc import Mapping

from msgspec import structs

from stream_app.contracts.events import Role
from stream_app.core.measures.window import ScoringRequest, WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline, environment_of
from stream_app.core.pipeline.scoring_bundles import BundlesInForce, ScoringBundle
from stream_app.core.rules.routes_file import parse
from stream_app.core.session.environment import Policy
from stream_app.core.session.ports import Encoding, HeadScores
from tests.fakes import FakeScorer
from tests.rule_texts import EAGER

POLICY = Policy(WindowPolicy(), EAGER)


class RoutedScorer(FakeScorer):
    """A fake whose vectors begin with its encoder's name; it scores no others."""

    def __init__(self, name: str, encoder: str = "") -> None:
        self.bundle_id = f"{name}-1-fp32"
        self.mark = encoder.encode()
        self.encoded: list[list[str]] = []
        self.scored: list[int] = []

    def encode(self, texts: list[str], roles: list[Role] | None = None) -> list[Encoding]:
        self.encoded.append(texts)
        found = super().encode(texts, roles)
        return [structs.replace(each, vectors=self.mark + each.vectors) for each in found]

    def score(self, requests: list[ScoringRequest]) -> list[HeadScores]:
        self.scored.append(len(requests))
        for request in requests:
            turns = [request.turn, *(each.turn for each in request.context)]
            assert all(len(turn.vectors) == len(self.mark) + 32 for turn in turns)
            assert all(turn.vectors.startswith(self.mark) for turn in turns)
        return super().score(requests)


def bundle_of(
    name: str, encoder: str = "", languages: tuple[str, ...] = ("en",), digest: str = "1"
) -> ScoringBundle:
    scorer = RoutedScorer(name, encoder)
    return ScoringBundle(scorer, environment_of(scorer, POLICY), encoder, digest, languages)


def in_force(
    routed: Mapping[str, ScoringBundle], routes: str = "", languages: tuple[str, ...] = ("en",)
) -> BundlesInForce:
    names = "".join(f"  {name}: {{folder: {name}}}\n" for name in ("north", "german", "chat"))
    text = f"version: 1\nbundles:\n{names}{routes}"
    scorer = RoutedScorer("default")
    default = ScoringBundle(scorer, environment_of(scorer, POLICY), languages=languages)
    return BundlesInForce(default, dict(routed), parse(text.encode(), "routes.yaml"))


def pipeline_of(bundles: BundlesInForce) -> Pipeline:
    """A pipeline with these bundles, the default one included."""
    pipeline = Pipeline(bundles.default.scorer, POLICY)
    pipeline.adopt(bundles)
    return pipeline
