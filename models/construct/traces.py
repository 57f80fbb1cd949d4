"""Run sessions of the benchmark through the service's pipeline with precomputed scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.construct.benchmark import BenchmarkSessions, Known
from models.construct.plain import plain_means
from models.construct.scoring import Scored
from models.data.rated_sessions import RatedSession
from models.evaluate.replay import ReplayScorer, session_end, session_turn
from models.labels import COUNSELLOR, RATED
from models.model.batches import AFTER, BEFORE
from stream_app.contracts.events import Approach, Domain, Event, Role
from stream_app.contracts.scores import SessionScore, Stage
from stream_app.core.measures.empathy import EmpathyModel, client_features, counsellor_features
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline, Received, Source
from stream_app.core.session.environment import Policy
from stream_app.inference.bundles.bundle import HeadSpec


@dataclass(frozen=True)
class SessionTrace:
    """The service's output for a session.

    `places` are indices of the counsellor turns that have a risk, `risks` the risk after each of
    them; `words` counts all turns; `plain` are the means of `models.construct.plain` after each
    counsellor turn and at the end.
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
        """The last risk within the first `counsellor_turns` turns; None before there is one."""
        found = [r for place, r in zip(self.places, self.risks, strict=True)
                 if place < counsellor_turns]  # fmt: skip
        return found[-1] if found else None


def trace_sessions(
    benchmark: BenchmarkSessions,
    scored: Scored,
    manifest: Mapping[str, HeadSpec],
    empathy: EmpathyModel,
    chosen: Sequence[int] | None = None,
    approach: Approach | None = None,
) -> list[SessionTrace]:
    """Run the sessions (`chosen`, or all), one turn after another.

    `manifest` has the heads' calibration; `approach` is declared in their events.
    """
    scorer = ReplayScorer(scored.logits, manifest, empathy, scored.distress)
    pipeline = Pipeline(scorer, Policy(WindowPolicy(BEFORE, AFTER), require_consent=False))
    found = []
    for number in range(len(benchmark.sessions)) if chosen is None else chosen:
        session, known = benchmark.sessions[number], benchmark.known[number]
        events = _events(session, known, int(scored.starts[number]), approach)
        result = pipeline.process(events, {})
        spoken = {seq: place for place, seq in enumerate(session.positions[COUNSELLOR])}
        risks = [
            (spoken[score.seq], score.low_empathy_risk)
            for score in result.turn_scores
            if score.low_empathy_risk is not None
        ]
        found.append(
            SessionTrace(
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
    session: RatedSession, known: Known, first: int, approach: Approach | None
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
    """Features of all turns of the sessions, by name [turns]; NaN for turns of the other role."""

    client: dict[str, NDArray[np.float64]]
    counsellor: dict[str, NDArray[np.float64]]


def turn_features(
    benchmark: BenchmarkSessions, scored: Scored, manifest: Mapping[str, HeadSpec], stage: Stage
) -> Features:
    """Compute `core.empathy`'s turn features from the scores of one stage."""
    scorer = ReplayScorer(scored.logits, manifest, None, scored.distress)
    roles = [turn.role for session in benchmark.sessions for turn in session.turns]
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
