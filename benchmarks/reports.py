"""Figures on disk, a JSON file per part, and the document with the tables generated from them."""

from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec
from msgspec import Struct

from benchmarks.load.processes import REPOSITORY
from benchmarks.parts import (
    accelerator,
    alternatives,
    analytics,
    head_bundles,
    latency,
    length,
    sessions,
    startup,
    target,
    web,
    window,
    workers,
)
from benchmarks.report import markdown
from benchmarks.report.machine import Machine
from stream_app import __version__

PARTS: Final[dict[str, ModuleType]] = {
    part.NAME: part
    for part in (
        alternatives,
        latency,
        target,
        window,
        length,
        sessions,
        workers,
        head_bundles,
        startup,
        accelerator,
        analytics,
        web,
    )
}
RESULTS: Final = Path(__file__).with_name("results")
QUICK_RESULTS: Final = REPOSITORY / "build" / "benchmarks" / "quick"
DOCUMENT: Final = REPOSITORY / "docs" / "performance.md"
PLOTS: Final = DOCUMENT.with_suffix("")


class Report(Struct, frozen=True):
    """One part's figures and their circumstances; ``seconds``: duration of the measurement."""

    part: str
    version: str
    bundle: str
    machine: Machine
    rounds: int
    quick: bool
    seconds: float
    result: Any


def report(
    part: ModuleType,
    bundle: str,
    machine: Machine,
    rounds: int,
    quick: bool,
    seconds: float,
    result: Any,
) -> Report:
    """Wrap a part's result."""
    return Report(part.NAME, __version__, bundle, machine, rounds, quick, round(seconds, 1), result)


def write(found: Report, folder: Path) -> Path:
    """Write a report; return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{found.part}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return path


def read(name: str, folder: Path) -> Report | None:
    """Read the report of a part, if it exists."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    found = msgspec.json.decode(path.read_bytes(), type=Report)
    result = msgspec.convert(found.result, type=PARTS[name].Result)
    return msgspec.structs.replace(found, result=result)


def shown(found: Report) -> str:
    """Format a report as Markdown: its tables and the machine."""
    machine = found.machine
    words = [
        f"{found.rounds} rounds, bundle `{found.bundle}`, {machine.processor}, "
        f"{machine.cores} cores, ONNX Runtime {machine.onnxruntime}, "
        f"load {machine.load:.2f} before the run."
    ]
    if found.quick:
        words.append("A quick run: the figures mean nothing.")
    table: str = PARTS[found.part].table(found.result)
    return f"{table}\n\n{' '.join(words)}"


def document(text: str, folder: Path) -> str:
    """Replace the tables of all parts in the document; a part without a report is marked."""
    for name in markdown.names(text):
        found = read(name, folder)
        content = markdown.NOT_MEASURED if found is None else shown(found)
        if found is not None and (PLOTS / f"{name}.svg").exists():
            title = PARTS[name].TITLE
            content += f"\n\n![{title}]({PLOTS.name}/{name}.svg)"
        text = markdown.replace(text, name, content)
    return text
