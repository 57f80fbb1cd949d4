"""Sessions of the benchmark through the service's own pipeline, with scores computed before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.batches import AFTER, BEFORE
from models.construct.material import Known, Material
from models.construct.plain import plain_means
from models.construct.scoring import Scored
from models.data.listeners import HeardSession
from models.labels import COUNSELLOR, RATED
from models.replay import ReplayScorer, session_end, session_turn
from stream_app.contracts.events import Approach, Domain, Event, Role
from stream_app.contracts.scores import SessionScore, Stage
from stream_app.core.empathy import EmpathyModel, client_features, counsellor_features
from stream_app.core.environment import Policy
from stream_app.core.pipeline import Pipeline, Received, Source
from stream_app.core.window import WindowPolicy
from stream_app.inference.bundle import HeadSpec


@dataclass(frozen=True)
class Watched:
    """What the service says of a session: the risk after each counsellor turn, and its end.

    `places` are the counsellor turns that have a risk, counted from 0; `words` of all turns;
    `plain` are the means of `models.construct.plain` after each counsellor turn and at the end.
    """

    session: int
    known: Known
    source: str
    places: tuple[int, ...]
    risks: tuple[float, ...]
    end: SessionScore
    words: int
    plain: tuple[Mapping[str, float], ...] = ()

    def risk_after(self, counsellor_turns: int) -> float | None:
        """The risk known after so many counsellor turns; None before there is one."""
        found = [r for place, r in zip(self.places, self.risks, strict=True)
                 if place < counsellor_turns]  # fmt: skip
        return found[-1] if found else None


def watch(
    material: Material,
    scored: Scored,
    manifest: Mapping[str, HeadSpec],
    empathy: EmpathyModel,
    chosen: Sequence[int] | None = None,
    approach: Approach | None = None,
) -> list[Watched]:
    """Run sessions (those `chosen`, or all), their turns one after another.

    `manifest` has the heads' calibration; `approach` is what their events declare.
    """
    scorer = ReplayScorer(scored.logits, manifest, empathy, scored.distress)
    pipeline = Pipeline(scorer, Policy(WindowPolicy(BEFORE, AFTER), require_consent=False))
    found = []
    for number in range(len(material.sessions)) if chosen is None else chosen:
        session, known = material.sessions[number], material.known[number]
        events = _events(session, known, int(scored.starts[number]), approach)
        result = pipeline.process(events, {})
        spoken = {seq: place for place, seq in enumerate(session.positions[COUNSELLOR])}
        risks = [
            (spoken[score.seq], score.low_empathy_risk)
            for score in result.turn_scores
            if score.low_empathy_risk is not None
        ]
        found.append(
            Watched(
                number,
                known,
                session.source,
                tuple(place for place, _ in risks),
                tuple(risk for _, risk in risks),
                result.session_scores[-1],
                sum(len(turn.text.split()) for turn in session.turns),
                plain_means(result.turn_scores),
            )
        )
    return found


def _events(
    session: HeardSession, known: Known, first: int, approach: Approach | None
) -> list[Received]:
    domain = Domain(known.domain)
    turns = [
        session_turn(session, seq, first + seq, domain, approach)
        for seq in range(len(session.turns))
    ]
    events: list[Event] = [*turns, session_end(session)]
    return [Received(Source("replay", 0, seq), b"", event) for seq, event in enumerate(events)]


@dataclass(frozen=True)
class Features:
    """Features of all turns of a material, by name [turns], NaN where the other side speaks."""

    client: dict[str, NDArray[np.float64]]
    counsellor: dict[str, NDArray[np.float64]]


def turn_features(
    material: Material, scored: Scored, manifest: Mapping[str, HeadSpec], stage: Stage
) -> Features:
    """What `core.empathy` makes of every turn, by the scores of one stage."""
    scorer = ReplayScorer(scored.logits, manifest, None, scored.distress)
    roles = [turn.role for session in material.sessions for turn in session.turns]
    tables: dict[int, dict[str, NDArray[np.float64]]] = {0: {}, 1: {}}
    for row, role in enumerate(roles):
        counsellor = role == COUNSELLOR
        score = scorer.scores(row, stage, Role.COUNSELLOR if counsellor else Role.CLIENT)
        values = counsellor_features(score) if counsellor else client_features(score)
        for name, value in values.items():
            table = tables[role].setdefault(name, np.full(len(roles), np.nan))
            table[row] = value
        if RATED in score.perceived:
            table = tables[role].setdefault(RATED, np.full(len(roles), np.nan))
            table[row] = score.perceived[RATED]
    return Features(tables[0], tables[1])
