"""This checkout against a release: reports are read, pairs alternate, and the verdict is strict."""

import subprocess
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from benchmarks import release_comparison
from benchmarks.errors import Unavailable
from benchmarks.release_comparison import FIGURES, Compared, Figure, compare, read_report
from stream_app.errors import RapportError

THROUGHPUT, LATENCY = (
    Figure("throughput", higher_is_better=True, tolerance=0.05),
    Figure("lone turn, p50", higher_is_better=False, tolerance=0.15),
)
MAKEFILE = """
install:
\tmkdir -p .venv/bin
\tcp rapport .venv/bin/rapport
"""
COMMAND = """#!/bin/sh
echo "$PWD $*" >> "{log}"
cat "{report}"
"""


def report(ratio: float, p50: int) -> str:
    """A report in the form of `rapport bench`."""
    table = Table(title="rapport-minilm, 2000 turns")
    table.add_column("what")
    table.add_column("figure", justify="right")
    for what, figure in (
        ("ONNX sessions alone, same batches (median)", "400 turns/s"),
        ("ratio", f"{ratio:.2f}"),
        ("produced → committed, a lone turn, p50", f"{p50} ms"),
        ("p95", "29 ms"),
        ("p99", "31 ms"),
        ("produced → committed, at 180 turns/s, p50", "40 ms"),
        ("p95", "80 ms"),
        ("p99", "90 ms"),
    ):
        table.add_row(what, figure)
    console = Console(width=100)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_a_report_is_read() -> None:
    assert read_report(report(0.91, 20)) == {
        "throughput": 0.91,
        "lone turn, p50": 20.0,
        "lone turn, p99": 31.0,
        "at half the throughput, p50": 40.0,
        "at half the throughput, p99": 90.0,
    }


def test_another_report_is_refused() -> None:
    with pytest.raises(RapportError, match="lone turn"):
        read_report("│ ratio │ 0.91 │")


@pytest.mark.parametrize(
    ("figure", "ratios", "worse"),
    [
        (THROUGHPUT, [0.90, 0.93, 0.92], True),
        (THROUGHPUT, [0.90, 0.93, 1.01], False),  # not in every pair
        (THROUGHPUT, [0.96, 0.97, 0.99], False),  # within the tolerance
        (THROUGHPUT, [1.20, 1.30, 1.10], False),
        (LATENCY, [1.20, 1.30, 1.10], True),
        (LATENCY, [0.90, 0.93, 0.92], False),
    ],
)
def test_worse_is_worse_in_every_pair_and_beyond_the_tolerance(
    figure: Figure, ratios: list[float], worse: bool
) -> None:
    assert Compared(figure, ratios).worse is worse


def test_ratios_are_taken_within_a_pair() -> None:
    quiet, busy = dict.fromkeys(names(), 10.0), dict.fromkeys(names(), 30.0)
    found = compare([(quiet, quiet), (busy, busy)])
    assert [item.ratios for item in found] == [[1.0, 1.0]] * len(FIGURES)
    assert not any(item.worse for item in found)


def names() -> list[str]:
    return [figure.name for figure in FIGURES]


@pytest.fixture
def releases(tmp_path: Path) -> Path:
    """A repository whose `rapport bench` prints the report of its checkout."""
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "Makefile").write_text(MAKEFILE)
    for ratio, tag in ((0.95, "fast"), (0.80, "slow")):
        shown = tmp_path / f"{tag}.txt"
        shown.write_text(report(ratio, 20))
        command = repository / "rapport"
        command.write_text(COMMAND.format(log=tmp_path / "log", report=shown))
        command.chmod(0o755)
        if not (repository / ".git").exists():
            git(repository, "init", "-q")
        git(repository, "add", "Makefile", "rapport")
        git(repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", tag)
        git(repository, "tag", tag)
    subprocess.run(["make", "-s", "install"], cwd=repository, check=True)
    return repository


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


def test_a_slower_checkout_is_found_and_nothing_is_left_behind(
    releases: Path, tmp_path: Path
) -> None:
    with release_comparison.checked_out("fast", releases) as fast:
        pairs = release_comparison.alternate(releases, fast, 2, 600, lambda _: None)
    worse = [item.figure.name for item in compare(pairs) if item.worse]
    assert "throughput" in worse
    assert not {"lone turn, p50", "lone turn, p99"} & set(worse)
    order = [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()]
    assert order == [str(releases), str(fast), str(fast), str(releases)]
    assert git(releases, "worktree", "list").count("\n") == 1


def test_a_release_that_does_not_exist_is_named(releases: Path) -> None:
    with (
        pytest.raises(Unavailable, match="'v9' cannot be checked out"),
        release_comparison.checked_out("v9", releases),
    ):
        pass
