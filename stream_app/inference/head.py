"""The head graph: a turn's vectors and those of its neighbours to logits."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from stream_app.contracts.events import Role
from stream_app.core.window import Target
from stream_app.inference.providers import Provider, open_session

ROLE_CODES = {Role.CLIENT: 0, Role.COUNSELLOR: 1}
MAX_BATCH = 256

Feeds = dict[str, npt.NDArray[np.float32] | npt.NDArray[np.int64]]


class ContextHead:
    """Runs ``head.onnx``. ``slots``: neighbours that fit in."""

    def __init__(
        self, graph: Path, provider: Provider, threads: int, slots: int, hidden: int
    ) -> None:
        self.session = open_session(graph, provider, threads)
        self._names = [output.name for output in self.session.get_outputs()]
        self._slots = slots
        self._hidden = hidden

    def logits(self, targets: list[Target]) -> dict[str, npt.NDArray[np.float32]]:
        """Logits [targets, labels] by head name."""
        parts = [
            self.session.run(self._names, self.feeds(targets[i : i + MAX_BATCH]))
            for i in range(0, len(targets), MAX_BATCH)
        ]
        return {
            name: np.concatenate([part[i] for part in parts]) for i, name in enumerate(self._names)
        }

    def feeds(self, targets: list[Target]) -> Feeds:
        """The graph's inputs for some targets."""
        n, slots, hidden = len(targets), self._slots, self._hidden
        target = np.stack([_vectors(t.turn.vectors, hidden) for t in targets])
        role = np.array([ROLE_CODES[t.turn.role] for t in targets], np.int64)
        context = np.zeros((n, slots, hidden), np.float32)
        context_role = np.zeros((n, slots), np.int64)
        distance = np.zeros((n, slots), np.int64)
        mask = np.zeros((n, slots), np.int64)
        for row, item in enumerate(targets):
            for slot, neighbour in enumerate(item.context[:slots]):
                context[row, slot] = _vectors(neighbour.turn.vectors, hidden)[1]
                context_role[row, slot] = ROLE_CODES[neighbour.turn.role]
                distance[row, slot] = neighbour.distance
                mask[row, slot] = 1
        return {
            "target": target,
            "target_role": role,
            "context": context,
            "context_role": context_role,
            "context_distance": distance,
            "context_mask": mask,
        }


def _vectors(raw: bytes, hidden: int) -> npt.NDArray[np.float32]:
    return np.frombuffer(raw, np.float16).reshape(2, hidden).astype(np.float32)
