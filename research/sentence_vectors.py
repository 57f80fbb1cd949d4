"""Unit vectors of texts from the frozen sentence encoder, each text encoded once.

Methods that train nothing in the encoder (micromodels, the frozen baselines, transfer, contrast
pairs) share one cache, so that a second method costs a second instead of minutes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import nn

from models.model.encoder import MAX_TOKENS, load_backbone, pretrained_tokenizer

Floats = NDArray[np.floating[Any]]
Text = str | tuple[str, str]
"""A text, or a context and a text that are read together: [CLS] context [SEP] text [SEP]."""

CACHE = Path("build/micromodels/embeddings.npz")
CORPORA_CACHE = Path("build/methods/vectors.npz")
"""Vectors of whole corpora, computed in bfloat16 where the processor multiplies in it."""
AT_ONCE = 32
SAVE_EVERY = 4096


class Embedder(Protocol):
    """Port of the methods: unit vectors [texts, hidden]."""

    def __call__(self, texts: Sequence[str]) -> Floats: ...


class SentenceEncoder:
    """Unit vectors of texts: mean of the token states, as all-MiniLM-L6-v2 was trained for.

    With a `cache` file no text is encoded twice, in this run or later ones. `encoder` is a folder
    or hub name of another encoder (None: all-MiniLM-L6-v2). Another encoder, or `bf16` (half the
    time on some processors), needs a cache file of its own. A text is cut at `MAX_TOKENS` tokens, a
    pair at twice as many, its longer side first.
    """

    def __init__(
        self, cache: Path | None = None, encoder: str | None = None, *, bf16: bool = False
    ) -> None:
        self.cache = cache
        self.encoder = encoder
        self.bf16 = bf16
        self._known: dict[str, Floats] = {}
        self._loaded: tuple[nn.Module, Tokenizer] | None = None
        if cache is not None and cache.is_file():
            with np.load(cache, allow_pickle=False) as stored:
                self._known = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))

    def __call__(self, texts: Sequence[Text]) -> Floats:
        """Float32 [texts, hidden], each row of length 1."""
        keys = [_key(text) for text in texts]
        missing = dict(zip(keys, texts, strict=True))
        missing = {key: text for key, text in missing.items() if key not in self._known}
        todo = list(missing)
        for start in range(0, len(todo), SAVE_EVERY):
            some = todo[start : start + SAVE_EVERY]
            self._known.update(zip(some, self._encode([missing[key] for key in some]), strict=True))
            self._save()
        return np.stack([self._known[key] for key in keys])

    def _save(self) -> None:
        if self.cache is None:
            return
        self.cache.parent.mkdir(parents=True, exist_ok=True)
        vectors = np.stack(list(self._known.values()))
        unfinished = self.cache.with_name(f"{self.cache.stem}.unfinished.npz")
        np.savez(unfinished, keys=np.array(list(self._known)), vectors=vectors)
        unfinished.replace(self.cache)

    def _parts(self) -> tuple[nn.Module, Tokenizer]:
        if self._loaded is None:
            tokenizer = pretrained_tokenizer(self.encoder)
            tokenizer.enable_padding()
            self._loaded = load_backbone(encoder=self.encoder).eval(), tokenizer
        return self._loaded

    @torch.inference_mode()
    def _encode(self, texts: list[Text]) -> Floats:
        backbone, tokenizer = self._parts()
        order = sorted(range(len(texts)), key=lambda index: sum(map(len, texts[index])))
        vectors: dict[int, Floats] = {}
        for start in range(0, len(order), AT_ONCE):
            rows = order[start : start + AT_ONCE]
            some = [texts[row] for row in rows]
            pairs = any(isinstance(text, tuple) for text in some)
            tokenizer.enable_truncation(2 * MAX_TOKENS if pairs else MAX_TOKENS)
            encodings = tokenizer.encode_batch(some)
            ids = torch.tensor([encoding.ids for encoding in encodings])
            mask = torch.tensor([encoding.attention_mask for encoding in encodings])
            types = torch.tensor([encoding.type_ids for encoding in encodings])
            inputs = {"token_type_ids": types} if pairs and _typed(backbone) else {}
            with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
                found = backbone(input_ids=ids, attention_mask=mask, **inputs)
            states = found.last_hidden_state.float()
            weights = mask.unsqueeze(-1).float()
            means = (states * weights).sum(1) / weights.sum(1).clamp(min=1.0)
            units = nn.functional.normalize(means, dim=-1).numpy()
            vectors.update(zip(rows, units, strict=True))
        return np.stack([vectors[row] for row in range(len(texts))])


def _typed(backbone: nn.Module) -> bool:
    config: Any = backbone.config
    return getattr(config, "type_vocab_size", 1) > 1


def _key(text: Text) -> str:
    joined = text if isinstance(text, str) else "\x1f".join(text)
    return hashlib.sha256(joined.encode()).hexdigest()[:24]
