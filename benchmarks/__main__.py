"""``python -m benchmarks``: measure, write JSON, tables and plots."""

import argparse
import os
import time
from pathlib import Path

from benchmarks import reports
from benchmarks.errors import Unavailable
from benchmarks.options import Options
from benchmarks.report import machine, plots
from stream_app import logs
from stream_app.errors import RapportError
from stream_app.inference.bundles import bundle as bundles
from stream_app.settings import LogFormat

ROUNDS = 5


def main() -> None:
    """Run the chosen parts; results are written even if a later part fails."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Run all benchmarks in one process."
    )
    parser.add_argument("--only", nargs="+", choices=list(reports.PARTS), metavar="PART")
    parser.add_argument("--rounds", type=int, default=None, help=f"default: {ROUNDS}")
    parser.add_argument(
        "--quick", action="store_true", help="a smoke test of seconds; the figures mean nothing"
    )
    parser.add_argument(
        "--kafka", action="store_true", help="Apache Kafka instead of the embedded broker"
    )
    parser.add_argument(
        "--bundle",
        type=bundles.find,
        default=bundles.DEFAULT_BUNDLE,
        help="a shipped bundle's name or a folder",
    )
    parser.add_argument(
        "--turns",
        type=int,
        nargs="+",
        default=(),
        help="sizes of the part analytics",
    )
    parser.add_argument("--out", type=Path, help="folder of the JSON files")
    parser.add_argument(
        "--tables", action="store_true", help="measure nothing; regenerate tables and plots"
    )
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # processes would compile at each start
    folder = given.out or (reports.QUICK_RESULTS if given.quick else reports.RESULTS)
    logs.configure("ERROR", LogFormat.CONSOLE)
    try:
        if not given.tables:
            _measure(given, folder)
        if folder == reports.RESULTS:
            _write_document(folder)
    except RapportError as problem:
        raise SystemExit(f"error: {problem}") from problem


def _measure(given: argparse.Namespace, folder: Path) -> None:
    options = Options(
        bundle=given.bundle.resolve(),
        rounds=given.rounds or (2 if given.quick else ROUNDS),
        quick=given.quick,
        kafka=given.kafka,
        turns=tuple(given.turns),
        say=lambda words: print(f"  {words}", flush=True),
    )
    bundle = bundles.load(options.bundle).manifest.bundle_id
    for name in given.only or reports.PARTS:
        part, where = reports.PARTS[name], machine.here()
        print(f"{part.TITLE} (load {where.load})", flush=True)
        start = time.monotonic()
        try:
            result = part.measure(options)
        except Unavailable as problem:
            print(f"  not measured: {problem}", flush=True)
            continue
        seconds = time.monotonic() - start
        found = reports.report(part, bundle, where, options.rounds, options.quick, seconds, result)
        path = reports.write(found, folder)
        print(f"{part.table(result)}\n{path}, {seconds:.0f} s\n", flush=True)


def _write_document(folder: Path) -> None:
    try:
        for path in plots.drawn(folder, reports.PLOTS):
            print(path)
    except Unavailable as problem:
        print(f"no plots: {problem}")
    document = reports.DOCUMENT
    document.write_text(reports.document(document.read_text("utf-8"), folder), "utf-8")
    print(document)


if __name__ == "__main__":
    main()
