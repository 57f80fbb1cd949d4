"""Score real sessions with an exported bundle's ONNX graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.batches import BEFORE
from models.construct.benchmark import BenchmarkSessions
from models.construct.fit import Part
from models.construct.traces import Features
from models.data.rated_sessions import RatedSession
from models.labels import COUNSELLOR
from models.replay import START
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.empathy import client_features, counsellor_features
from stream_app.core.ports import Encoding
from stream_app.core.window import Neighbour, ScoringRequest, WindowTurn
from stream_app.inference import bundle as bundles
from stream_app.inference.scorer import OnnxScorer

AT_A_TIME = 256


def score_with_bundle(folder: Path, benchmark: BenchmarkSessions) -> Part:
    """Score the real sessions of the benchmark, each turn with the turns before it."""
    scorer = OnnxScorer(bundles.load(folder))
    real = BenchmarkSessions()
    for session, known in zip(benchmark.sessions, benchmark.known, strict=True):
        if known.kind == "real":
            real.add(session, known)
    texts = list({turn.text: None for session in real.sessions for turn in session.turns})
    encoded: dict[str, Encoding] = {}
    for first in range(0, len(texts), AT_A_TIME):
        some = texts[first : first + AT_A_TIME]
        encoded |= dict(zip(some, scorer.encode(some, [Role.CLIENT] * len(some)), strict=True))
    starts = np.cumsum([0, *(len(session.turns) for session in real.sessions)])
    tables: dict[int, dict[str, NDArray[np.float64]]] = {0: {}, 1: {}}
    for session, first in zip(real.sessions, starts, strict=False):
        scores = scorer.score(_requests(session, encoded))
        for place, (turn, score) in enumerate(zip(session.turns, scores, strict=True)):
            counsellor = turn.role == COUNSELLOR
            values = counsellor_features(score) if counsellor else client_features(score)
            for name, value in values.items():
                empty = np.full(int(starts[-1]), np.nan)
                tables[turn.role].setdefault(name, empty)[first + place] = value
    return Part(real, starts, Features(tables[0], tables[1]))


def _requests(session: RatedSession, encoded: dict[str, Encoding]) -> list[ScoringRequest]:
    turns = [
        WindowTurn(
            seq=seq,
            role=Role.COUNSELLOR if turn.role == COUNSELLOR else Role.CLIENT,
            occurred_at=START,
            digest=0,
            words=len(turn.text.split()),
            vectors=encoded[turn.text].vectors,
            rationales={},
        )
        for seq, turn in enumerate(session.turns)
    ]
    return [
        ScoringRequest(
            turn,
            Stage.PROVISIONAL,
            [Neighbour(turns[j], j - i) for j in range(max(0, i - BEFORE), i)],
        )
        for i, turn in enumerate(turns)
    ]
