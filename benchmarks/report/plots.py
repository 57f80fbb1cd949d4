"""Plot the figures as SVG, in the training environment, which has matplotlib.

Equal figures give identical files.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks import environments
from benchmarks.load import processes

OURS, OTHER, THIRD, GRID = "#1f6f8b", "#b5651d", "#6a8f3c", "#cccccc"


def drawn(results: Path, folder: Path) -> list[Path]:
    """Draw all available figures; return the files.

    Raises:
        Unavailable: there is no training environment.
    """
    done = subprocess.run(  # noqa: S603  # no shell
        [environments.train(), "-m", "benchmarks.report.plots", results, folder],
        cwd=processes.REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return [Path(line) for line in done.stdout.splitlines()]


def latency(axes: Any, result: dict[str, Any]) -> None:
    """Percentiles by share of the sustained rate."""
    for deployment, colour in zip(result["deployments"], (OURS, OTHER, THIRD), strict=False):
        loads = [load for load in deployment["loads"] if load["rounds"]]
        shares = [100 * load["share"] for load in loads]
        for name, line in (("p50", "-"), ("p95", "--"), ("p99", ":")):
            millis = [
                statistics.median(flow["latency"][name] for flow in load["rounds"])
                for load in loads
            ]
            where = "{broker}, {database} x{workers}".format_map(deployment)
            label = f"{where}, {name}"
            axes.plot(shares, millis, line, color=colour, marker="o", markersize=3, label=label)
    axes.set(xlabel="% of the sustained rate", ylabel="ms to the commit", yscale="log")
    axes.legend(frameon=False)


def window(axes: Any, result: dict[str, Any]) -> None:
    """Cost of a turn by window length, relative to no window."""
    points = result["points"]
    lengths = [point["length"] for point in points]
    for name, label, colour in (
        ("ours", "encoded once", OURS),
        ("concatenated", "concatenated", OTHER),
    ):
        rates = [statistics.median(point[name]) for point in points]
        costs = [rates[0] / rate for rate in rates]
        axes.plot(lengths, costs, color=colour, marker="o", markersize=3, label=label)
    axes.set(xlabel="turns around the scored one", ylabel="cost of a turn", ylim=(0, None))
    axes.legend(frameon=False)


def length(axes: Any, result: dict[str, Any]) -> None:
    """Milliseconds per turn by its tokens."""
    fixed = [item for item in result["lengths"] if not item["mixture"]]
    tokens = [item["tokens"] for item in fixed]
    for name, label, colour in (("bare", "ONNX sessions", OTHER), ("ours", "one worker", OURS)):
        millis = [1000 / statistics.median(item[name]) for item in fixed]
        axes.plot(tokens, millis, color=colour, marker="o", markersize=3, label=label)
    axes.set(xlabel="tokens", ylabel="ms a turn", xlim=(0, None), ylim=(0, None))
    axes.legend(frameon=False)


def sessions(axes: Any, result: dict[str, Any]) -> None:
    """Turns per second and memory by open sessions."""
    counts = result["counts"]
    open_now = [count["sessions"] for count in counts]
    rates = [statistics.median(count["rates"]) for count in counts]
    axes.plot(open_now, rates, color=OURS, marker="o", markersize=3, label="turns/s")
    memory = [count["memory"] for count in counts]
    axes.plot(open_now, memory, color=OTHER, marker="o", markersize=3, label="memory, MiB")
    axes.set(xlabel="open sessions", xscale="log", ylim=(0, None))
    axes.legend(frameon=False)


def workers(axes: Any, result: dict[str, Any]) -> None:
    """Turns per second by number of workers."""
    counts = result["counts"]
    rates = [statistics.median(count["rates"]) for count in counts]
    numbers = [count["workers"] for count in counts]
    axes.plot(numbers, rates, color=OURS, marker="o", markersize=3)
    axes.set(xlabel="workers", ylabel="turns/s", ylim=(0, None))


DRAWINGS: Final = {
    "latency": latency,
    "window": window,
    "length": length,
    "sessions": sessions,
    "workers": workers,
}


def main(results: Path, folder: Path) -> None:
    """Draw into a folder and print the file names."""
    import matplotlib as mpl  # noqa: PLC0415  # only in the training environment
    from matplotlib.figure import Figure  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWINGS.items():
        source = results / f"{name}.json"
        if not source.exists():
            continue
        result = json.loads(source.read_text("utf-8"))["result"]
        with mpl.rc_context({"svg.hashsalt": "rapport", "svg.fonttype": "none", "font.size": 8}):
            figure = Figure(figsize=(4.6, 3.0), layout="constrained")
            axes = figure.subplots()
            axes.grid(color=GRID, linewidth=0.5)
            draw(axes, result)
            path = folder / f"{name}.svg"
            figure.savefig(path, format="svg", metadata={"Date": None})
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
