"""Encoder, reader, head and a whole worker on CUDA, compared with the same on one core.

The calls are the pipeline's for the given turns, with their inputs ready, so their rate is an upper
bound, as in ``bare``. Copies to and from the device are included.
"""

import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from benchmarks import onnx_only
from benchmarks.agreement import Agreement, compared, requests, scores
from benchmarks.load import consumer_group, testbed, workload
from benchmarks.load.rounds import median, spread
from benchmarks.load.schedule import Latency, latency
from benchmarks.load.workload import Turn
from benchmarks.onnx_only import Call
from benchmarks.options import Options
from benchmarks.report import markdown
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.measures.window import ScoringRequest, WindowTurn
from stream_app.core.session.ports import Encoding
from stream_app.errors import ProviderError
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.calibration import calibrate
from stream_app.inference.devices.placement import described, nodes_by_provider
from stream_app.inference.devices.provider_choice import Provider
from stream_app.inference.devices.providers import Graph, open_session
from stream_app.inference.scorer import OnnxScorer, graphs

NAME: Final = "accelerator"
TITLE: Final = "On an accelerator"


TOGETHER: Final = 4
"""Workers that share the device."""


class Device(Struct):
    """Turns per second of each graph's calls alone, by round.

    ``difference``: largest difference of a probability between a turn in the worker's batches and
    alone. ``alone``: milliseconds of a turn that comes alone, from its text to its scores.
    ``nodes`` of encoder and reader by execution provider.
    """

    provider: str
    turns: int
    encoder: list[float]
    reader: list[float]
    head: list[float]
    difference: float
    alone: Latency
    nodes: dict[str, dict[str, int]]


class Result(Struct):
    """``worker``: turns per second of one worker on SQLite; ``overheads``: µs of CPU a turn.

    ``together``: turns per second of several workers that share the device.
    ``missing``: why no session runs on CUDA here; then the CPU is measured, and no worker.
    ``agreement`` with the CPU.
    """

    accelerator: str
    turns: int
    devices: list[Device]
    worker: list[float]
    overheads: list[float]
    together: list[float] = []
    agreement: Agreement | None = None
    missing: str = ""


def measure(options: Options) -> Result:
    """Measure CUDA, if sessions run on it here, then one core of this machine."""
    try:
        OnnxScorer(bundles.load(options.bundle), Provider.CUDA)
    except ProviderError as problem:
        options.say(f"the processor alone is measured: {problem}")
        return Result("", 0, [_device(options, Provider.CPU)], [], [], missing=str(problem))
    return measured(options, Provider.CUDA, _accelerator())


def measured(options: Options, provider: Provider, name: str) -> Result:
    """Measure a provider and the CPU; the CPU gets fewer turns."""
    bundle = bundles.load(options.bundle)
    devices = [_device(options, chosen) for chosen in dict.fromkeys((provider, Provider.CPU))]
    turns = workload.turns(options.size(1000, 40))
    one, other = (scores(OnnxScorer(bundle, each), turns) for each in (provider, Provider.CPU))
    result = Result(name, options.size(12_000, 60), devices, [], [], agreement=compared(one, other))
    turns = workload.turns(result.turns)
    with testbed.opened(options.bundle, options.kafka) as bed:
        for number in range(options.rounds):
            for count, rates in ((1, result.worker), (TOGETHER, result.together)):
                settings = bed.deployment(provider=provider)
                with consumer_group.workers(settings, count) as workers:
                    workers.burst("first", turns[: result.turns // 4])
                    burst = workers.burst("run", turns)
                rates.append(burst.rate)
                if count == 1:
                    result.overheads.append(burst.overhead)
                options.say(f"round {number + 1}: workers: {count}: {burst.rate:.1f} turns/s")
    return result


def _device(options: Options, provider: Provider) -> Device:
    full = 500 if provider is Provider.CPU else 8000
    count = options.size(full, 40)
    turns = workload.turns(count)
    calls = onnx_only.recorded(options.bundle, turns, provider, parts=("encoder", "reader", "head"))
    head = _elsewhere(options.bundle, [call for call in calls if "target" in call.feeds], provider)
    texts = [call for call in calls if "input_ids" in call.feeds]
    parts = {
        "encoder": [call for call in texts if "vectors" in call.outputs],
        "reader": [call for call in texts if "vectors" not in call.outputs],
        "head": head,
    }
    found = Device(
        provider.value,
        count,
        [],
        [],
        [],
        _difference(options.bundle, provider, turns[:256]),
        alone(options.bundle, provider, turns[: options.size(500, 20)]),
        nodes(options.bundle, provider),
    )
    rates = {"encoder": found.encoder, "reader": found.reader, "head": found.head}
    for part in parts.values():
        _seconds(part)  # the head's buffers are allocated
    for number in range(options.rounds):
        for name, part in parts.items():
            if part:
                rates[name].append(count / _seconds(part))
        words = ", ".join(f"{name} {rate[-1]:.1f}" for name, rate in rates.items() if rate)
        options.say(f"round {number + 1}: {provider.value}: {words} turns/s")
    return found


def nodes(bundle: Path, provider: Provider) -> dict[str, dict[str, int]]:
    """Number of nodes by execution provider, of encoder and reader as the service opens them."""
    return {
        name: nodes_by_provider(graph, provider)
        for name, graph in graphs(bundles.load(bundle)).items()
    }


def alone(bundle: Path, provider: Provider, turns: Sequence[Turn]) -> Latency:
    """Milliseconds from a turn's text to its scores, one turn at a time."""
    scorer = OnnxScorer(bundles.load(bundle), provider)
    wanted = requests(scorer, turns)
    texts = {(turn.session, turn.seq): turn for turn in turns}
    ordered = [texts[key] for key in sorted(texts)]
    starts, ends = [], []
    for turn, request in zip(ordered, wanted, strict=True):
        starts.append(time.perf_counter())
        scorer.encode([turn.text], [Role(turn.role)])
        scorer.score([request])
        ends.append(time.perf_counter())
    return latency(starts, ends)


def _elsewhere(bundle: Path, calls: Sequence[Call], provider: Provider) -> list[Call]:
    """The head's calls on the provider if it computes all of them; the service uses the CPU."""
    graph = Graph(bundle / bundles.load(bundle).manifest.head.file)
    try:
        session = open_session(graph, provider, 1)
    except ProviderError:
        return []
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
        parts = {"encoder": device.encoder, "reader": device.reader, "head": device.head}
        rows += [
            [f"{part}, {name}", f"{median(rates):.0f}", spread(rates), ""]
            for part, rates in parts.items()
            if rates
        ]
    if result.worker:
        rows.append(
            [
                f"one worker, encoder and reader on {result.accelerator}, SQLite",
                f"{median(result.worker):.0f}",
                spread(result.worker),
                f"{median(result.overheads):.0f}",
            ]
        )
    if result.together:
        name = f"{TOGETHER} workers that share it"
        rows.append([name, f"{median(result.together):.0f}", spread(result.together), ""])
    head = ["line", "turns/s", "lowest-highest", "µs of CPU a turn, not the model"]
    words = "\n".join(f"- {sentence}" for sentence in _sentences(result))
    return f"{words}\n\n{markdown.table(head, rows)}"


def _sentences(result: Result) -> Iterator[str]:
    if result.missing:
        yield f"Not measured on an accelerator: {result.missing}"
    if found := result.agreement:
        yield (
            f"{result.accelerator} and the processor give {100 * found.labels:.1f} % equal labels "
            f"on {found.turns} turns; probabilities differ by {found.mean:.4f} on average and "
            f"{found.largest:.3f} at most."
        )
    for device in result.devices:
        placed = "; ".join(f"{name}: {described(of)}" for name, of in device.nodes.items())
        yield (
            f"{device.provider}: a turn that comes alone takes {device.alone.p50:.1f} ms (median; "
            f"99th percentile {device.alone.p99:.1f} ms) from its text to its scores. Between it "
            f"and the same turn in a batch, probabilities differ by at most "
            f"{device.difference:.1e}. {placed}."
        )
