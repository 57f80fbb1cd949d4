"""Scorers behind one interface for the context probe: levels [dialogues, mechanisms]."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from models.data.corpora import Conversation, Turn
from models.labels import CLIENT, COUNSELLOR, RATIONALE_ORDER
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.measures.window import Neighbour, ScoringRequest, WindowTurn
from stream_app.core.session.ports import Encoding, Scorer
from stream_app.inference.bundles import bundle
from stream_app.inference.scorer import OnnxScorer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from models.fit.calibrate import Calibration
    from models.model.multitask import MultitaskModel

Dialogue = Sequence[Turn]
"""Turns in order; the last one is the response to score."""
Levels = NDArray[np.int64]

ROLES = {CLIENT: Role.CLIENT, COUNSELLOR: Role.COUNSELLOR}
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
AT_ONCE = 256
CHUNK_TOKENS = 1024


class LevelScorer(Protocol):
    """Scores the last turn of each dialogue."""

    def levels(self, dialogues: Sequence[Dialogue]) -> Levels:
        """Levels 0-2 as int64 [dialogues, 3], in the order of `RATIONALE_ORDER`."""


class ServiceLevels:
    """The service's own scorer with provisional scores, where no turn follows the response."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self._known: dict[str, Encoding] = {}

    def levels(self, dialogues: Sequence[Dialogue]) -> Levels:
        """As `LevelScorer`; every text is encoded once."""
        texts = {turn.text for dialogue in dialogues for turn in dialogue} - self._known.keys()
        missing = sorted(texts)
        for start in range(0, len(missing), AT_ONCE):
            some = missing[start : start + AT_ONCE]
            self._known.update(zip(some, self.scorer.encode(some), strict=True))
        rows: list[list[int]] = []
        for start in range(0, len(dialogues), AT_ONCE):
            requests = [self._request(dialogue) for dialogue in dialogues[start : start + AT_ONCE]]
            for scores in self.scorer.score(requests):
                found = scores.expressed.levels
                rows.append([found[head].level for head in RATIONALE_ORDER])
        return np.array(rows, np.int64).reshape(-1, len(RATIONALE_ORDER))

    def _request(self, dialogue: Dialogue) -> ScoringRequest:
        encoded = [self._turn(seq, turn) for seq, turn in enumerate(dialogue)]
        last = len(encoded) - 1
        before = encoded[max(0, last - self.scorer.window[0]) : last]
        context = [Neighbour(turn, turn.seq - last) for turn in before]
        return ScoringRequest(encoded[last], Stage.PROVISIONAL, context)

    def _turn(self, seq: int, turn: Turn) -> WindowTurn:
        encoding = self._known[turn.text]
        return WindowTurn(
            seq=seq,
            role=ROLES[turn.role],
            occurred_at=LONG_AGO,
            digest=0,
            words=len(turn.text.split()),
            vectors=encoding.vectors,
            rationales=encoding.rationales,
            parts=encoding.parts,
        )


def of_bundle(folder: Path, threads: int) -> ServiceLevels:
    """Load a bundle into the service's scorer."""
    return ServiceLevels(OnnxScorer(bundle.load(folder), threads=threads))


def of_model(folder: Path, calibration: Path | None = None) -> ModelLevels:
    """Load a folder of `models.fit.train`, with a calibration's level offsets if there is one."""
    # Only this scorer needs torch.
    from models.fit.calibrate import Calibration  # noqa: PLC0415
    from models.model import multitask  # noqa: PLC0415

    given = Calibration.read(calibration) if calibration else Calibration()
    return ModelLevels(*multitask.load(folder), given)


class ModelLevels:
    """A torch model in evaluation mode, its tokenizer and its calibration."""

    def __init__(self, model: MultitaskModel, tokenizer: Tokenizer, given: Calibration) -> None:
        self.model, self.tokenizer, self.calibration = model, tokenizer, given

    def levels(self, dialogues: Sequence[Dialogue]) -> Levels:
        """As `LevelScorer`; every text is encoded once, without following turns."""
        import torch  # noqa: PLC0415

        from models.model.batches import BEFORE, OFFSETS, SLOTS, Targets, encoder_chunks, tokenise  # noqa: PLC0415

        texts = list(dict.fromkeys(turn.text for dialogue in dialogues for turn in dialogue))
        row_of = {text: row for row, text in enumerate(texts)}
        alone = [Conversation("probe", "", [Turn(COUNSELLOR, text)]) for text in texts]
        turns = [segment.turns[0] for segment in tokenise(alone, self.tokenizer)]
        size = len(dialogues)
        shape = (size, SLOTS)
        context, role, mask = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
        for row, dialogue in enumerate(dialogues):
            before = dialogue[:-1][-BEFORE:]
            for slot, turn in enumerate(before, start=BEFORE - len(before)):
                context[row, slot], role[row, slot] = row_of[turn.text], turn.role
                mask[row, slot] = 1
        targets = Targets(
            turn=torch.tensor([row_of[dialogue[-1].text] for dialogue in dialogues]),
            role=torch.tensor([dialogue[-1].role for dialogue in dialogues]),
            context=context,
            context_role=role,
            context_distance=torch.tensor(OFFSETS).expand(shape),
            context_mask=mask,
            labels={},
        )
        with torch.inference_mode():
            vectors, _ = self.model.encode(encoder_chunks(turns, CHUNK_TOKENS), len(turns))
            logits = self.model.score(vectors, targets)
        columns = []
        for head in RATIONALE_ORDER:
            probabilities = self.calibration.probabilities(head, logits[head].double().numpy())
            columns.append(self.calibration.labels(head, probabilities))
        return np.stack(columns, axis=1).astype(np.int64)
