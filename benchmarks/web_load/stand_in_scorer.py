"""A scorer without a model: answers at once, with the heads and references of a bundle.

Scores are random and mean nothing. Rows and messages have the size and shape of real ones.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Final

from stream_app.contracts.events import SCORED_ROLES, Role
from stream_app.contracts.scores import MECHANISMS, TOTAL, Expressed, Level
from stream_app.core.measures.empathy import EmpathyModel
from stream_app.core.measures.heads import Dimension, Head, HeadKind
from stream_app.core.measures.outcomes import OutcomeModel
from stream_app.core.measures.window import ScoringRequest
from stream_app.core.session.ports import Encoding, HeadScores
from stream_app.inference.bundles.bundle import Manifest

POOL: Final = 256
"""Different scores of each role."""
HALF_FLOAT: Final = 2
VECTORS: Final = 2
"""Vectors of a turn."""


class StandInScorer:
    """Implements ``core.ports.Scorer``; the scores of a turn depend on its number alone."""

    def __init__(self, manifest: Manifest, hidden: int) -> None:
        self._manifest = manifest
        chance = random.Random(1)
        self._vectors = chance.randbytes(VECTORS * hidden * HALF_FLOAT)
        self._pool = {
            role: [
                _scores([head for head in manifest.heads if role in head.roles], chance)
                for _ in range(POOL)
            ]
            for role in SCORED_ROLES
        }

    @property
    def bundle_id(self) -> str:
        """The bundle whose heads these are."""
        return self._manifest.bundle_id

    @property
    def window(self) -> tuple[int, int]:
        """As the bundle's."""
        return self._manifest.window.before, self._manifest.window.after

    @property
    def heads(self) -> Sequence[Head]:
        """The bundle's heads."""
        return self._manifest.heads

    @property
    def empathy(self) -> EmpathyModel | None:
        """The bundle's references."""
        return self._manifest.empathy

    @property
    def outcomes(self) -> Mapping[str, OutcomeModel]:
        """The bundle's outcome models."""
        return self._manifest.outcomes

    def encode(self, texts: list[str], roles: list[Role] | None = None) -> list[Encoding]:
        """The same vectors for every text; the rationale is its first word."""
        del roles  # rationales of the other role are ignored
        return [
            Encoding(
                self._vectors,
                {name: [(0, len(text.split()[0]))] for name in MECHANISMS},
                truncated=False,
            )
            for text in texts
        ]

    def score(self, requests: list[ScoringRequest]) -> list[HeadScores]:
        """Scores from the pool."""
        return [
            self._pool[one.turn.role][(one.turn.seq * 31 + one.turn.digest) % POOL]
            for one in requests
        ]


def _scores(heads: Sequence[Head], chance: random.Random) -> HeadScores:
    expressed = Expressed()
    perceived: dict[str, float] = {}
    client: dict[str, dict[str, float]] = {}
    for head in heads:
        weights = [chance.random() ** 2 + 1e-6 for _ in head.labels]
        spread = [round(weight / sum(weights), 4) for weight in weights]  # as the real scorer
        match head.dimension:
            case Dimension.EXPRESSED if head.kind is HeadKind.LEVEL:
                level = max(range(len(spread)), key=spread.__getitem__)
                expressed[head.name] = Level(level, spread, [(0, 4)] if level else [])
            case Dimension.EXPRESSED:
                expressed[head.name] = dict(zip(head.labels, spread, strict=True))
            case Dimension.PERCEIVED:
                perceived[head.name] = spread[-1]
            case _:
                client[head.name] = dict(zip(head.labels, spread, strict=True))
    known = [found.level for name in MECHANISMS if (found := expressed.level(name))]
    if known:
        expressed[TOTAL] = sum(known)
    abstained = [head.name for head in heads if chance.random() < 0.03]  # a rate like real ones
    return HeadScores(expressed, perceived, client, round(chance.uniform(0.5, 1.0), 4), abstained)
