"""Score sessions with an exported bundle's ONNX graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.construct.benchmark import BenchmarkSessions
from models.construct.fit import Part
from models.construct.scoring import Scored
from models.construct.traces import Features
from models.data.rated_sessions import RatedSession
from models.evaluate.replay import START
from models.fit.turn_features import ROWS, VIEWS, View, windows
from models.labels import COUNSELLOR, HEADS
from models.model.batches import BEFORE, OFFSETS
from models.model.onnx_model import session as graph_session
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.measures.empathy import client_features, counsellor_features
from stream_app.core.measures.window import Neighbour, ScoringRequest, WindowTurn
from stream_app.core.session.ports import Encoding
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.bundle import Bundle
from stream_app.inference.devices.probe import TurnProbe
from stream_app.inference.scorer import OnnxScorer

AT_A_TIME = 256


def score_with_bundle(folder: Path, benchmark: BenchmarkSessions) -> Part:
    """Score the real sessions of the benchmark, each turn with the turns before it."""
    scorer = OnnxScorer(bundles.load(folder))
    real = BenchmarkSessions()
    for session, known in zip(benchmark.sessions, benchmark.known, strict=True):
        if known.kind == "real":
            real.add(session, known)
    encoded = _encode(scorer, real.sessions)
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


def score_both_views(bundle: Bundle, sessions: Sequence[RatedSession]) -> Scored:
    """Logits of all heads and the distress probability, by the bundle's graphs, in both views."""
    scorer = OnnxScorer(bundle)
    encoded = _encode(scorer, sessions)
    turns = [turn for session in sessions for turn in session.turns]
    vectors = np.stack([np.frombuffer(encoded[turn.text].vectors, np.float16) for turn in turns])
    roles = np.array([turn.role for turn in turns])
    starts = np.cumsum([0, *(len(session.turns) for session in sessions)])
    neighbours, present = windows(starts)
    graph = graph_session(bundle.file(bundle.manifest.head.file))
    names = [output.name for output in graph.get_outputs()]
    pairs = vectors.reshape(len(turns), 2, -1).astype(np.float32)
    logits: dict[View, dict[str, NDArray[np.float32]]] = {}
    for view in VIEWS:
        seen = present if view == "final" else present * (np.array(OFFSETS) < 0)
        parts: list[list[NDArray[np.float32]]] = []
        for first in range(0, len(turns), ROWS):
            rows = slice(first, first + ROWS)
            near = neighbours[rows]
            inputs = {
                "target": pairs[rows],
                "target_role": roles[rows],
                "context": pairs[near, 1],
                "context_role": roles[near],
                "context_distance": np.tile(np.array(OFFSETS), (len(near), 1)),
                "context_mask": seen[rows],
            }
            parts.append(graph.run(names, inputs))
        logits[view] = {name: np.concatenate(one) for name, *one in zip(names, *parts, strict=True)}
    # A head that this version trains and the bundle lacks says nothing.
    silent = np.zeros((len(turns), 2), np.float32)
    for own in logits.values():
        own.update({head.name: silent for head in HEADS if head.name not in own})
    probe = bundle.manifest.distress
    distress = (
        TurnProbe.read(bundle.file(probe.file)).probabilities(vectors)
        if probe is not None
        else np.zeros(len(turns))
    )
    return Scored(starts, logits, distress.astype(np.float32))


def _encode(scorer: OnnxScorer, sessions: Sequence[RatedSession]) -> dict[str, Encoding]:
    texts = list({turn.text: None for session in sessions for turn in session.turns})
    encoded: dict[str, Encoding] = {}
    for first in range(0, len(texts), AT_A_TIME):
        some = texts[first : first + AT_A_TIME]
        encoded |= dict(zip(some, scorer.encode(some, [Role.CLIENT] * len(some)), strict=True))
    return encoded


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
            tokens=encoded[turn.text].tokens,
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
