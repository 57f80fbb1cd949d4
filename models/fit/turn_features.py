"""Fused features of every turn under a frozen model: the inputs of the small task networks.

The encoder processes each turn once; its two vectors go through 16-bit floats and are fused with
the window, as in the service (`models.model.multitask.MultitaskModel.score`). Both views of a turn
are computed: provisional (preceding turns) and final (preceding and following turns).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from models.data.corpora import Turn
from models.data.rated_sessions import RatedSession
from models.model.batches import AFTER, BEFORE, OFFSETS, EncoderChunk, TokenisedTurn, encoder_chunks
from models.model.encoder import MAX_TOKENS
from models.model.heads import FUSED, ContextHead
from models.model.multitask import MultitaskModel

View = Literal["provisional", "final"]
VIEWS: tuple[View, ...] = ("provisional", "final")
CHUNK_TOKENS = 4096
ROWS = 2048


@dataclass
class TurnFeatures:
    """Fused features of concatenated sessions.

    `starts` [sessions + 1] are row numbers; `fused` has float16 [turns, FUSED * hidden] by view,
    `alone` the same for an empty context.
    """

    starts: NDArray[np.int64]
    fused: dict[View, NDArray[np.float16]]
    alone: NDArray[np.float16]

    def rows(self, session: int) -> range:
        """The rows of one session."""
        return range(int(self.starts[session]), int(self.starts[session + 1]))


@torch.inference_mode()
def encode_texts(
    model: MultitaskModel, tokenizer: Tokenizer, texts: list[str]
) -> NDArray[np.float16]:
    """Vectors [texts, 2, hidden]; a repeated text is encoded once."""
    distinct = list(dict.fromkeys(texts))
    tokenizer.enable_truncation(MAX_TOKENS)
    ids = [encoding.ids for encoding in tokenizer.encode_batch(distinct)]
    tokenizer.no_truncation()
    turns = [TokenisedTurn(Turn(0, ""), row) for row in ids]
    vectors = np.zeros((len(distinct), 2, model.config.hidden_size), np.float16)
    for chunk in encoder_chunks(turns, CHUNK_TOKENS):
        vectors[chunk.turns.numpy()] = _vectors(model, chunk)
    place = {text: row for row, text in enumerate(distinct)}
    return vectors[[place[text] for text in texts]]


def _vectors(model: MultitaskModel, chunk: EncoderChunk) -> NDArray[np.float16]:
    values, _ = model.encoder(chunk.input_ids, chunk.attention_mask)
    return np.asarray(values.half().numpy())


def windows(starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the neighbours [turns, slots] in the order of `OFFSETS`, and a presence mask."""
    total = int(starts[-1])
    session = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    rows = np.arange(total)[:, None] + np.array(OFFSETS)[None, :]
    present = (rows >= starts[session][:, None]) & (rows < starts[session + 1][:, None])
    return np.where(present, rows, 0), present.astype(np.int64)


@torch.inference_mode()
def fuse(
    head: ContextHead,
    vectors: NDArray[np.float16],
    roles: NDArray[np.int64],
    starts: NDArray[np.int64],
    view: View,
) -> NDArray[np.float16]:
    """Fused features [turns, FUSED * hidden] of one view."""
    neighbours, present = windows(starts)
    if view == "provisional":
        present = present * (np.array(OFFSETS) < 0)
    held, role = torch.from_numpy(vectors), torch.from_numpy(roles)
    fused = np.zeros((len(vectors), FUSED * vectors.shape[2]), np.float16)
    for first in range(0, len(vectors), ROWS):
        part = slice(first, first + ROWS)
        context = torch.from_numpy(neighbours[part])
        fused[part] = (
            head.fuse(
                held[part].float(),
                role[part],
                held[context, 1].float(),
                role[context],
                torch.tensor(OFFSETS).expand(len(context), BEFORE + AFTER),
                torch.from_numpy(present[part]),
            )
            .half()
            .numpy()
        )
    return fused


def turn_features(
    model: MultitaskModel,
    tokenizer: Tokenizer,
    sessions: list[RatedSession],
    cache: Path | None = None,
) -> TurnFeatures:
    """Features of all turns of the sessions, cached in the folder `cache`."""
    starts = np.cumsum([0, *(len(session.turns) for session in sessions)])
    file = cache / f"turns-{_fingerprint(model, sessions)}.npz" if cache else None
    if file is not None and file.is_file():
        with np.load(file) as known:
            return TurnFeatures(starts, {view: known[view] for view in VIEWS}, known["alone"])
    texts = [turn.text for session in sessions for turn in session.turns]
    roles = np.array([turn.role for session in sessions for turn in session.turns])
    vectors = encode_texts(model, tokenizer, texts)
    fused = {view: fuse(model.head, vectors, roles, starts, view) for view in VIEWS}
    with torch.inference_mode():
        alone = model.head.alone(torch.from_numpy(vectors).float()).half().numpy()
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = {str(view): vectors for view, vectors in fused.items()}
        np.savez(file, **arrays, alone=alone)
    return TurnFeatures(starts, fused, alone)


def _fingerprint(model: MultitaskModel, sessions: list[RatedSession]) -> str:
    """A hash of the weights that compute the features, and of the turns."""
    digest = hashlib.sha256(b"2")  # format of the file
    for name, value in model.state_dict().items():
        if not name.startswith("head.tasks."):
            digest.update(name.encode())
            digest.update(_bytes(value))
    for session in sessions:
        for turn in session.turns:
            digest.update(f"{turn.role}{turn.text}\n".encode())
        digest.update(session.key.encode())
    return digest.hexdigest()[:16]


def _bytes(value: Tensor) -> bytes:
    return value.detach().contiguous().numpy().tobytes()
