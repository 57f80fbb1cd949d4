"""A capacity plan for one million live sessions: ``python -m benchmarks.plan``.

Only the assumptions of ``docs/scale.md`` are typed by hand: sizes come from ``sizes.json``
(``python -m benchmarks.sizes``), lengths from ``lengths.json``, speeds from the results of ``python
-m benchmarks``. Figures that depend on something unmeasured are marked as such.
"""

from pathlib import Path
from typing import Final

from benchmarks import cost, lengths, markdown, reports, sizes
from benchmarks.capacity import Assumptions, Section, Speeds, n, plan
from benchmarks.cost import Cost, Point
from benchmarks.parts import accelerator, length, sessions
from benchmarks.processes import REPOSITORY
from benchmarks.rounds import median
from benchmarks.sizes import Sizes

DOCUMENT: Final = REPOSITORY / "docs" / "scale.md"


def speeds(folder: Path) -> Speeds:
    """Read the speeds from the reports in a folder."""
    by_length = reports.read(length.NAME, folder)
    by_sessions = reports.read(sessions.NAME, folder)
    on_device = reports.read(accelerator.NAME, folder)
    means = [h.mean for corpus in lengths.load().values() for h in corpus.tokens.values()]
    return Speeds(
        tokens=sum(means) / len(means),
        worker=_worker(by_length.result) if by_length else None,
        nano=_nano(by_length.result) if by_length else None,
        accelerator=median(on_device.result.worker) if on_device else None,
        memory=_memory(by_sessions.result) if by_sessions else None,
    )


def _worker(found: length.Result) -> Cost:
    """A worker's cost in CPU time: a plan has no idle cores for the work outside the model."""
    fixed = [item for item in found.lengths if not item.mixture]
    return cost.fit([Point(item.tokens, 1.0 / _cpu(item)) for item in fixed])


def _cpu(found: length.Length) -> float:
    """Seconds of CPU per turn, model included."""
    return 1.0 / median(found.bare) + median(found.overheads) / 1e6


def _nano(found: length.Result) -> tuple[str, Cost] | None:
    """The nano bundle's cost: its own model time, and the default bundle's other CPU time."""
    mixtures = [item for item in found.lengths if item.mixture]
    if not found.others or not mixtures:
        return None
    other = min(found.others, key=lambda item: item.size.mega_operations)
    a_token = 1.0 / (median(other.bare) * other.tokens)
    return other.bundle, Cost(a=median(mixtures[0].overheads) / 1e6, b=a_token)


def _memory(found: sessions.Result) -> tuple[float, float] | None:
    """Memory at rest and per session, from the smallest and largest measured caches."""
    by_states = sorted(found.counts, key=lambda item: item.cached)
    low, high = by_states[0], by_states[-1]
    if high.cached == low.cached:
        return None
    each = (high.memory - low.memory) / (high.cached - low.cached)
    return low.memory - each * low.cached, each * 2**20


def shown(sections: list[Section]) -> str:
    """The plan as Markdown."""
    parts = []
    for section in sections:
        rows = [
            [
                row.name,
                row.how,
                "not measured" if row.what is None else f"{n(row.what)} {row.unit}".strip(),
            ]
            for row in section.rows
        ]
        parts.append(f"### {section.title}\n\n{markdown.table(['', 'sum', 'figure'], rows)}")
    return "\n\n".join(parts)


def assumed(a: Assumptions) -> str:
    """The assumptions as a table."""
    rows = [
        ["open sessions", f"{a.sessions:,}"],
        ["one turn per session every", f"{n(a.seconds)} s, day and night"],
        ["a worker is planned with", f"{100 * a.busy:.0f} % of its rate"],
        ["Kafka: copies, hours kept", f"{a.replicas}, {a.log_hours}"],
        ["a broker handles, replication included", f"{n(a.broker)} MB/s"],
        ["a PostgreSQL primary writes to its write-ahead log", f"{n(a.log)} MB/s"],
        ["turns and scores are kept", f"{a.months} months"],
        [
            "of these in the database, until `rapport archive` moves them",
            f"{a.unarchived} months",
        ],
        ["a viewer watches", f"{a.sessions_a_viewer} sessions"],
        ["live streams of one web process", f"{a.streams}"],
        ["a worker on an accelerator, assumed until measured", f"{n(a.accelerator)} turns/s"],
    ]
    return markdown.table(["assumption", "value"], rows)


def document(text: str, size: Sizes | None, speed: Speeds) -> str:
    """Replace assumptions and plan between their markers in the document."""
    a = Assumptions()
    text = markdown.replace(text, "assumptions", assumed(a))
    if size is None:
        return markdown.replace(text, "plan", markdown.NOT_MEASURED)
    basis = (
        f"Sizes of {size.turns:,} turns of {n(size.tokens)} tokens with `{size.bundle}` on "
        f"PostgreSQL {size.postgresql}; scores in version 2 (`RAPPORT_SCORE_SCHEMA=2`)."
    )
    return markdown.replace(text, "plan", f"{basis}\n\n{shown(plan(a, size, speed))}")


def write(folder: Path = reports.RESULTS) -> Path:
    """Rewrite the document from the available results."""
    text = document(DOCUMENT.read_text("utf-8"), sizes.load(), speeds(folder))
    DOCUMENT.write_text(text, "utf-8")
    return DOCUMENT


def main() -> None:
    """Print the plan and write the document."""
    print(write().read_text("utf-8"))


if __name__ == "__main__":
    main()
