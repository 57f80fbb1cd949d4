"""Encoder, head and a whole worker on CUDA, compared with the same sessions on one core.

The calls are the pipeline's for the given turns, with their inputs ready, so their rate is an upper
bound, as in ``bare``. Copies to and from the device are included.
"""

import shutil
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from benchmarks import consumer_group, markdown, onnx_only, testbed, workload
from benchmarks.errors import Unavailable
from benchmarks.onnx_only import Call
from benchmarks.options import Options
from benchmarks.rounds import median, spread
from benchmarks.workload import Turn
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.ports import Encoding
from stream_app.core.window import ScoringRequest, WindowTurn
from stream_app.errors import ProviderError
from stream_app.inference import bundle as bundles
from stream_app.inference.calibration import calibrate
from stream_app.inference.provider_choice import Provider
from stream_app.inference.providers import open_session
from stream_app.inference.scorer import OnnxScorer

NAME: Final = "accelerator"
TITLE: Final = "On an accelerator"
WANTED: Final = 8000.0
PROMISED: Final = 1e-4
"""Maximum difference of a probability between batches."""


class Device(Struct):
    """Turns per second of the encoder's and of the head's calls alone, by round.

    ``difference``: largest difference of a probability between a turn in the worker's batches and
    alone.
    """

    provider: str
    turns: int
    encoder: list[float]
    head: list[float]
    difference: float


class Result(Struct):
    """``worker``: turns per second of one worker on SQLite; ``overheads``: µs of CPU a turn."""

    accelerator: str
    turns: int
    devices: list[Device]
    worker: list[float]
    overheads: list[float]


def measure(options: Options) -> Result:
    """Measure CUDA, then one core of this machine.

    Raises:
        Unavailable: no session runs on CUDA here.
    """
    try:
        OnnxScorer(bundles.load(options.bundle), Provider.CUDA)
    except ProviderError as problem:
        raise Unavailable(f"no CUDA provider: {problem}") from problem
    return measured(options, Provider.CUDA, _accelerator())


def measured(options: Options, provider: Provider, name: str) -> Result:
    """Measure a provider and the CPU; the CPU gets fewer turns."""
    sizes = {provider: options.size(20_000, 60), Provider.CPU: options.size(1000, 40)}
    devices = [_device(options, chosen, turns) for chosen, turns in sizes.items()]
    result = Result(name, options.size(40_000, 60), devices, [], [])
    turns = workload.turns(result.turns)
    with testbed.opened(options.bundle, options.kafka) as bed:
        for number in range(options.rounds):
            with consumer_group.workers(bed.deployment(provider=provider)) as workers:
                workers.burst("first", turns[: result.turns // 4])  # warm up every shape
                burst = workers.burst("run", turns)
            result.worker.append(burst.rate)
            result.overheads.append(burst.overhead)
            options.say(f"round {number + 1}: one worker: {burst.rate:.1f} turns/s")
    return result


def _device(options: Options, provider: Provider, count: int) -> Device:
    turns = workload.turns(count)
    calls = onnx_only.recorded(options.bundle, turns, provider)
    encoder = [call for call in calls if "input_ids" in call.feeds]
    head = _elsewhere(options.bundle, [call for call in calls if "target" in call.feeds], provider)
    found = Device(
        provider.value, count, [], [], _difference(options.bundle, provider, turns[:512])
    )
    for part in (encoder, head):
        _seconds(part)  # allocate buffers and record CUDA graphs
    for number in range(options.rounds):
        found.encoder.append(count / _seconds(encoder))
        found.head.append(count / _seconds(head))
        options.say(
            f"round {number + 1}: {provider.value}: encoder {found.encoder[-1]:.1f}, "
            f"head {found.head[-1]:.1f} turns/s"
        )
    return found


def _elsewhere(bundle: Path, calls: Sequence[Call], provider: Provider) -> list[Call]:
    """The head's calls on the provider, although the service runs them on the CPU."""
    session = open_session(bundle / bundles.load(bundle).manifest.head.file, provider, 1)
    return [Call(session, call.outputs, call.feeds) for call in calls]


def _seconds(calls: Sequence[Call]) -> float:
    start = time.perf_counter()
    for call in calls:
        call.session.run(call.outputs, call.feeds)
    return time.perf_counter() - start


def _difference(bundle: Path, provider: Provider, turns: list[Turn]) -> float:
    scorer = OnnxScorer(bundles.load(bundle), provider)
    texts = [turn.text for turn in turns]
    together = _probabilities(scorer, scorer.encode(texts))
    alone = _probabilities(scorer, [scorer.encode([text])[0] for text in texts])
    return float(max(np.abs(a - b).max() for a, b in zip(together, alone, strict=True)))


def _probabilities(scorer: OnnxScorer, encoded: list[Encoding]) -> list[np.ndarray]:
    """Probabilities of every head, for turns without context."""
    now = datetime.now(UTC)
    requests = [
        ScoringRequest(
            WindowTurn(seq, Role.COUNSELLOR, now, seq, 1, item.vectors, item.rationales),
            Stage.PROVISIONAL,
            [],
        )
        for seq, item in enumerate(encoded)
    ]
    logits = scorer.head.logits(requests)
    heads = [head for head in scorer.bundle.manifest.heads if head.name in logits]
    return [calibrate(head, logits[head.name]) for head in heads]


def _accelerator() -> str:
    """The device's name as reported by the driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return "CUDA device"
    done = subprocess.run(  # noqa: S603  # no shell
        [program, "--query-gpu=name", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=False,
    )
    return next(iter(done.stdout.splitlines()), "CUDA device").strip()


def table(result: Result) -> str:
    """Rates of the sessions alone, then of a whole worker."""
    rows = []
    for device in result.devices:
        name = result.accelerator if device.provider != "cpu" else "one core"
        rows += [
            [f"encoder, {name}", f"{median(device.encoder):.0f}", spread(device.encoder), ""],
            [f"head, {name}", f"{median(device.head):.0f}", spread(device.head), ""],
        ]
    rows.append(
        [
            f"one worker, encoder on {result.accelerator}, SQLite",
            f"{median(result.worker):.0f}",
            spread(result.worker),
            f"{median(result.overheads):.0f}",
        ]
    )
    head = ["line", "turns/s", "lowest-highest", "µs of CPU a turn, not the model"]
    words = [
        f"Target of the worker: {WANTED:.0f} turns/s; it reached "
        f"{100 * median(result.worker) / WANTED:.0f} % of them.",
        *(
            f"Between a turn alone and in a batch, probabilities differ by at most "
            f"{device.difference:.1e} on {device.provider} (promised: {PROMISED:.0e})."
            for device in result.devices
        ),
    ]
    return f"{' '.join(words)}\n\n{markdown.table(head, rows)}"
