"""One million live sessions on paper: ``python -m benchmarks.plan`` writes ``docs/scale.md``.

Nothing in the plan is typed by hand but its assumptions: sizes come from ``sizes.json`` (``python
-m benchmarks.sizes``), lengths from ``lengths.json``, speeds from the results of ``python -m
benchmarks``. What has not been measured is said to be so, and so is everything that follows from
it.
"""

from pathlib import Path
from typing import Final

from benchmarks import cost, lengths, markdown, reports, sizes
from benchmarks.capacity import Assumptions, Section, Speeds, n, plan
from benchmarks.cost import Cost, Point
from benchmarks.parts import accelerator, length, sessions
from benchmarks.processes import REPOSITORY
from benchmarks.rounds import middle
from benchmarks.sizes import Sizes

DOCUMENT: Final = REPOSITORY / "docs" / "scale.md"


def speeds(folder: Path) -> Speeds:
    """From the reports in a folder."""
    by_length = reports.read(length.NAME, folder)
    by_sessions = reports.read(sessions.NAME, folder)
    on_device = reports.read(accelerator.NAME, folder)
    means = [h.mean for corpus in lengths.load().values() for h in corpus.tokens.values()]
    return Speeds(
        tokens=sum(means) / len(means),
        worker=_worker(by_length.result) if by_length else None,
        nano=_nano(by_length.result) if by_length else None,
        accelerator=middle(on_device.result.worker) if on_device else None,
        memory=_memory(by_sessions.result) if by_sessions else None,
    )


def _worker(found: length.Result) -> Cost:
    """By its CPU: where a core is free a worker uses more than one, and a plan has none free."""
    fixed = [item for item in found.lengths if not item.mixture]
    return cost.fit([Point(item.tokens, 1.0 / _cpu(item)) for item in fixed])


def _cpu(found: length.Length) -> float:
    """Seconds of CPU a turn, the model's and all else."""
    return 1.0 / middle(found.bare) + middle(found.overheads) / 1e6


def _nano(found: length.Result) -> tuple[str, Cost] | None:
    """All but the model costs what it costs with the default bundle, on the same turns."""
    mixtures = [item for item in found.lengths if item.mixture]
    if not found.others or not mixtures:
        return None
    other = min(found.others, key=lambda item: item.mega_operations)
    a_token = 1.0 / (middle(other.bare) * other.tokens)
    return other.bundle, Cost(a=middle(mixtures[0].overheads) / 1e6, b=a_token)


def _memory(found: sessions.Result) -> tuple[float, float] | None:
    """From the least and the most states in memory that were measured."""
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
        ["a turn of each, every", f"{n(a.seconds)} s, day and night"],
        ["a worker is planned with", f"{100 * a.busy:.0f} % of its rate"],
        ["Kafka: copies, hours kept", f"{a.replicas}, {a.log_hours}"],
        ["a broker takes, copies included", f"{n(a.broker)} MB/s"],
        ["a PostgreSQL primary writes to its log", f"{n(a.log)} MB/s"],
        ["turns and scores are kept", f"{a.months} months"],
        ["a viewer looks at", f"{a.sessions_a_viewer} sessions"],
        ["live streams of one web process", f"{a.streams}"],
        ["a worker on an accelerator, until it is measured", f"{n(a.accelerator)} turns/s"],
    ]
    return markdown.table(["assumption", "value"], rows)


def document(text: str, size: Sizes | None, speed: Speeds) -> str:
    """The document with assumptions and plan between their markers."""
    a = Assumptions()
    text = markdown.replace(text, "assumptions", assumed(a))
    if size is None:
        return markdown.replace(text, "plan", markdown.NOT_MEASURED)
    basis = (
        f"Sizes of {size.turns:,} turns of {n(size.tokens)} tokens with `{size.bundle}` on "
        f"PostgreSQL {size.postgresql}."
    )
    return markdown.replace(text, "plan", f"{basis}\n\n{shown(plan(a, size, speed))}")


def write(folder: Path = reports.RESULTS) -> Path:
    """Write the document anew from what there is."""
    text = document(DOCUMENT.read_text("utf-8"), sizes.load(), speeds(folder))
    DOCUMENT.write_text(text, "utf-8")
    return DOCUMENT


def main() -> None:
    """Print the plan and write the document."""
    print(write().read_text("utf-8"))


if __name__ == "__main__":
    main()
