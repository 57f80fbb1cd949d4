"""Runs the reader graph: the words before a turn and the turn itself, read together.

The encoder sees one turn at a time, so that a head can only compare what two turns are about. The
reader attends from every token of an answer to every token of what it answers, which is what tells
an answer that fits this client from one that only sounds right.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from stream_app.contracts.events import Role
from stream_app.core.measures.heads import Dimension
from stream_app.core.measures.window import ScoringRequest, WindowTurn
from stream_app.inference import parts
from stream_app.inference.bundles.bundle import ReaderSpec
from stream_app.inference.devices.batching import (
    ONE_BY_ONE,
    BatchLimits,
    Shapes,
    padded,
    plan_batches,
)
from stream_app.inference.devices.io_binding import bound
from stream_app.inference.devices.provider_choice import FIRST_DEVICE, CudaDevice, Provider
from stream_app.inference.devices.providers import Graph, open_session, provider_in_use
from stream_app.inference.encoder import CUDA_BUDGET, CUDA_ROWS

READER_BATCH = BatchLimits(tokens=256, padding=16)
"""Limits for each thread, as for the encoder."""
CUDA_TOKENS: Final = (32, 64, 96, 128, 192)
"""Widths of batches, besides the reader's maximum."""
CUDA_MULTIPLE: Final = 8
"""The maximum is made a multiple of this, because the device computes in tiles."""
STEPS = 1024
"""Logits are rounded to so many steps of 1, because sums differ in their last bits by batch."""
_TOKEN = np.dtype("<u2")


class TurnReader:
    """Runs ``reader.onnx``; each of its outputs has the logits of one head.

    ``digest``: of the graph's file, which marks the readings that are this reader's.
    """

    def __init__(
        self,
        graph: Path,
        spec: ReaderSpec,
        provider: Provider,
        threads: int,
        digest: str,
        device: CudaDevice = FIRST_DEVICE,
    ) -> None:
        session = open_session(
            reader_graph(graph, spec),
            provider,
            threads,
            fixed_shapes=spec.batch_independent,
            device=device,
        )
        self.provider = provider_in_use(session)
        outputs = session.get_outputs()
        self.names = [output.name for output in outputs]
        self._sizes = [int(output.shape[-1]) for output in outputs]
        self._ends = np.cumsum(self._sizes)[:-1]
        self._spec = spec
        self._mark = bytes.fromhex(digest[:8])
        self.limits = batch_limits(spec, self.provider, threads)
        self.session: Any = session
        if isinstance(self.limits, Shapes):
            self.session = bound(session, self.limits, device)

    def readings(self, requests: Sequence[ScoringRequest]) -> list[bytes]:
        """The reading of each request's turn; known ones are returned as they are.

        A request that must not have outputs about the client gets no reading of a client's turn.
        """
        found = [self._known(request) for request in requests]
        missing = [place for place, reading in enumerate(found) if reading is None]
        inputs = [self.inputs_of(requests[place]) for place in missing]
        logits = iter(self._run([each for of_turn in inputs for each in of_turn]))
        for place, of_turn in zip(missing, inputs, strict=True):
            found[place] = self._mark + b"".join(next(logits).tobytes() for _ in of_turn)
        return [reading or b"" for reading in found]

    def logits(
        self, readings: Sequence[bytes]
    ) -> tuple[dict[str, npt.NDArray[np.float32]], list[int]]:
        """Logits [parts, labels] by head, and how many parts each reading has.

        Without a reading there is one part of zeros.
        """
        width = sum(self._sizes)
        rows = [
            np.frombuffer(reading, "<f4", offset=len(self._mark)).reshape(-1, width)
            if reading
            else np.zeros((1, width), np.float32)
            for reading in readings
        ]
        table = np.concatenate(rows) if rows else np.zeros((0, width), np.float32)
        found = dict(zip(self.names, np.split(table, self._ends, axis=1), strict=True))
        return found, [len(row) for row in rows]

    def inputs_of(self, request: ScoringRequest) -> list[list[int]]:
        """The token ids of each part of a turn, which begins after ``between``, with its context.

        A turn that is as short as the reader reads has one part.
        """
        spec = self._spec
        before: list[int] = []
        preceding = [each.turn for each in request.context if each.distance < 0]
        for turn in reversed(preceding[-spec.turns :]):
            role = spec.roles[turn.role]
            room = spec.context_tokens - len(before) - len(role)
            if room <= 1:
                break
            before = [*role, *_ids(turn, -room), *before]
        turn = request.turn
        alone = turn.role is Role.CLIENT and not before
        limit = spec.client_tokens if alone else spec.target_tokens
        ids = _ids(turn)
        start = [spec.start, *before, *spec.between, *spec.roles[turn.role]]
        return [[*start, *ids[first:end], spec.end] for first, end in parts.spans(len(ids), limit)]

    def _known(self, request: ScoringRequest) -> bytes | None:
        turn = request.turn
        if not turn.tokens or (turn.role is Role.CLIENT and Dimension.CLIENT in request.restricted):
            return b""
        return turn.readings if turn.readings.startswith(self._mark) else None

    def _run(self, inputs: Sequence[list[int]]) -> Iterable[npt.NDArray[np.float32]]:
        results: dict[int, npt.NDArray[np.float32]] = {}
        for batch in plan_batches([len(ids) for ids in inputs], self.limits):
            feeds = padded([inputs[index] for index in batch.texts], batch.rows, batch.tokens)
            found = self.session.run(self.names, feeds)
            logits = np.concatenate(found, axis=1)[: len(batch.texts)]
            together = np.rint(logits * STEPS) / STEPS
            results.update(zip(batch.texts, together.astype("<f4"), strict=True))
        return [results[place] for place in range(len(inputs))]


def reader_graph(file: Path, spec: ReaderSpec) -> Graph:
    """The reader for CPUs, and made from it, for CUDA."""

    def for_cuda() -> bytes:
        from stream_app.inference.devices import float16_graph  # noqa: PLC0415  # needs the extra `gpu`

        return float16_graph.reader(file, spec.between)

    return Graph(file, for_cuda)


def batch_limits(spec: ReaderSpec, provider: Provider, threads: int) -> BatchLimits | Shapes:
    """Limits of the batches for a provider."""
    if not spec.batch_independent:
        return ONE_BY_ONE
    if provider is Provider.CUDA:
        widest = -(-spec.most_tokens // CUDA_MULTIPLE) * CUDA_MULTIPLE
        widths = [tokens for tokens in CUDA_TOKENS if tokens < widest]
        return Shapes(CUDA_ROWS, (*widths, widest), CUDA_BUDGET)
    return BatchLimits(READER_BATCH.tokens * threads, READER_BATCH.padding * threads)


def packed_tokens(ids: Sequence[int]) -> bytes:
    """Token ids as the windows keep them, two bytes each; ids must be below 65,536."""
    return np.asarray(ids, _TOKEN).tobytes()


def _ids(turn: WindowTurn, first: int = 0) -> list[int]:
    ids: list[int] = np.frombuffer(turn.tokens, _TOKEN)[first:].tolist()
    return ids
