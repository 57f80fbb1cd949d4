"""The turns of a simulated platform: real chats, scored by a shipped bundle."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from models.data import esconv
from models.data.corpora import Conversation
from models.labels import COUNSELLOR
from models.model.head_graph import read_head
from research.adaptation.task_inputs import Task, TaskInputs, task_inputs, task_of
from stream_app.adaptation.fitting import Floats, Ints
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.measures.heads import Dimension
from stream_app.core.measures.window import Neighbour, ScoringRequest, WindowTurn
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.adaptations import inputs_of
from stream_app.inference.bundles.calibration import calibrate
from stream_app.inference.scorer import OnnxScorer

COUNSELLORS: Final = 24
CHATS: Final = 168
"""Of ESConv (Liu et al. 2021)."""
_FEELING: Final = re.compile(
    r"\b(feel|sad|angry|upset|scared|afraid|anxi|depress|hurt|lonely|frustrat|worr|stress|overwhelm"
    r"|guilt|hopeless|tired)",
    re.IGNORECASE,
)
_ADDRESSED: Final = re.compile(r"\byou", re.IGNORECASE)
START: Final = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True)
class ScoredPlatform:
    """Counsellor turns with the probabilities [n, labels] of the heads that may be inputs.

    `session` [n] and `counsellor` [n] are numbers; a counsellor has `CHATS / COUNSELLORS` chats.
    `naming` [n]: 2 where a feeling is named, else 1 where the client is addressed, else 0. `task`
    and `inputs` of the rated head.
    """

    labels: dict[str, list[str]]
    probabilities: dict[str, Floats]
    session: Ints
    offsets: dict[str, tuple[float, ...]]
    naming: Ints
    task: Task
    inputs: TaskInputs

    @property
    def counsellor(self) -> Ints:
        """The counsellor of each turn."""
        return self.session % COUNSELLORS


def score(folder: Path, data_dir: Path, head: str) -> ScoredPlatform:
    """Score the supporters' turns of the first chats, each in its whole window."""
    scorer = OnnxScorer(bundles.load(folder))
    heads = scorer.bundle.manifest.heads
    known = {one.name: one for one in heads}
    used = [one for one in inputs_of(known[head], heads) if one.dimension is Dimension.EXPRESSED]
    requests: list[ScoringRequest] = []
    sessions: list[int] = []
    naming: list[int] = []
    for number, chat in enumerate(islice(esconv.load(data_dir), CHATS)):
        for turn, request in zip(chat.turns, _requests(chat, scorer), strict=True):
            if request.turn.role is Role.COUNSELLOR:
                requests.append(request)
                sessions.append(number)
                naming.append(named(turn.text))
    logits = scorer.head.logits(requests)
    module = read_head(scorer.bundle.file(scorer.bundle.manifest.head.file))
    return ScoredPlatform(
        labels={one.name: list(one.labels) for one in used},
        probabilities={one.name: calibrate(one, logits[one.name]) for one in used},
        session=np.array(sessions),
        offsets={one.name: tuple(known[one.name].offsets) for one in used},
        naming=np.array(naming),
        task=task_of(module, known[head]),
        inputs=task_inputs(module, scorer.head.feeds(requests)),
    )


def named(text: str) -> int:
    """2 if a feeling is named, else 1 if the other person is addressed, else 0.

    >>> [named(text) for text in ("You sound worried.", "What did you do?", "It is late.")]
    [2, 1, 0]
    """
    return 2 if _FEELING.search(text) else 1 if _ADDRESSED.search(text) else 0


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
