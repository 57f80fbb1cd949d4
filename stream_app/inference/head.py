"""Runs the head graph: vectors of a turn and its neighbours to logits."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from stream_app.contracts.events import Role
from stream_app.core.measures.window import ScoringRequest, WindowTurn
from stream_app.inference.devices.provider_choice import Provider
from stream_app.inference.devices.providers import Graph, open_session

ROLE_CODES = {Role.CLIENT: 0, Role.COUNSELLOR: 1}
MAX_BATCH = 256

Feeds = dict[str, npt.NDArray[np.float32] | npt.NDArray[np.int64]]


class ContextHead:
    """Runs ``head.onnx``; ``slots``: maximum number of neighbours."""

    def __init__(
        self, graph: Path, provider: Provider, threads: int, slots: int, hidden: int
    ) -> None:
        self.session = open_session(Graph(graph), provider, threads)
        self._names = [output.name for output in self.session.get_outputs()]
        self._slots = slots
        self._hidden = hidden

    def logits(self, requests: list[ScoringRequest]) -> dict[str, npt.NDArray[np.float32]]:
        """Logits [requests, labels] by head name."""
        parts = [
            self.session.run(self._names, self.feeds(requests[i : i + MAX_BATCH]))
            for i in range(0, len(requests), MAX_BATCH)
        ]
        if len(parts) == 1:
            return dict(zip(self._names, parts[0], strict=True))
        return {
            name: np.concatenate([part[i] for part in parts]) for i, name in enumerate(self._names)
        }

    def feeds(self, requests: list[ScoringRequest]) -> Feeds:
        """The graph's inputs for these requests."""
        n, slots, hidden = len(requests), self._slots, self._hidden
        known: dict[int, int] = {}  # index by object identity, as most turns are in many windows
        raw: list[bytes] = []

        def index_of(turn: WindowTurn) -> int:
            index = known.get(id(turn))
            if index is None:
                index = known[id(turn)] = len(raw)
                raw.append(turn.vectors)
            return index

        own = [index_of(t.turn) for t in requests]
        seen = [
            (row * slots + slot, index_of(other.turn), ROLE_CODES[other.turn.role], other.distance)
            for row, item in enumerate(requests)
            for slot, other in enumerate(item.context[:slots])
        ]
        vectors = np.frombuffer(b"".join(raw), np.float16).reshape(-1, 2, hidden)
        context = np.zeros((n * slots, hidden), np.float32)
        context_role = np.zeros(n * slots, np.int64)
        distance = np.zeros(n * slots, np.int64)
        mask = np.zeros(n * slots, np.int64)
        if seen:
            at, index, role, offset = np.array(seen, np.int64).T
            context[at] = vectors[index, 1]
            context_role[at], distance[at], mask[at] = role, offset, 1
        return {
            "target": vectors[own].astype(np.float32),
            "target_role": np.array([ROLE_CODES[t.turn.role] for t in requests], np.int64),
            "context": context.reshape(n, slots, hidden),
            "context_role": context_role.reshape(n, slots),
            "context_distance": distance.reshape(n, slots),
            "context_mask": mask.reshape(n, slots),
        }
