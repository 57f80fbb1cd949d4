"""Compare this checkout with a release: ``python -m benchmarks.release_comparison v0.1.0``.

Both run ``rapport bench`` in turn, in environments of their own, on the same machine. A figure is
the ratio of this checkout to the release within a pair of runs, because absolute times of different
hours or machines cannot be compared. The exit status is 1 if a figure got worse in every pair and
in the median by more than its tolerance. Three pairs take about ten minutes.
"""

import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec import Struct

from benchmarks.errors import Unavailable
from benchmarks.load.processes import REPOSITORY
from benchmarks.report import markdown
from stream_app.errors import RapportError

PAIRS: Final = 3
TURNS: Final = 2000
LINES: Final = 8
"""Lines of a failed command that are shown."""
_FIGURE: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?:turns/s|ms)?\s*\W*$")
_ROWS: Final = (
    ("ratio", "throughput"),
    ("produced → committed, a lone turn, p50", "lone turn, p50"),
    ("p99", "lone turn, p99"),
    ("produced → committed, at", "at half the throughput, p50"),
    ("p99", "at half the throughput, p99"),
)
"""Beginnings of the rows of ``rapport bench``, in its order, and our names of the figures."""


class Figure(Struct, frozen=True):
    """A compared figure; a change for the worse up to ``tolerance`` (relative) is no verdict."""

    name: str
    higher_is_better: bool
    tolerance: float


FIGURES: Final = (
    Figure("throughput", higher_is_better=True, tolerance=0.05),
    Figure("lone turn, p50", higher_is_better=False, tolerance=0.15),
    Figure("lone turn, p99", higher_is_better=False, tolerance=0.3),
    Figure("at half the throughput, p50", higher_is_better=False, tolerance=0.15),
    Figure("at half the throughput, p99", higher_is_better=False, tolerance=0.3),
)


class Compared(Struct, frozen=True):
    """A figure's ratios of this checkout to the release, one for each pair of runs."""

    figure: Figure
    ratios: list[float]

    @property
    def worse(self) -> bool:
        """Whether it got worse in every pair, and in the median by more than the tolerance."""
        changes = [ratio - 1.0 for ratio in self.ratios]
        losses = [-change if self.figure.higher_is_better else change for change in changes]
        return min(losses) > 0.0 and statistics.median(losses) > self.figure.tolerance


def read_report(report: str) -> dict[str, float]:
    """The figures of a report of ``rapport bench``; "throughput" is relative to the ONNX sessions.

    Raises:
        RapportError: a row is missing.

    >>> read_report('''│ ratio │ 0.91 │
    ... │ produced → committed, a lone turn, p50 │ 20 ms │
    ... │ p99 │ 31 ms │
    ... │ produced → committed, at 180 turns/s, p50 │ 40 ms │
    ... │ p99 │ 90 ms │''')["lone turn, p99"]
    31.0
    """
    lines = iter([line.strip(" │┃|") for line in report.splitlines()])
    found = {}
    for beginning, name in _ROWS:
        row = next((line for line in lines if line.startswith(beginning)), "")
        number = _FIGURE.search(row)
        if number is None:
            raise RapportError(f"`rapport bench` printed no row {beginning!r}")
        found[name] = float(number["number"])
    return found


def compare(pairs: Sequence[tuple[Mapping[str, float], Mapping[str, float]]]) -> list[Compared]:
    """Ratios of figures (of this checkout, of the release) by pair."""
    return [
        Compared(figure, [ours[figure.name] / theirs[figure.name] for ours, theirs in pairs])
        for figure in FIGURES
    ]


def table(found: Sequence[Compared]) -> str:
    """Format the ratios with their range and the verdict."""
    rows = [
        [
            item.figure.name,
            "higher" if item.figure.higher_is_better else "lower",
            f"{statistics.median(item.ratios):.2f}",
            f"{min(item.ratios):.2f}-{max(item.ratios):.2f}",
            "worse" if item.worse else "",
        ]
        for item in found
    ]
    return markdown.table(["this / release", "better is", "median", "pairs", "verdict"], rows)


def measure(checkout: Path, turns: int) -> dict[str, float]:
    """Run ``rapport bench`` of a checkout, which is what release 0.1 calls it.

    Raises:
        RapportError: it failed, or printed another report.
    """
    rapport = checkout / ".venv" / "bin" / "rapport"
    return read_report(_run([rapport, "bench", "--turns", turns], checkout))


@contextmanager
def checked_out(reference: str, repository: Path = REPOSITORY) -> Iterator[Path]:
    """A temporary checkout of a git reference with its environment, made by its own Makefile.

    Raises:
        Unavailable: the reference does not exist, or it cannot be installed.
    """
    with tempfile.TemporaryDirectory(prefix="rapport-release-") as folder:
        checkout = Path(folder) / "release"
        try:
            _run(["git", "worktree", "add", "--detach", checkout, reference], repository)
        except RapportError as problem:
            raise Unavailable(f"{reference!r} cannot be checked out: {problem}") from problem
        try:
            _run(["make", "install"], checkout)
            yield checkout
        finally:
            _run(["git", "worktree", "remove", "--force", checkout], repository)


def _run(command: Sequence[str | Path | int], folder: Path) -> str:
    done = subprocess.run(  # noqa: S603  # no shell
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-LINES:])
        raise RapportError(f"`{' '.join(map(str, command))}` failed:\n{tail}")
    return done.stdout


def alternate(
    ours: Path, theirs: Path, pairs: int, turns: int, say: Callable[[str], None]
) -> list[tuple[dict[str, float], dict[str, float]]]:
    """Measure both in turn; every other pair begins with the release, against drifts in load."""
    found = []
    for number in range(pairs):
        order = (ours, theirs) if number % 2 == 0 else (theirs, ours)
        measured = {checkout: measure(checkout, turns) for checkout in order}
        say(f"pair {number + 1}: {measured[ours]} against {measured[theirs]}")
        found.append((measured[ours], measured[theirs]))
    return found


def main(
    reference: Annotated[str, typer.Argument(help="Git reference of the release, e.g. a tag.")],
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of runs.")] = PAIRS,
    turns: Annotated[int, typer.Option(min=600, help="Turns of a run.")] = TURNS,
) -> None:
    """Compare the speed of this checkout with that of an earlier release."""
    try:
        with checked_out(reference) as release:
            found = compare(alternate(REPOSITORY, release, pairs, turns, typer.echo))
    except RapportError as problem:
        raise SystemExit(f"error: {problem}") from problem
    typer.echo(table(found))
    raise SystemExit(1 if any(item.worse for item in found) else 0)


if __name__ == "__main__":
    typer.run(main)
