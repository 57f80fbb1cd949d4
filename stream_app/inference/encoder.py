"""Runs the encoder graph, once per turn."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from stream_app.inference.bundles.bundle import EncoderSpec
from stream_app.inference.devices.batching import (
    ONE_BY_ONE,
    Batch,
    BatchLimits,
    Shapes,
    padded,
    plan_batches,
)
from stream_app.inference.devices.io_binding import bound
from stream_app.inference.devices.provider_choice import FIRST_DEVICE, CudaDevice, Provider
from stream_app.inference.devices.providers import Graph, open_session, provider_in_use
from stream_app.inference.tokenizer import Tokens

CPU_BATCH: Final = BatchLimits(tokens=256, padding=16)
"""Limits for each thread: this size keeps a core busy, and larger batches only add padding."""
CPU_PACKED: Final = BatchLimits(tokens=256, padding=128)
"""Limits for encoders that pack their tokens, where only attention computes padding."""
CUDA_ROWS: Final = (1, 8, 32, 128)
CUDA_TOKENS: Final = (16, 32, 48, 64, 128)
"""Widths of batches, besides the encoder's maximum."""
CUDA_BUDGET: Final = 8192
"""Maximum number of tokens in a batch, including padding."""


class TokenOutput(Struct, frozen=True):
    """One text's encoding.

    ``vectors``: float16 [2, hidden], first-token state and mean of the token states.
    ``rationale``: float32 [tokens, mechanisms], probabilities.
    """

    vectors: npt.NDArray[np.float16]
    rationale: npt.NDArray[np.float32]


class TurnEncoder:
    """Runs ``encoder.onnx`` in batches suited to the provider.

    ``limits``: of the batches; an encoder whose results depend on the batch gets single texts.
    ``at_once``: how many batches a CPU computes at the same time, with ``threads`` each.
    """

    def __init__(
        self,
        graph: Path,
        spec: EncoderSpec,
        provider: Provider,
        threads: int,
        at_once: int = 1,
        device: CudaDevice = FIRST_DEVICE,
    ) -> None:
        session = open_session(
            encoder_graph(graph),
            provider,
            threads,
            fixed_shapes=spec.batch_independent,
            device=device,
        )
        self.provider = provider_in_use(session)
        self.limits = batch_limits(spec, self.provider, threads)
        self.session: Any = session
        if isinstance(self.limits, Shapes):
            self.session = bound(session, self.limits, device)
            at_once = 1  # it has one set of buffers
        self._pool = ThreadPoolExecutor(at_once, "encoder") if at_once > 1 else None

    def encode(self, texts: list[Tokens]) -> list[TokenOutput]:
        """Encode texts; results are in input order."""
        results: dict[int, TokenOutput] = {}
        lengths = [len(tokens.ids) for tokens in texts]
        batches = list(plan_batches(lengths, self.limits))
        run = partial(self.run, texts)
        computed = map(run, batches) if self._pool is None else self._pool.map(run, batches)
        for batch, (vectors, logits) in zip(batches, computed, strict=True):
            rationales = _sigmoid(logits)
            for row, index in enumerate(batch.texts):
                results[index] = TokenOutput(vectors[row], rationales[row, : lengths[index]])
        return [results[i] for i in range(len(texts))]

    def run(
        self, texts: Sequence[Tokens], batch: Batch
    ) -> tuple[npt.NDArray[np.float16], npt.NDArray[np.float32]]:
        """Run one padded batch; return vectors [rows, 2, hidden] and rationale logits."""
        feeds = padded([texts[index].ids for index in batch.texts], batch.rows, batch.tokens)
        vectors, logits = self.session.run(["vectors", "rationale_logits"], feeds)
        return vectors.astype(np.float16), logits


def encoder_graph(file: Path) -> Graph:
    """The encoder for CPUs, and made from it, for CUDA."""

    def for_cuda() -> bytes:
        from stream_app.inference.devices import float16_graph  # noqa: PLC0415  # needs the extra `gpu`

        return float16_graph.encoder(file)

    return Graph(file, for_cuda)


def batch_limits(spec: EncoderSpec, provider: Provider, threads: int) -> BatchLimits | Shapes:
    """Limits of the batches for a provider; more threads get larger batches."""
    if not spec.batch_independent:
        return ONE_BY_ONE
    if provider is Provider.CUDA:
        widths = [tokens for tokens in CUDA_TOKENS if tokens < spec.max_tokens]
        return Shapes(CUDA_ROWS, (*widths, spec.max_tokens), CUDA_BUDGET)
    batch = CPU_PACKED if spec.packed else CPU_BATCH
    return BatchLimits(batch.tokens * max(1, threads), batch.padding * max(1, threads))


def _sigmoid(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.asarray(1.0 / (1.0 + np.exp(-logits)), np.float32)
