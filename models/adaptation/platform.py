"""The turns of a simulated platform: real chats, scored by a shipped bundle."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from models.data import esconv
from models.data.corpora import Conversation
from models.labels import COUNSELLOR
from stream_app.adaptation.fitting import Floats, Ints
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.heads import Dimension
from stream_app.core.window import Neighbour, ScoringRequest, WindowTurn
from stream_app.inference import bundle as bundles
from stream_app.inference.adaptations import inputs_of
from stream_app.inference.scorer import OnnxScorer, calibrate

COUNSELLORS: Final = 24
CHATS: Final = 168
"""Of ESConv (Liu et al. 2021)."""
START: Final = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True)
class ScoredPlatform:
    """Counsellor turns with the probabilities [n, labels] of the heads that may be inputs.

    `session` [n] and `counsellor` [n] are numbers; a counsellor has `CHATS / COUNSELLORS` chats.
    """

    labels: dict[str, list[str]]
    probabilities: dict[str, Floats]
    session: Ints
    offsets: dict[str, tuple[float, ...]]

    @property
    def counsellor(self) -> Ints:
        """The counsellor of each turn."""
        return self.session % COUNSELLORS


def score(bundle: Path, data_dir: Path, head: str) -> ScoredPlatform:
    """Score the supporters' turns of the first chats, each in its whole window."""
    scorer = OnnxScorer(bundles.load(bundle))
    chats = [chat for chat, _ in zip(esconv.load(data_dir), range(CHATS), strict=False)]
    heads = scorer.bundle.manifest.heads
    known = {one.name: one for one in heads}
    used = [one for one in inputs_of(known[head], heads) if one.dimension is Dimension.EXPRESSED]
    parts: dict[str, list[Floats]] = {one.name: [] for one in used}
    sessions: list[int] = []
    for number, chat in enumerate(chats):
        own = [one for one in _requests(chat, scorer) if one.turn.role is Role.COUNSELLOR]
        logits = scorer.head.logits(own) if own else {}
        for one in used if own else ():
            parts[one.name].append(calibrate(known[one.name], logits[one.name]))
        sessions += [number] * len(own)
    return ScoredPlatform(
        labels={one.name: list(one.labels) for one in used},
        probabilities={name: np.concatenate(found) for name, found in parts.items()},
        session=np.array(sessions),
        offsets={one.name: tuple(known[one.name].offsets) for one in used},
    )


def _requests(chat: Conversation, scorer: OnnxScorer) -> list[ScoringRequest]:
    roles = [Role.COUNSELLOR if turn.role == COUNSELLOR else Role.CLIENT for turn in chat.turns]
    encoded = scorer.encode([turn.text for turn in chat.turns], roles)
    turns = [
        WindowTurn(
            seq=seq,
            role=role,
            occurred_at=START,
            digest=0,
            words=len(turn.text.split()),
            vectors=encoding.vectors,
            rationales={},
        )
        for seq, (role, turn, encoding) in enumerate(zip(roles, chat.turns, encoded, strict=True))
    ]
    before, after = scorer.window
    return [
        ScoringRequest(
            turn,
            Stage.FINAL,
            [
                Neighbour(turns[j], j - i)
                for j in range(max(0, i - before), min(len(turns), i + after + 1))
                if j != i
            ],
        )
        for i, turn in enumerate(turns)
    ]
