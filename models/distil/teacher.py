"""The teacher's encoder outputs for every text, cached on disk so that no epoch recomputes them."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from models.data.corpora import Turn
from models.model.batches import TokenisedTurn, encoder_chunks
from models.model.multitask import MultitaskModel

PART = 4096
"""Texts per file; an interrupted run resumes after its last file."""
CHUNK_TOKENS = 2048


@dataclass
class Outputs:
    """Vectors [texts, 2, hidden] and rationale logits [tokens, 3], concatenated over the texts.

    Both are float16; the logits of text i are the rows `starts[i]` to `starts[i + 1]`.
    """

    vectors: NDArray[np.float16]
    rationale: NDArray[np.float16]
    starts: NDArray[np.int64]


def outputs(model: MultitaskModel, texts: list[list[int]], cache: Path, *, bf16: bool) -> Outputs:
    """Compute the teacher's outputs for all texts, or read them from the folder `cache`."""
    cache.mkdir(parents=True, exist_ok=True)
    weights = _digest(model)
    found = []
    started, done = time.monotonic(), 0
    for first in range(0, len(texts), PART):
        part = texts[first : first + PART]
        file = cache / f"{_fingerprint(weights, part, bf16)}.npz"
        if not file.is_file():
            vectors, rationale = _encoded(model, part, bf16)
            unfinished = file.with_suffix(".unfinished.npz")
            np.savez(unfinished, vectors=vectors, rationale=rationale)
            unfinished.replace(file)
            done += len(part)
            print(
                f"teacher: {first + len(part)} of {len(texts)} texts, "
                f"{done / (time.monotonic() - started):.0f} a second",
                flush=True,
            )
        with np.load(file) as known:
            found.append((known["vectors"], known["rationale"]))
    sizes = [len(ids) for ids in texts]
    return Outputs(
        np.concatenate([vectors for vectors, _ in found]),
        np.concatenate([rationale for _, rationale in found]),
        np.cumsum([0, *sizes]),
    )


@torch.inference_mode()
def _encoded(
    model: MultitaskModel, texts: list[list[int]], bf16: bool
) -> tuple[NDArray[np.float16], NDArray[np.float16]]:
    model.eval()
    vectors = np.zeros((len(texts), 2, model.config.hidden_size), np.float16)
    logits: list[NDArray[np.float16]] = [np.zeros((0, 3), np.float16)] * len(texts)
    turns = [TokenisedTurn(Turn(0, ""), ids) for ids in texts]
    for chunk in encoder_chunks(turns, CHUNK_TOKENS):
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            given, rationale = model.encoder(chunk.input_ids, chunk.attention_mask)
        rows = chunk.turns.tolist()
        vectors[rows] = given.half().numpy()
        for place, row in enumerate(rows):
            logits[row] = rationale[place, : len(texts[row])].half().numpy()
    return vectors, np.concatenate(logits)


def _digest(model: MultitaskModel) -> bytes:
    digest = hashlib.sha256()
    for value in model.encoder.state_dict().values():
        digest.update(value.contiguous().numpy().tobytes())
    return digest.digest()


def _fingerprint(weights: bytes, texts: list[list[int]], bf16: bool) -> str:
    digest = hashlib.sha256(weights)
    digest.update(repr((bf16, texts)).encode())
    return digest.hexdigest()[:16]
