"""``rapport analyse``: longitudinal analyses of the stored scores."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from stream_app import bootstrap
from stream_app.analytics.questions import attributes, progress, questions
from stream_app.analytics.questions.questions import Asked
from stream_app.analytics.questions.result import ALL, Analysis, Curve, Estimate
from stream_app.commands.events.reading import record_read
from stream_app.findings import agreement_words
from stream_app.findings.analysis_files import foot
from stream_app.settings import Settings
from stream_app.store.accounts.audit import AuditAction

WITH_ERRORS = 100
"""Characters of a line from which the standard errors have a column."""


def run(settings: Settings, question: str, asked: Asked) -> Analysis:
    """Answer a question from the database and the archive."""
    record_read(settings, AuditAction.READ_STATISTICS, f"analyse {question}")
    store = bootstrap.read_store(settings)
    restricted = settings.restrictions.everywhere
    asked = replace(asked, archive=settings.archive, restricted=restricted)
    try:
        file = settings.self_declared_attributes
        if file is not None:
            store.load_privacy(settings.redact)
            asked = replace(asked, attributes=attributes.read(file, store.privacy.pseudonym))
        with _shown_progress():
            return questions.answer(
                store, question, asked, lambda known: agreement_words.sentences(store, known)
            )
    finally:
        store.close()


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
