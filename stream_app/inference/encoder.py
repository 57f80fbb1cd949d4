"""The encoder graph: each turn is read once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from stream_app.inference.batching import ONE_BY_ONE, Batch, Limits, Shapes, planned
from stream_app.inference.bound import BoundSession
from stream_app.inference.bundle import EncoderSpec
from stream_app.inference.providers import Provider, open_session, provider_in_use
from stream_app.inference.tokenizer import Tokens

CPU_BATCH: Final = Limits(tokens=256, padding=16)
"""For one thread; measured: products of this size keep a core busy, and more only adds padding."""
CPU_PACKED: Final = Limits(tokens=256, padding=128)
"""The same for an encoder that packs its tokens: only attention sees the padding."""
CUDA_ROWS: Final = (1, 8, 32, 128)
CUDA_TOKENS: Final = (16, 32, 48, 64, 128)
"""And the longest text that the encoder reads."""
CUDA_BUDGET: Final = 8192
"""Tokens in a batch with its padding."""


class TokenOutput(Struct, frozen=True):
    """One text's encoding.

    ``vectors``: float16 [2, hidden], first-token state and mean of the token states.
    ``rationale``: float32 [tokens, mechanisms], probabilities.
    """

    vectors: npt.NDArray[np.float16]
    rationale: npt.NDArray[np.float32]


class TurnEncoder:
    """Runs ``encoder.onnx`` over batches that suit the provider.

    ``limits`` are of the batches; an encoder that depends on its batch takes one text at a time.
    """

    def __init__(self, graph: Path, spec: EncoderSpec, provider: Provider, threads: int) -> None:
        session = open_session(graph, provider, threads, fixed_shapes=spec.batch_independent)
        self.provider = provider_in_use(session)
        self.limits = batch_limits(spec, self.provider, threads)
        self.session: Any = session
        if isinstance(self.limits, Shapes):
            self.session = BoundSession(session, self.provider.value)

    def encode(self, texts: list[Tokens]) -> list[TokenOutput]:
        """Encode; the order of the result is that of the input."""
        results: dict[int, TokenOutput] = {}
        lengths = [len(tokens.ids) for tokens in texts]
        for batch in planned(lengths, self.limits):
            vectors, logits = self.run(texts, batch)
            rationales = _sigmoid(logits)
            for row, index in enumerate(batch.texts):
                results[index] = TokenOutput(vectors[row], rationales[row, : lengths[index]])
        return [results[i] for i in range(len(texts))]

    def run(
        self, texts: Sequence[Tokens], batch: Batch
    ) -> tuple[npt.NDArray[np.float16], npt.NDArray[np.float32]]:
        """One padded batch through the graph: vectors [rows, 2, hidden], logits."""
        ids = np.zeros((batch.rows, batch.tokens), np.int64)
        mask = np.zeros((batch.rows, batch.tokens), np.int64)
        mask[len(batch.texts) :, 0] = 1  # an empty row is a text of one token: nothing to mask all
        for row, index in enumerate(batch.texts):
            tokens = texts[index]
            ids[row, : len(tokens.ids)] = tokens.ids
            mask[row, : len(tokens.ids)] = 1
        vectors, logits = self.session.run(
            ["vectors", "rationale_logits"], {"input_ids": ids, "attention_mask": mask}
        )
        return vectors.astype(np.float16), logits


def batch_limits(spec: EncoderSpec, provider: Provider, threads: int) -> Limits | Shapes:
    """What the batches are held to: more threads share out larger products."""
    if not spec.batch_independent:
        return ONE_BY_ONE
    if provider is Provider.CUDA:
        widths = [tokens for tokens in CUDA_TOKENS if tokens < spec.max_tokens]
        return Shapes(CUDA_ROWS, (*widths, spec.max_tokens), CUDA_BUDGET)
    batch = CPU_PACKED if spec.packed else CPU_BATCH
    return Limits(batch.tokens * max(1, threads), batch.padding * max(1, threads))


def _sigmoid(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.asarray(1.0 / (1.0 + np.exp(-logits)), np.float32)
