"""Stand-ins for the ONNX sessions of a scorer: they answer at once with outputs of the real ones.

Everything else of the scorer stays: tokeniser, batches, windows, calibration, rationales. So a
profile shows the work outside the model, with scores and rationales as likely as real ones. The
scores of a turn mean nothing: its outputs are those of another turn.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.load import workload
from stream_app.core.pipeline.pipeline import Pipeline, Source, receive
from stream_app.core.session.session_state import Versioned
from stream_app.inference.scorer import OnnxScorer

RECORDED: Final = 240
"""Turns whose outputs are answered again and again."""

Array = npt.NDArray[Any]


class Recorder:
    """Runs a session and keeps its outputs."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.calls: list[tuple[Mapping[str, Array], dict[str, Array]]] = []

    def run(self, names: list[str], feeds: Mapping[str, Array]) -> list[Array]:
        """Run the session and keep the outputs."""
        found: list[Array] = self._session.run(names, feeds)
        self.calls.append((feeds, dict(zip(names, found, strict=True))))
        return found


class EncoderStandIn:
    """Answers with vectors and rationale logits of recorded turns, in turn."""

    def __init__(self, recorder: Recorder) -> None:
        self._vectors = np.concatenate([outputs["vectors"] for _, outputs in recorder.calls])
        self._logits = np.concatenate(
            [
                outputs["rationale_logits"][feeds["attention_mask"] == 1]
                for feeds, outputs in recorder.calls
            ]
        )
        self._next = 0

    def run(self, names: list[str], feeds: Mapping[str, Array]) -> list[Array]:
        """Outputs of the encoder graph; ``names`` must be vectors and rationale logits."""
        del names
        rows, tokens = feeds["input_ids"].shape
        self._next += rows
        places = np.arange(self._next, self._next + rows) % len(self._vectors)
        of_tokens = np.arange(self._next, self._next + rows * tokens) % len(self._logits)
        return [self._vectors[places], self._logits[of_tokens].reshape(rows, tokens, -1)]


class HeadStandIn:
    """Answers with logits of recorded requests, in turn."""

    def __init__(self, recorder: Recorder) -> None:
        self._logits = {
            name: np.concatenate([outputs[name] for _, outputs in recorder.calls])
            for name in recorder.calls[0][1]
        }
        self._next = 0

    def run(self, names: list[str], feeds: Mapping[str, Array]) -> list[Array]:
        """Outputs of the head graph."""
        rows = len(feeds["target"])
        self._next += rows
        return [
            logits[np.arange(self._next, self._next + rows) % len(logits)]
            for logits in (self._logits[name] for name in names)
        ]


def install(scorer: OnnxScorer, pipeline: Pipeline) -> None:
    """Run the pipeline with the real sessions once, then replace them by stand-ins."""
    encoder, head = Recorder(scorer.encoder.session), Recorder(scorer.head.session)
    parts: list[tuple[Any, Any]] = [(scorer.encoder, encoder), (scorer.head, head)]
    for part, recorder in parts:
        part.session = recorder
    states: dict[str, Versioned] = {}
    for offset, turn in enumerate(workload.turns(RECORDED)):
        raw = workload.event(turn, "recorded", float(offset))
        pipeline.process([receive(Source("recorded", 0, offset), raw)], states)
    parts = [(scorer.encoder, EncoderStandIn(encoder)), (scorer.head, HeadStandIn(head))]
    for part, stand_in in parts:
        part.session = stand_in
