"""Real sessions as a bundle scores them, through its own graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.batches import BEFORE
from models.construct.fit import Part
from models.construct.material import Material
from models.construct.replayed import Features
from models.data.listeners import HeardSession
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


def bundled(folder: Path, material: Material) -> Part:
    """The material's real sessions, each turn scored with what precedes it."""
    scorer = OnnxScorer(bundles.load(folder))
    real = Material()
    for session, known in zip(material.sessions, material.known, strict=True):
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


def _requests(session: HeardSession, encoded: dict[str, Encoding]) -> list[ScoringRequest]:
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
