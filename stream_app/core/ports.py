"""What the core needs from outside: scores. Adapters: ``inference.scorer``, ``tests.fakes``."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Expressed, Span
from stream_app.core.empathy import EmpathyModel
from stream_app.core.outcomes import OutcomeModel
from stream_app.core.window import ScoringRequest


class Encoding(Struct, frozen=True):
    """The two vectors of a turn, with its rationales; see ``core.window.WindowTurn``."""

    vectors: bytes
    rationales: dict[str, list[Span]]
    truncated: bool


class HeadScores(Struct, frozen=True):
    """The heads' outputs for one request."""

    expressed: Expressed
    perceived: dict[str, float]
    client: dict[str, dict[str, float]]
    confidence: float
    abstained: list[str]


class Scorer(Protocol):
    """Scores turns. The result for a turn never depends on what else is in the call."""

    @property
    def bundle_id(self) -> str:
        """Name, version and profile of the model in use."""

    @property
    def window(self) -> tuple[int, int]:
        """Turns before and after that the model was made for."""

    @property
    def empathy(self) -> EmpathyModel | None:
        """The bundle's references for the empathy index."""

    @property
    def outcomes(self) -> Mapping[str, OutcomeModel]:
        """The bundle's outcome models by name."""

    def encode(self, texts: list[str], roles: list[Role] | None = None) -> list[Encoding]:
        """Encode each text once; with ``roles``, rationales only where a head of that role asks."""

    def score(self, requests: list[ScoringRequest]) -> list[HeadScores]:
        """Score encoded turns with their neighbours."""
