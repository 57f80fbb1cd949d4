"""Answers the questions of ``rapport analyse`` and ``rapport report``, and prints analyses."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from stream_app import bootstrap
from stream_app.analytics.questions import attributes, marked_days, progress, questions
from stream_app.analytics.questions.questions import Asked
from stream_app.analytics.questions.result import ALL, Analysis, Curve, Estimate
from stream_app.cli.options import record_read
from stream_app.findings import agreement_words
from stream_app.findings.analysis_files import foot
from stream_app.settings import Settings
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.stream.repository import Store

if TYPE_CHECKING:
    from stream_app.web.console.analytics import report, summary

WITH_ERRORS = 100
"""Characters of a line from which the standard errors have a column."""


def answer(settings: Settings, question: str, asked: Asked) -> Analysis:
    """Answer a question from the database and the archive."""
    record_read(settings, AuditAction.READ_STATISTICS, f"analyse {question}")
    restricted = settings.restrictions.everywhere
    with closing(bootstrap.read_store(settings)) as store, _shown_progress():
        about = replace(
            asked,
            archive=settings.archive,
            restricted=restricted,
            attributes=_attributes(settings, store),
        )
        return _answer(store, question, about)


def write_report(settings: Settings, wanted: "summary.Wanted", output: Path) -> int:
    """Write the report of two pages; returns its size in bytes."""
    from stream_app.web.console.analytics import summary  # analyses need no web framework

    record_read(settings, AuditAction.READ_STATISTICS, "report")
    with closing(bootstrap.read_store(settings)) as store:
        about = replace(
            wanted,
            attributes=_attributes(settings, store),
            days=marked_days.read(settings.marked_days, wanted.team),
            archive=settings.archive,
        )
        found = summary.summarise(store, about, partial(_answer, store))
        page = summary.html(store, found).encode()
    return output.write_bytes(page)


def write_full_report(settings: Settings, wanted: "report.Wanted", output: Path) -> int:
    """Write all curves and tables; returns the size in bytes."""
    from stream_app.web.console.analytics import report  # analyses need no web framework

    record_read(settings, AuditAction.READ_STATISTICS, "report")
    with closing(bootstrap.read_store(settings)) as store:
        days = marked_days.read(settings.marked_days, wanted.team)
        page = report.html(store, replace(wanted, archive=settings.archive, days=days)).encode()
    return output.write_bytes(page)


def _answer(store: Store, question: str, asked: Asked) -> Analysis:
    return questions.answer(
        store, question, asked, lambda known: agreement_words.sentences(store, known)
    )


def _attributes(settings: Settings, store: Store) -> Mapping[str, str] | None:
    """Return the attributes that counsellors declared, by pseudonym, if there is a file of them."""
    if settings.self_declared_attributes is None:
        return None
    store.load_privacy(settings.redact)
    return attributes.read(settings.self_declared_attributes, store.privacy.pseudonym)


@contextmanager
def _shown_progress() -> Iterator[None]:
    """A bar on standard error, if it is a terminal: large platforms take minutes."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("reading", total=None)

        def listen(work: str, done: int, parts: int) -> None:
            bar.update(task, description=work, completed=done, total=parts)

        with progress.watched(listen):
            yield


def show(analysis: Analysis, console: Console, *, curves: bool) -> None:
    """Print estimates as a table, with how to read them; ``curves``: their points, too.

    A measure and unit stand above their figures, so that a line of 80 characters holds the rest.
    """
    console.print(f"[bold]{analysis.title}[/]", highlight=False)
    console.print(analysis.about, highlight=False)
    console.print(_estimates(analysis.estimates, with_errors=console.width >= WITH_ERRORS))
    if curves:
        for curve in analysis.curves:
            console.print(_curve(curve))
    for line in foot(analysis):
        console.print(line, highlight=False, markup=False)


def _estimates(estimates: list[Estimate], *, with_errors: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", overflow="fold")
    table.add_column("value [95 %]", min_width=20)
    if with_errors:
        table.add_column("SE", justify="right")
    for name in ("n", "people", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    for (measure, unit), some in groupby(estimates, lambda each: (each.measure, each.unit)):
        table.add_row(Text(f"{measure}, {unit}" if unit else measure, style="bold"))
        for each in some:
            error = [Text("" if each.error is None else f"{each.error:.3g}")] if with_errors else []
            label = Padding(Text(_label(each)), (0, 0, 0, 2))
            table.add_row(label, *_figures(each, error))
    return table


def _label(each: Estimate) -> str:
    return each.name if each.group == ALL else f"{each.group}: {each.name}"


def _figures(each: Estimate, error: list[Text]) -> Iterator[Text]:
    yield Text(each.problem or interval(each.value, each.low, each.high))
    yield from error
    for text in (number(each.n), number(each.counsellors), _p(each)):
        yield Text(text)


def _curve(curve: Curve) -> Table:
    table = Table(title=f"{curve.title} · {curve.group} · {curve.bundle}", box=box.SIMPLE_HEAD)
    for name in (curve.axis, f"{curve.unit} [95 %]", "n"):
        table.add_column(name)
    for point in curve.points:
        known = interval(point.value, point.low, point.high) if point.n is not None else "hidden"
        table.add_row(point.label, known, number(point.n))
    return table


def number(n: int | None) -> str:
    """A count, or nothing where it is hidden."""
    return "" if n is None else str(n)


def interval(value: float | None, low: float | None, high: float | None) -> str:
    """A value with its interval.

    >>> interval(0.51234, 0.4, 0.6), interval(12.0, None, None), interval(None, None, None)
    ('0.512 [0.400, 0.600]', '12.0', '')
    """
    if value is None:
        return ""
    if low is None or high is None:
        return f"{value:#.3g}"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _p(each: Estimate) -> str:
    p = each.p if each.p_adjusted is None else each.p_adjusted
    if p is None:
        return ""
    holm = " (Holm)" if each.p_adjusted is not None else ""
    return ("< 0.001" if p < 0.001 else f"{p:.3f}") + holm
