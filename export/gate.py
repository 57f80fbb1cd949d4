"""Compare quantised encoders with float32 in accuracy and speed, in one run."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from models.evaluate.predict import Ints, Predictions
from models.evaluate.resampling import interval
from models.model.batches import EncoderChunk, Segment, encoder_chunks
from models.model.onnx_model import OnnxModel

LEAST_AGREEMENT = 0.98
LARGEST_F1_LOSS = 0.01
"""A candidate fails when the whole interval of its macro-F1 difference lies below minus this.

The whole interval, because with 250 turns and eight of a rare label, one changed label is already
three points of macro-F1.
"""


@dataclass(frozen=True)
class Candidate:
    """An encoder graph with its predictions on the held-out turns."""

    name: str
    encoder: Path
    batch_independent: bool
    scorer: OnnxModel
    predictions: Predictions


def compare(reference: Predictions, candidate: Predictions) -> dict[str, Any]:
    """Share of equal labels and macro-F1 difference of every head, and whether the gate passes.

    Labels are compared on all held-out turns of the head's role (`turns`), macro-F1 (0-1, candidate
    minus reference) on those with a label, with the 95 % interval over these turns.
    """
    heads = {}
    for name, outputs in reference.heads.items():
        expected = reference.everywhere[name].argmax(-1)
        given = candidate.everywhere[name].argmax(-1)
        other = candidate.heads[name]
        difference = f1_difference(outputs.gold, outputs.predicted, other.predicted)
        heads[name] = {
            "turns": len(expected),
            "agreement": round(float(np.mean(expected == given)), 4),
            "agreement_labelled": round(float(np.mean(outputs.predicted == other.predicted)), 4),
            "macro_f1_difference": round(difference["value"], 4),
            "macro_f1_interval": [round(difference[end], 4) for end in ("low", "high")],
        }
    passes = all(
        values["agreement"] >= LEAST_AGREEMENT
        and values["macro_f1_interval"][1] >= -LARGEST_F1_LOSS
        for values in heads.values()
    )
    return {"passes": passes, "heads": heads}


def f1_difference(gold: Ints, before: Ints, after: Ints) -> dict[str, Any]:
    """Macro-F1 difference (after − before) with its 95 % bootstrap interval over turns."""
    labels = max(int(values.max()) for values in (gold, before, after)) + 1
    pairs = [gold * labels + predicted for predicted in (before, after)]

    def difference(rows: Ints) -> float:
        first, second = (
            _macro_f1(np.bincount(pair[rows], minlength=labels**2).reshape(labels, labels))
            for pair in pairs
        )
        return second - first

    return interval(np.arange(len(gold)), difference)


def _macro_f1(table: Ints) -> float:
    """`metrics.macro_f1` of a table [gold, predicted], vectorised for resampling."""
    both = table.sum(0) + table.sum(1)
    present = both > 0
    return float(np.mean(2 * table.diagonal()[present] / both[present]))


def throughput(
    candidates: list[Candidate], segments: list[Segment], turns: int = 192, rounds: int = 5
) -> dict[str, float]:
    """Turns per second of each candidate's encoder at one thread: medians of interleaved rounds.

    Single turns if results depend on the batch; otherwise the better of that and batches of eight
    turns of similar length.
    """
    sample = [turn for segment in segments for turn in segment.turns]
    sample = sample[:: max(1, len(sample) // turns)][:turns]
    single = [chunk for turn in sample for chunk in encoder_chunks([turn], 1)]
    ordered = sorted(sample, key=lambda turn: len(turn.ids))
    eights = [
        chunk
        for start in range(0, len(ordered), 8)
        for chunk in encoder_chunks(ordered[start : start + 8], 10**6)
    ]
    times: dict[tuple[str, int], list[float]] = {}
    for _ in range(rounds):
        for candidate in candidates:
            for size, chunks in ((1, single), (8, eights)):
                if size == 1 or candidate.batch_independent:
                    elapsed = _elapsed(candidate.scorer, chunks)
                    times.setdefault((candidate.name, size), []).append(elapsed)
    best: dict[str, float] = {}
    for (name, _), rounds_of_it in times.items():
        speed = len(sample) / statistics.median(rounds_of_it)
        best[name] = max(best.get(name, 0.0), round(speed, 1))
    return best


def _elapsed(scorer: OnnxModel, chunks: list[EncoderChunk]) -> float:
    with torch.inference_mode():
        started = time.perf_counter()
        for chunk in chunks:
            scorer.encode(chunk.input_ids, chunk.attention_mask)
        return time.perf_counter() - started


def report(candidates: list[Candidate], segments: list[Segment]) -> dict[str, Any]:
    """Figures of every candidate compared with the first, which is float32."""
    reference, *others = candidates
    speeds = throughput(candidates, segments)
    return {
        "least_agreement": LEAST_AGREEMENT,
        "largest_macro_f1_loss": LARGEST_F1_LOSS,
        "reference": {
            "turns_per_second": speeds[reference.name],
            "encoder_bytes": reference.encoder.stat().st_size,
        },
        "candidates": {
            candidate.name: {
                **compare(reference.predictions, candidate.predictions),
                "batch_independent": candidate.batch_independent,
                "turns_per_second": speeds[candidate.name],
                "speed_ratio": round(speeds[candidate.name] / speeds[reference.name], 2),
                "encoder_bytes": candidate.encoder.stat().st_size,
            }
            for candidate in others
        },
    }


def fastest_passing(figures: dict[str, Any]) -> str | None:
    """Name of the fastest candidate that passes the gate, or None."""
    passing = {
        name: values["speed_ratio"]
        for name, values in figures["candidates"].items()
        if values["passes"]
    }
    return max(passing, key=passing.__getitem__) if passing else None
