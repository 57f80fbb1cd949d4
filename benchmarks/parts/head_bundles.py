"""Cost and memory of head bundles on one encoder, and memory of a second encoder.

The heads are copies of the bundle's own under other names: neither time nor memory depends on the
weights. The pipeline runs in this process, without broker and database, whose cost head bundles do
not change.
"""

import shutil
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
from msgspec import Struct

from benchmarks.load import workload
from benchmarks.load.rounds import median, ratio
from benchmarks.options import Options
from benchmarks.report import markdown
from stream_app import bootstrap
from stream_app.core.pipeline.pipeline import Pipeline, Received, Source, receive
from stream_app.core.session.session_state import Versioned
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.bundle import MANIFEST, Bundle
from stream_app.inference.devices.provider_choice import Provider
from stream_app.inference.head_bundle import encoder_of
from stream_app.inference.scorer import OnnxScorer
from stream_app.settings import Settings

NAME: Final = "head_bundles"
TITLE: Final = "Head bundles on one encoder"
COUNT: Final = 10
BATCHES: Final = (256, 64, 16)
"""Events in a batch; 256 is the default limit, a worker that keeps up has smaller batches."""
TURNS: Final = 768
TEAMS: Final = 20
"""Teams of the workload's turns."""
MIB: Final = 2**20


class Batch(Struct):
    """µs of CPU a turn by round: the default bundle alone, one head bundle, ten of them."""

    events: int
    default: list[float]
    one: list[float]
    ten: list[float]


class Result(Struct):
    """``head``, ``encoder``: resident MiB of each further head bundle, and of a second encoder."""

    batches: list[Batch]
    head: float
    encoder: float


def measure(options: Options) -> Result:
    """Process the same turns with the default bundle, one and ten head bundles, interleaved."""
    turns = workload.turns(options.size(TURNS, 64), sessions=options.size(200, 16))
    at = datetime.now(UTC).timestamp()
    events = [
        receive(Source("bench", 0, place), workload.event(turn, "heads", at + place))
        for place, turn in enumerate(turns)
    ]
    with tempfile.TemporaryDirectory(prefix="rapport-heads-") as folder:
        base = bundles.load(options.bundle)
        scorer = OnnxScorer(base, Provider.CPU)
        scorer.encode(["Are you still there?"])
        head, encoder = _memory(base, scorer)
        pipelines = [_pipeline(options, scorer, Path(folder), count) for count in (0, 1, COUNT)]
        found = [Batch(size, [], [], []) for size in options.size(BATCHES, (16,))]
        for number in range(options.rounds):
            for batch in found:
                first = number % len(pipelines)
                rows = [batch.default, batch.one, batch.ten]
                for place in [*range(first, len(rows)), *range(first)]:
                    rows[place].append(_cpu(pipelines[place], events, batch.events))
                options.say(
                    f"round {number + 1}, batches of {batch.events}: "
                    f"{batch.ten[-1] / batch.one[-1]:.3f}"
                )
    return Result(found, head, encoder)


def _cpu(pipeline: Pipeline, events: Sequence[Received], size: int) -> float:
    """µs of CPU a turn, of all threads of this process."""
    states: dict[str, Versioned] = {}
    start = time.process_time()
    for first in range(0, len(events), size):
        pipeline.process(list(events[first : first + size]), states)
    return (time.process_time() - start) / len(events) * 1e6


def _memory(base: Bundle, scorer: OnnxScorer) -> tuple[float, float]:
    """Resident MiB of a head bundle (mean of ten), and of a second encoder with its heads."""
    process = psutil.Process()
    before = process.memory_info().rss
    kept = [OnnxScorer(base, Provider.CPU, shared=scorer) for _ in range(COUNT)]
    heads = process.memory_info().rss
    second = OnnxScorer(base, Provider.CPU)
    second.encode(["Are you still there?"])
    whole = process.memory_info().rss
    del kept, second
    return (heads - before) / COUNT / MIB, (whole - heads) / MIB


def _pipeline(options: Options, scorer: OnnxScorer, folder: Path, count: int) -> Pipeline:
    """A pipeline with so many head bundles; each has its share of the teams."""
    settings = Settings(bundle=options.bundle)
    if count:
        routes: dict[str, Any] = {"version": 1, "bundles": {}, "routes": []}
        for number in range(count):
            name = f"heads-{count}-{number}"
            copied(scorer.bundle, folder / name, name)
            routes["bundles"][name] = {"folder": str(folder / name)}
            teams = [f"team-{team}" for team in range(TEAMS) if team % count == number]
            routes["routes"].append({"bundle": name, "teams": teams})
        file = folder / f"routes-{count}.yaml"
        file.write_bytes(msgspec.json.encode(routes))
        settings = settings.model_copy(update={"bundle_routes": file})
    pipeline = bootstrap.pipeline(settings, scorer)
    if len(pipeline.bundles.routed) != count:
        raise RuntimeError("a head bundle of the benchmark was refused")
    return pipeline


def copied(base: Bundle, folder: Path, name: str) -> Path:
    """Write a head bundle with the bundle's own heads under another name."""
    manifest = msgspec.json.decode((base.path / MANIFEST).read_bytes())
    probes = [manifest[key]["file"] for key in ("distress", "crisis") if manifest.get(key)]
    files = [base.manifest.head.file, *probes]
    folder.mkdir(parents=True)
    for file in files:
        shutil.copyfile(base.file(file), folder / file)
    for key in ("encoder", "tokenizer", "profile"):
        del manifest[key]
    manifest |= {
        "name": name,
        "shared_encoder": msgspec.to_builtins(encoder_of(base.manifest)),
        "files": {file: base.manifest.files[file] for file in files},
    }
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return folder


def table(result: Result) -> str:
    """One row per batch size: the ratio of CPU times within a round."""
    rows = [
        [
            str(batch.events),
            f"{median(batch.default):.0f}",
            f"{median(batch.one):.0f}",
            f"{median(batch.ten):.0f}",
            f"{100 * (ratio(batch.ten, batch.one) - 1):+.1f} %",
        ]
        for batch in result.batches
    ]
    head = [
        "events in a batch",
        "default bundle, µs of CPU a turn",
        "one head bundle",
        "ten head bundles",
        "ten to one",
    ]
    words = (
        f"A further head bundle takes {result.head:.1f} MiB, a second encoder with its heads "
        f"{result.encoder:.0f} MiB."
    )
    return f"{markdown.table(head, rows)}\n\n{words}"
