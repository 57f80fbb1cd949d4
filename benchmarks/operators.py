"""Profile the ONNX sessions operator by operator: ``python -m benchmarks.operators``.

The calls are those of the line ``bare``: a worker's calls to a bundle's two graphs for the turns of
the benchmark. Several bundles can be compared, at a worker's batch size or a smaller one, as in a
poll at partial load.
"""

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import onnxruntime as ort
from msgspec import Struct

from benchmarks import onnx_only
from benchmarks.load import workload
from benchmarks.report import markdown
from stream_app.inference.bundles import bundle as bundles

SHOWN: Final = 12
"""Number of operators with their own row; the others are summed."""


class Profile(Struct, frozen=True):
    """Microseconds per turn by operator; ``head``: the whole head graph."""

    bundle: str
    batch: int
    encoder: dict[str, float]
    head: float


def measure(bundle: Path, turns: int, batch: int) -> Profile:
    """Profile one pass over the turns, after an uncounted one."""
    loaded = bundles.load(bundle)
    manifest = loaded.manifest
    calls = onnx_only.recorded(bundle, workload.turns(turns), batch=batch)
    encoder = _spent(
        [c for c in calls if "input_ids" in c.feeds], loaded.file(manifest.encoder.file)
    )
    head = _spent([c for c in calls if "target" in c.feeds], loaded.file(manifest.head.file))
    return Profile(
        manifest.bundle_id,
        batch,
        {name: spent / turns for name, spent in encoder.items()},
        sum(head.values()) / turns,
    )


def _spent(calls: Sequence[onnx_only.Call], graph: Path) -> dict[str, float]:
    """Microseconds of all calls by operator."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    warm = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    for call in calls:
        warm.run(call.outputs, call.feeds)
    with tempfile.TemporaryDirectory() as folder:
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        for call in calls:
            session.run(call.outputs, call.feeds)
        events: list[dict[str, Any]] = json.loads(Path(session.end_profiling()).read_text("utf-8"))
    spent: dict[str, float] = defaultdict(float)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            spent[event["args"]["op_name"]] += event["dur"]
    return dict(spent)


def table(profiles: Sequence[Profile]) -> str:
    """Format microseconds per turn; the slowest operators of any profile come first."""
    names = sorted(
        {name for profile in profiles for name in profile.encoder},
        key=lambda name: -max(profile.encoder.get(name, 0.0) for profile in profiles),
    )
    rows = [
        [name, *(_shown(profile.encoder.get(name, 0.0)) for profile in profiles)]
        for name in names[:SHOWN]
    ]
    rows.append(
        [
            f"{len(names[SHOWN:])} others",
            *(_shown(sum(p.encoder.get(name, 0.0) for name in names[SHOWN:])) for p in profiles),
        ]
    )
    rows.append(["encoder", *(_shown(sum(profile.encoder.values())) for profile in profiles)])
    rows.append(["head", *(_shown(profile.head) for profile in profiles)])
    return markdown.table(
        ["µs a turn", *(f"{profile.bundle}, batches of {profile.batch}" for profile in profiles)],
        rows,
    )


def _shown(microseconds: float) -> str:
    return f"{microseconds:.0f}"


def main() -> None:
    """Profile the given bundles and compare them."""
    parser = argparse.ArgumentParser(description="Profile the ONNX sessions.")
    parser.add_argument("--bundle", nargs="+", default=["default"], help="shipped names or folders")
    parser.add_argument("--turns", type=int, default=1024)
    parser.add_argument("--batch", type=int, nargs="+", default=[256, 32], help="turns per batch")
    asked = parser.parse_args()
    print(
        table(
            [
                measure(bundles.find(name), asked.turns, batch)
                for name in asked.bundle
                for batch in asked.batch
            ]
        )
    )


if __name__ == "__main__":
    main()
