"""Cost by length of a turn, and a model that predicts turns per second from it.

The model is fitted on turns of one length each and tested on the mixture of lengths used by all
other tables, and, if more bundles are shipped, on their encoders, for which each round profiles how
the fitted encoder's time divides (``benchmarks.cost``). Each round is fitted and tested separately,
and the median error is shown, so that drifts in machine load cancel out.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from benchmarks import cost, onnx_only, operations, operators
from benchmarks.cost import Point, Scale
from benchmarks.errors import Unavailable
from benchmarks.load import consumer_group, testbed, workload
from benchmarks.load.rounds import median
from benchmarks.load.workload import Turn
from benchmarks.operations import EncoderSize
from benchmarks.options import Options
from benchmarks.report import markdown
from stream_app.inference.bundles import bundle as bundles
from stream_app.settings import Settings

NAME: Final = "length"
TITLE: Final = "Turn length and the cost model"
LENGTHS: Final = (4, 8, 16, 32, 64, 128)
SESSIONS: Final = 64
PROFILED: Final = 512
"""Turns of the mixture that are profiled in a round."""
EIGHT_BITS: Final = "MatMulIntegerToFloat"
"""The operator of products with weights in graphs of eight bits, which has none of attention's."""
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
    size: EncoderSize
    tokens: float
    bare: list[float]


class Result(Struct):
    """``size``: of the encoder; None if it could not be counted.

    ``products``: by round, the share of products with weights in the encoder's time.
    """

    bundle: str
    size: EncoderSize | None
    products: list[float]
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
    manifest, counted = bundles.load(options.bundle).manifest, _size(options.bundle)
    found = [(path, _other(path, mixture)) for path in options.other_bundles()]
    others = [(path, other) for path, other in found if other is not None]
    products = []
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
                products.append(_products(options))
                for path, other in others:
                    with onnx_only.model_processes(path, mixture) as processes:
                        other.bare.append(processes.rate())
    return Result(manifest.bundle_id, counted, products, lengths, [other for _, other in others])


def _length(turns: list[Turn], *, mixture: bool) -> Length:
    return Length(sum(turn.tokens for turn in turns) / len(turns), mixture, [], [], [])


def _products(options: Options) -> float:
    """The share of products with weights in the encoder's time."""
    batch = Settings().batch_max
    spent = operators.measure(options.bundle, options.size(PROFILED, 64), batch).encoder
    products = [EIGHT_BITS] if EIGHT_BITS in spent else operations.WEIGHT_PRODUCTS
    return sum(spent.get(name, 0.0) for name in products) / sum(spent.values())


def _size(bundle: Path) -> EncoderSize | None:
    graph = bundle / bundles.load(bundle).manifest.encoder.file
    try:
        return operations.size(graph)
    except Unavailable:
        return None


def _other(path: Path, turns: list[Turn]) -> OtherBundle | None:
    size = _size(path)
    if size is None:
        return None
    tokens = sum(turn.tokens for turn in turns) / len(turns)
    return OtherBundle(bundles.load(path).manifest.bundle_id, size, tokens, [])


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
        scale = _scale(other.size, result.size)
        unseen.append(off(fixed_bare, other.tokens, other.bare, scale, result.products))
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


def _scale(other: EncoderSize, fitted: EncoderSize | None) -> Scale:
    if fitted is None:
        return Scale()
    return Scale(
        other.mega_operations / fitted.mega_operations, other.layers / max(1, fitted.layers)
    )


def _words(result: Result, sessions: cost.Cost, worker: cost.Cost) -> str:
    words = [
        f"{name}: {1e6 * found.a:.0f} µs a turn + {1e6 * found.b:.1f} µs a token."
        for name, found in (("ONNX sessions", sessions), ("One worker", worker))
    ]
    if result.size is None:
        words.append("Size of the encoder: not measured.")
    else:
        share = median(result.products)
        rate = sessions.giga_operations(result.size.mega_operations, share)
        words.append(
            f"The encoder of {result.bundle} has {result.size.layers} layers and needs "
            f"{result.size.mega_operations:.1f} million operations per token in products with "
            f"weights, which take {100 * share:.0f} % of its time, so a core performs {rate:.0f} "
            "billion per second in them."
        )
    return " ".join(words)


def off(
    known: Sequence[tuple[float, Sequence[float]]],
    tokens: float,
    measured: Sequence[float],
    scale: Scale | None = None,
    products: Sequence[float] = (),
) -> float:
    """The model's relative error: the median over the rounds.

    Args:
        known: lengths with their rates by round, for fitting the model.
        tokens: the mean length to predict.
        measured: its rates by round.
        scale: of the measured encoder, if it is not the fitted one.
        products: by round, the share of products in the time of the fitted one.

    >>> off([(10, [500.0, 50.0]), (30, [250.0, 25.0])], 70, [125.0, 12.5])
    0.0
    """
    errors = []
    for number, rate in enumerate(measured):
        fitted = cost.fit([Point(length, rates[number]) for length, rates in known])
        if scale is not None:
            fitted = fitted.of_encoder(scale, products[number])
        errors.append(cost.error(fitted.rate(tokens), rate))
    return median(errors)


def _shown(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f} %"  # avoid -0.0
