"""The same bundle in a plain loop: no Faust, and only the windows of Rapport.

``once``: a turn is encoded once, and windows of vectors are kept in a dict. ``window``: the texts
of the window are joined into one input and re-encoded for every turn, as most models are used; one
score per turn. Both with Rapport's window of 3 turns before and 3 after.
"""

import sys
from collections import defaultdict, deque
from typing import Any

from benchmarks.consumers import polling
from benchmarks.consumers.job import Row, as_json, job
from benchmarks.load.clocks import ModelClock
from stream_app.contracts.events import Turn
from stream_app.contracts.scores import Stage
from stream_app.core.measures.window import (
    ScoringRequest,
    WindowPolicy,
    WindowState,
    WindowTurn,
    push,
)
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.devices.provider_choice import Provider
from stream_app.inference.scorer import OnnxScorer
from stream_app.inference.tokenizer import TextTokenizer

LONGEST = 512


class EncodeOnce:
    """Encodes a poll's turns, then scores the turns that are due."""

    def __init__(self, scorer: OnnxScorer) -> None:
        self._scorer = scorer
        self._windows: dict[str, WindowState] = defaultdict(WindowState)
        self._policy = WindowPolicy(*scorer.window)

    def __call__(self, turns: list[Turn]) -> list[Row]:
        """Provisional and final scores."""
        due: list[tuple[str, ScoringRequest]] = []
        encodings = self._scorer.encode(
            [turn.text for turn in turns], [turn.speaker_role for turn in turns]
        )
        for turn, encoding in zip(turns, encodings, strict=True):
            encoded = WindowTurn(
                turn.seq,
                turn.speaker_role,
                turn.occurred_at,
                0,
                0,
                encoding.vectors,
                encoding.rationales,
            )
            requests = push(self._windows[turn.session_id], encoded, self._policy)
            due += [(turn.session_id, request) for request in requests]
        scores = self._scorer.score([request for _, request in due])
        return [
            (session, request.turn.seq, request.stage.value, as_json(score))
            for (session, request), score in zip(due, scores, strict=True)
        ]


class EncodeWindow:
    """Re-encodes the whole window for every turn."""

    def __init__(self, scorer: OnnxScorer) -> None:
        bundle = scorer.bundle
        self._scorer = scorer
        self._tokenizer = TextTokenizer(bundle.file(bundle.manifest.tokenizer.file), LONGEST)
        before, self._after = scorer.window
        turns = before + 1 + self._after
        self._windows: dict[str, deque[Turn]] = defaultdict(lambda: deque(maxlen=turns))

    def __call__(self, turns: list[Turn]) -> list[Row]:
        """For each new turn, score the turn in the median of its window."""
        targets: list[Turn] = []
        texts: list[str] = []
        for turn in turns:
            window = self._windows[turn.session_id]
            window.append(turn)
            targets.append(window[-1 - min(self._after, len(window) - 1)])
            texts.append(" ".join(said.text for said in window))
        encoded = self._scorer.encoder.encode(self._tokenizer.tokenize(texts))
        heads = self._scorer.score(
            [
                ScoringRequest(
                    WindowTurn(
                        turn.seq,
                        turn.speaker_role,
                        turn.occurred_at,
                        0,
                        0,
                        output.vectors.tobytes(),
                        {},
                    ),
                    Stage.FINAL,
                    [],
                )
                for turn, output in zip(targets, encoded, strict=True)
            ]
        )
        return [
            (turn.session_id, turn.seq, Stage.FINAL.value, as_json(score))
            for turn, score in zip(targets, heads, strict=True)
        ]


def main() -> None:
    """Run until a signal arrives."""
    work = job()
    clock = ModelClock()
    scorer: Any = OnnxScorer(bundles.load(work.bundle), Provider.CPU)
    for part in (scorer.encoder, scorer.head):
        part.session = clock.watch(part.session)
    score = EncodeOnce(scorer) if sys.argv[1] == "once" else EncodeWindow(scorer)
    polling.run(work, score, lambda: clock.seconds)


if __name__ == "__main__":
    main()
