"""Cost by length of a turn, and a model that predicts turns per second from it.

The model is fitted on turns of one length each and tested on the mixture of lengths used by all
other tables, and, if more bundles are shipped, on their encoders. Each round is fitted and tested
separately, and the median error is shown, so that drifts in machine load cancel out.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from benchmarks import consumer_group, cost, markdown, onnx_only, operations, testbed, workload
from benchmarks.cost import Point
from benchmarks.errors import Unavailable
from benchmarks.options import Options
from benchmarks.rounds import median
from benchmarks.workload import Turn
from stream_app.inference import bundle as bundles

NAME: Final = "length"
TITLE: Final = "Turn length and the cost model"
LENGTHS: Final = (4, 8, 16, 32, 64, 128)
SESSIONS: Final = 64
WANTED: Final = 0.15
"""Allowed relative error of the model on turns and encoders that it was not fitted on."""


class Length(Struct):
    """Turns per second by round; ``mixture``: real lengths, ``tokens`` is their mean."""

    tokens: float
    mixture: bool
    bare: list[float]
    ours: list[float]
    overheads: list[float]


class OtherBundle(Struct):
    """Another encoder on the mixture: turns per second of its sessions alone."""

    bundle: str
    mega_operations: float
    tokens: float
    bare: list[float]


class Result(Struct):
    """``mega_operations``: of the encoder per token; None if they could not be counted."""

    bundle: str
    mega_operations: float | None
    lengths: list[Length]
    others: list[OtherBundle]


def measure(options: Options) -> Result:
    """Measure the sessions alone and a worker on SQLite, with the same turns."""
    most, least = options.size((12_000, 4 * SESSIONS), (320, 40))
    sets = [
        workload.fixed(max(least, most // tokens), tokens, SESSIONS)
        for tokens in options.size(LENGTHS, (4, 32))
    ]
    mixture = workload.turns(options.size(2000, 120))
    lengths = [_length(turns, mixture=False) for turns in sets] + [_length(mixture, mixture=True)]
    manifest, counted = bundles.load(options.bundle).manifest, _operations(options.bundle)
    paths = [] if counted is None else options.other_bundles()
    others = [(path, _other(path, mixture)) for path in paths]
    with testbed.opened(options.bundle, options.kafka) as bed:
        for number in range(options.rounds):
            with consumer_group.workers(bed.deployment()) as workers:
                for place, (length, turns) in enumerate(
                    zip(lengths, [*sets, mixture], strict=True)
                ):
                    with onnx_only.model_processes(options.bundle, turns) as processes:
                        length.bare.append(processes.rate())
                    burst = workers.burst(f"length{place}", turns)
                    length.ours.append(burst.rate)
                    length.overheads.append(burst.overhead)
                    options.say(
                        f"round {number + 1}: {length.tokens:.1f} tokens: {burst.rate:.1f} turns/s"
                    )
                for path, other in others:
                    with onnx_only.model_processes(path, mixture) as processes:
                        other.bare.append(processes.rate())
    return Result(manifest.bundle_id, counted, lengths, [other for _, other in others])


def _length(turns: list[Turn], *, mixture: bool) -> Length:
    return Length(sum(turn.tokens for turn in turns) / len(turns), mixture, [], [], [])


def _operations(bundle: Path) -> float | None:
    graph = bundle / bundles.load(bundle).manifest.encoder.file
    try:
        return operations.mega_operations(graph)
    except Unavailable:
        return None


def _other(path: Path, turns: list[Turn]) -> OtherBundle:
    tokens = sum(turn.tokens for turn in turns) / len(turns)
    name = bundles.load(path).manifest.bundle_id
    return OtherBundle(name, _operations(path) or 0.0, tokens, [])


def table(result: Result) -> str:
    """The measured lengths, then the model and its errors."""
    fixed = [item for item in result.lengths if not item.mixture]
    fixed_bare = [(item.tokens, item.bare) for item in fixed]
    fixed_ours = [(item.tokens, item.ours) for item in fixed]
    sessions = cost.fit([Point(tokens, median(rates)) for tokens, rates in fixed_bare])
    worker = cost.fit([Point(tokens, median(rates)) for tokens, rates in fixed_ours])
    rows = [
        [
            f"{item.tokens:.1f}{' (mixture)' if item.mixture else ''}",
            f"{median(item.bare):.1f}",
            _shown(off(fixed_bare, item.tokens, item.bare)),
            f"{median(item.ours):.1f}",
            _shown(off(fixed_ours, item.tokens, item.ours)),
            f"{median(item.overheads):.0f}",
        ]
        for item in result.lengths
    ]
    unseen = [
        off(known, item.tokens, rates)
        for item in result.lengths
        if item.mixture
        for known, rates in ((fixed_bare, item.bare), (fixed_ours, item.ours))
    ]
    for other in result.others:
        larger = other.mega_operations / (result.mega_operations or 1.0)
        unseen.append(off(fixed_bare, other.tokens, other.bare, larger))
        what = f"{other.tokens:.1f} (mixture, {other.bundle})"
        rows.append([what, f"{median(other.bare):.1f}", _shown(unseen[-1]), "", "", ""])
    head = [
        "tokens",
        "bare, turns/s",
        "model error",
        "ours, turns/s",
        "model error",
        "µs of CPU a turn, not the model",
    ]
    worst = 100 * max(abs(value) for value in unseen)
    verdict = (
        f"On data outside the fit, its error is at most {worst:.1f} %; "
        f"{100 * WANTED:.0f} % are allowed."
    )
    return f"{_words(result, sessions, worker)} {verdict}\n\n{markdown.table(head, rows)}"


def _words(result: Result, sessions: cost.Cost, worker: cost.Cost) -> str:
    words = [
        f"{name}: {1e6 * found.a:.0f} µs a turn + {1e6 * found.b:.1f} µs a token."
        for name, found in (("ONNX sessions", sessions), ("One worker", worker))
    ]
    if result.mega_operations is None:
        words.append("Operations of the encoder: not measured.")
    else:
        words.append(
            f"The encoder of {result.bundle} needs {result.mega_operations:.1f} million operations "
            f"per token, so a core performs {sessions.giga_operations(result.mega_operations):.0f} "
            "billion per second."
        )
    return " ".join(words)


def off(
    known: Sequence[tuple[float, Sequence[float]]],
    tokens: float,
    measured: Sequence[float],
    operations: float = 1.0,
) -> float:
    """The model's relative error: the median over the rounds.

    Args:
        known: lengths with their rates by round, for fitting the model.
        tokens: the mean length to predict.
        measured: its rates by round.
        operations: operations of the measured encoder, relative to the fitted one's.

    >>> off([(10, [500.0, 50.0]), (30, [250.0, 25.0])], 70, [125.0, 12.5])
    0.0
    """
    errors = []
    for number, rate in enumerate(measured):
        fitted = cost.fit([Point(length, rates[number]) for length, rates in known])
        errors.append(cost.error(fitted.scaled(operations).rate(tokens), rate))
    return median(errors)


def _shown(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f} %"  # avoid -0.0
