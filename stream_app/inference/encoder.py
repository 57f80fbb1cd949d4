"""The encoder graph: each turn is read once."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from stream_app.inference.batching import Limits, by_length
from stream_app.inference.providers import Provider, open_session
from stream_app.inference.tokenizer import Tokens


class TokenOutput(Struct, frozen=True):
    """One text's encoding.

    ``vectors``: float16 [2, hidden], first-token state and mean of the token states.
    ``rationale``: float32 [tokens, mechanisms], probabilities.
    """

    vectors: npt.NDArray[np.float16]
    rationale: npt.NDArray[np.float32]


class TurnEncoder:
    """Runs ``encoder.onnx`` over length-bucketed batches."""

    def __init__(self, graph: Path, provider: Provider, threads: int, limits: Limits) -> None:
        self.session = open_session(graph, provider, threads)
        self.limits = limits

    def encode(self, texts: list[Tokens]) -> list[TokenOutput]:
        """Encode; the order of the result is that of the input."""
        results: dict[int, TokenOutput] = {}
        lengths = [len(tokens.ids) for tokens in texts]
        for batch in by_length(lengths, self.limits):
            vectors, logits = self.run(texts[i] for i in batch)
            for row, index in enumerate(batch):
                kept = logits[row, : lengths[index]]
                results[index] = TokenOutput(vectors[row], _sigmoid(kept))
        return [results[i] for i in range(len(texts))]

    def run(
        self, texts: Iterable[Tokens]
    ) -> tuple[npt.NDArray[np.float16], npt.NDArray[np.float32]]:
        """One padded batch through the graph: vectors [batch, 2, hidden], logits."""
        rows = list(texts)
        longest = max(len(tokens.ids) for tokens in rows)
        ids = np.zeros((len(rows), longest), np.int64)
        mask = np.zeros((len(rows), longest), np.int64)
        for row, tokens in enumerate(rows):
            ids[row, : len(tokens.ids)] = tokens.ids
            mask[row, : len(tokens.ids)] = 1
        vectors, logits = self.session.run(
            ["vectors", "rationale_logits"], {"input_ids": ids, "attention_mask": mask}
        )
        return vectors.astype(np.float16), logits


def _sigmoid(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.asarray(1.0 / (1.0 + np.exp(-logits)), np.float32)
