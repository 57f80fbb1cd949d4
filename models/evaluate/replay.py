"""Run sessions through the service's pipeline with precomputed scores.

Training then uses the service's own features: windows, stages, replacement of provisional by final
scores, and rounding to integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.data.rated_sessions import RatedSession
from models.fit.turn_features import View
from models.labels import CLIENT, HEADS, ROLE_NAMES, HeadSpec
from models.model.batches import AFTER, BEFORE
from stream_app.contracts.events import Approach, Domain, Role, SessionEnd, Turn, WireRole
from stream_app.contracts.scores import Expressed, Level, Stage
from stream_app.core.measures.empathy import EmpathyModel
from stream_app.core.measures.heads import Dimension, HeadKind
from stream_app.core.measures.outcomes import OutcomeModel, features
from stream_app.core.measures.watch import DISTRESS
from stream_app.core.measures.window import ScoringRequest, WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline, Received, Source
from stream_app.core.session.environment import Policy
from stream_app.core.session.ports import Encoding, HeadScores
from stream_app.core.session.session_state import Versioned
from stream_app.inference.bundles.bundle import HeadSpec as ServiceHead
from stream_app.inference.bundles.calibration import calibrate, choose_labels

VIEW_OF: dict[Stage, View] = {Stage.PROVISIONAL: "provisional", Stage.FINAL: "final"}
Logits = Mapping[View, Mapping[str, NDArray[np.float32]]]
START = datetime(2024, 1, 1, tzinfo=UTC)
ROW_BYTES = 8


@dataclass
class Trajectory:
    """Inputs of the outcome models [counsellor turns, features] after each counsellor turn.

    `closing` [features]: the inputs after the session's end.
    """

    session: int
    points: NDArray[np.float64]
    closing: NDArray[np.float64]


class ReplayScorer:
    """A core `Scorer` with precomputed logits: a turn's text begins with its row number."""

    bundle_id = "replay"
    window = (BEFORE, AFTER)
    outcomes: Mapping[str, OutcomeModel] = MappingProxyType({})

    def __init__(
        self,
        logits: Logits,
        manifest: Mapping[str, ServiceHead],
        empathy: EmpathyModel | None = None,
        distress: NDArray[np.float32] | None = None,
    ) -> None:
        self.empathy = empathy
        self._distress = distress
        self._manifest = {
            head.name: manifest.get(head.name) or service_head(head) for head in HEADS
        }
        self.heads = tuple(self._manifest.values())
        self._probabilities = {
            stage: {
                head.name: calibrate(self._manifest[head.name], logits[view][head.name])
                for head in HEADS
            }
            for stage, view in VIEW_OF.items()
        }
        self._heads = {
            role: [head for head in HEADS if ROLE_NAMES[head.role] == role] for role in ROLE_NAMES
        }

    def encode(self, texts: list[str], roles: list[Role] | None = None) -> list[Encoding]:  # noqa: ARG002
        """Encode each text as its row number in bytes."""
        rows = [int(text.split(maxsplit=1)[0]) for text in texts]
        return [Encoding(row.to_bytes(ROW_BYTES, "big"), {}, truncated=False) for row in rows]

    def score(self, requests: list[ScoringRequest]) -> list[HeadScores]:
        """Look the probabilities up, in the format of the ONNX scorer."""
        return [self._score(request) for request in requests]

    def _score(self, request: ScoringRequest) -> HeadScores:
        return self.scores(
            int.from_bytes(request.turn.vectors, "big"), request.stage, request.turn.role
        )

    def scores(self, row: int, stage: Stage, role: Role) -> HeadScores:
        """The scores of this row's turn from the heads of its role."""
        known = self._probabilities[stage]
        values = {
            head.name: (head, known[head.name][row].tolist()) for head in self._heads[role.value]
        }
        expressed: dict[str, Any] = {
            name: self._expressed(head, p)
            for name, (head, p) in values.items()
            if head.dimension == "expressed"
        }
        client = {
            name: dict(zip(head.labels, p, strict=True))
            for name, (head, p) in values.items()
            if head.dimension in ("client", "outcome")
        }
        if self._distress is not None and role is Role.CLIENT:
            yes = float(self._distress[row])
            client[DISTRESS] = {"no": 1.0 - yes, "yes": yes}
        return HeadScores(
            Expressed(**expressed),
            {name: p[-1] for name, (head, p) in values.items() if head.dimension == "perceived"},
            client,
            confidence=0.0,
            abstained=[],
        )

    def _expressed(self, head: HeadSpec, p: list[float]) -> Level | dict[str, float]:
        if head.kind == "level":
            return Level(int(choose_labels(p, self._manifest[head.name].offsets)), p)
        return dict(zip(head.labels, p, strict=True))


def service_head(head: HeadSpec) -> ServiceHead:
    """The head in a bundle's format, without calibration."""
    return ServiceHead(
        head.name,
        Dimension(head.dimension),
        HeadKind(head.kind),
        [Role(ROLE_NAMES[head.role])],
        list(head.labels),
        head.words,
        list(head.evidence),
    )


def trajectories(
    sessions: list[RatedSession],
    starts: NDArray[np.int64],
    chosen: list[int],
    logits: Logits,
    manifest: Mapping[str, ServiceHead],
) -> tuple[list[str], list[Trajectory]]:
    """Names of the features, and the trajectories of the chosen sessions that have any.

    `manifest` has a bundle's heads by name, whose calibration and offsets are applied as in the
    service; heads that are not in it are uncalibrated.
    """
    scorer = ReplayScorer(logits, manifest)
    policy = Policy(WindowPolicy(BEFORE, AFTER), require_consent=False)
    pipeline = Pipeline(scorer, policy)
    states: dict[str, Versioned] = {}
    found: dict[int, list[dict[str, float]]] = {number: [] for number in chosen}
    for seq in range(max((len(sessions[number].turns) for number in chosen), default=0)):
        live = [number for number in chosen if seq < len(sessions[number].turns)]
        batch = [
            Received(
                Source("replay", 0, seq),
                b"",
                session_turn(sessions[number], seq, int(starts[number]) + seq),
            )
            for number in live
        ]
        pipeline.process(batch, states)
        for number in live:
            if sessions[number].turns[seq].role != CLIENT:
                summary = states[sessions[number].key].state.aggregates.summary()
                found[number].append(features(summary))
    pipeline.process(
        [Received(Source("replay", 0, 0), b"", session_end(sessions[number])) for number in chosen],
        states,
    )
    closing = {
        number: features(states[sessions[number].key].state.aggregates.summary())
        for number in chosen
    }
    names = sorted({name for point in closing.values() for name in point})

    def row(point: dict[str, float]) -> list[float]:
        # A client head has no output before the first client turn: 0 then, as in the service.
        return [point.get(name, 0.0) for name in names]

    return names, [
        Trajectory(
            number, np.array([row(point) for point in points]), np.array(row(closing[number]))
        )
        for number, points in found.items()
        if points
    ]


def session_end(session: RatedSession) -> SessionEnd:
    """The event that ends a replayed session."""
    at = START + timedelta(seconds=20 * len(session.turns))
    return SessionEnd(session_id=session.key, occurred_at=at)


def session_turn(
    session: RatedSession,
    seq: int,
    row: int,
    domain: Domain | None = None,
    approach: Approach | None = None,
) -> Turn:
    """A turn whose text begins with the row of its scores and has as many words as the real one."""
    turn = session.turns[seq]
    words = len(turn.text.split())
    return Turn(
        session_id=session.key,
        seq=seq,
        speaker_id=ROLE_NAMES[turn.role],
        role=WireRole.CLIENT if turn.role == CLIENT else WireRole.COUNSELLOR,
        text=" ".join([str(row), *["-"] * (words - 1)]),
        occurred_at=START + timedelta(seconds=20 * seq),
        domain=domain,
        approach=approach,
    )
