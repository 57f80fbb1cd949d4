"""Runs the reader graph: the words before a turn and the turn itself, read together.

The encoder sees one turn at a time, so that a head can only compare what two turns are about. The
reader attends from every token of an answer to every token of what it answers, which is what tells
an answer that fits this client from one that only sounds right.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stream_app.contracts.events import Role
from stream_app.core.heads import Dimension
from stream_app.core.window import ScoringRequest, WindowTurn
from stream_app.inference.batching import ONE_BY_ONE, BatchLimits, plan_batches
from stream_app.inference.bundle import ReaderSpec
from stream_app.inference.provider_choice import Provider
from stream_app.inference.providers import open_session

READER_BATCH = BatchLimits(tokens=256, padding=16)
"""Per thread, as for the encoder."""
STEPS = 1024
"""Logits are rounded to so many steps of 1, because sums differ in their last bits by batch."""
_TOKEN = np.dtype("<u2")


class TurnReader:
    """Runs ``reader.onnx``; each of its outputs has the logits of one head.

    ``digest``: of the graph's file, which marks the readings that are this reader's.
    """

    def __init__(
        self, graph: Path, spec: ReaderSpec, provider: Provider, threads: int, digest: str
    ) -> None:
        self.session = open_session(graph, provider, threads)
        outputs = self.session.get_outputs()
        self.names = [output.name for output in outputs]
        self._sizes = [int(output.shape[-1]) for output in outputs]
        self._ends = np.cumsum(self._sizes)[:-1]
        self._spec = spec
        self._mark = bytes.fromhex(digest[:8])
        self._limits = (
            BatchLimits(READER_BATCH.tokens * threads, READER_BATCH.padding * threads)
            if spec.batch_independent
            else ONE_BY_ONE
        )

    def readings(self, requests: Sequence[ScoringRequest]) -> list[bytes]:
        """The reading of each request's turn; known ones are returned as they are.

        A request that must not have outputs about the client gets no reading of a client's turn.
        """
        found = [self._known(request) for request in requests]
        missing = [place for place, reading in enumerate(found) if reading is None]
        inputs = [self.input_of(requests[place]) for place in missing]
        for place, logits in zip(missing, self._run(inputs), strict=True):
            found[place] = self._mark + logits.tobytes()
        return [reading or b"" for reading in found]

    def logits(self, readings: Sequence[bytes]) -> dict[str, npt.NDArray[np.float32]]:
        """Logits [readings, labels] by head; zero where there is no reading."""
        width = sum(self._sizes)
        table = np.zeros((len(readings), width), np.float32)
        for row, reading in enumerate(readings):
            if reading:
                table[row] = np.frombuffer(reading, "<f4", offset=len(self._mark))
        return dict(zip(self.names, np.split(table, self._ends, axis=1), strict=True))

    def input_of(self, request: ScoringRequest) -> list[int]:
        """The token ids of a request; the turn that is read begins after ``between``."""
        spec = self._spec
        before: list[int] = []
        preceding = [each.turn for each in request.context if each.distance < 0]
        for turn in reversed(preceding[-spec.turns :]):
            role = spec.roles[turn.role]
            room = spec.context_tokens - len(before) - len(role)
            if room <= 1:
                break
            before = [*role, *_ids(turn)[-room:], *before]
        turn = request.turn
        alone = turn.role is Role.CLIENT and not before
        limit = spec.client_tokens if alone else spec.target_tokens
        own = [*spec.roles[turn.role], *_ids(turn)[:limit]]
        return [spec.start, *before, *spec.between, *own, spec.end]

    def _known(self, request: ScoringRequest) -> bytes | None:
        turn = request.turn
        if not turn.tokens or (turn.role is Role.CLIENT and Dimension.CLIENT in request.restricted):
            return b""
        return turn.readings if turn.readings.startswith(self._mark) else None

    def _run(self, inputs: Sequence[list[int]]) -> Iterable[npt.NDArray[np.float32]]:
        results: dict[int, npt.NDArray[np.float32]] = {}
        for batch in plan_batches([len(ids) for ids in inputs], self._limits):
            ids = np.zeros((batch.rows, batch.tokens), np.int64)
            mask = np.zeros((batch.rows, batch.tokens), np.int64)
            for row, index in enumerate(batch.texts):
                own = inputs[index]
                ids[row, : len(own)] = own
                mask[row, : len(own)] = 1
            parts = self.session.run(self.names, {"input_ids": ids, "attention_mask": mask})
            together = np.rint(np.concatenate(parts, axis=1) * STEPS) / STEPS
            results.update(zip(batch.texts, together.astype("<f4"), strict=True))
        return [results[place] for place in range(len(inputs))]


def packed_tokens(ids: Sequence[int]) -> bytes:
    """Token ids as the windows keep them, two bytes each; ids must be below 65,536."""
    return np.asarray(ids, _TOKEN).tobytes()


def _ids(turn: WindowTurn) -> list[int]:
    ids: list[int] = np.frombuffer(turn.tokens, _TOKEN).tolist()
    return ids
