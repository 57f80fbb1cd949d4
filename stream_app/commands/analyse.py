"""``rapport analyse``: longitudinal analyses of the stored scores."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec
from rich.console import Console
from rich.table import Table

from stream_app import bootstrap
from stream_app.analytics import attributes, questions
from stream_app.analytics.questions import Asked
from stream_app.analytics.result import Analysis, Curve, Estimate
from stream_app.commands.reading import record_read
from stream_app.settings import Settings
from stream_app.store.audit import AuditAction
from stream_app.web import agreement_words


def run(settings: Settings, question: str, asked: Asked) -> Analysis:
    """Answer a question from the database and the archive."""
    record_read(settings, AuditAction.READ_STATISTICS, f"analyse {question}")
    store = bootstrap.read_store(settings)
    asked = replace(asked, archive=settings.archive)
    try:
        file = settings.self_declared_attributes
        if file is not None:
            store.load_privacy(settings.redact)
            asked = replace(asked, attributes=attributes.read(file, store.privacy.pseudonym))
        return questions.answer(
            store, question, asked, lambda known: agreement_words.sentences(store, known)
        )
    finally:
        store.close()


def as_json(analysis: Analysis) -> str:
    """The analysis as one JSON document."""
    return msgspec.json.format(msgspec.json.encode(analysis), indent=2).decode()


def show(analysis: Analysis, console: Console, *, curves: bool) -> None:
    """Print estimates as a table, with how to read them; ``curves``: their points, too."""
    console.print(f"[bold]{analysis.title}[/]", highlight=False)
    console.print(analysis.about, highlight=False)
    console.print(_estimates(analysis.estimates))
    if curves:
        for curve in analysis.curves:
            console.print(_curve(curve))
    for line in _foot(analysis):
        console.print(line, highlight=False, markup=False)


def _foot(analysis: Analysis) -> Iterator[str]:
    sessions = "too few to say" if analysis.sessions is None else str(analysis.sessions)
    people = "too few to say" if analysis.counsellors is None else str(analysis.counsellors)
    dates = f"{analysis.since or 'the beginning'} to {analysis.until or 'now'}"
    yield f"Sessions {sessions}, counsellors {people}, {dates}."
    yield f"Method: {analysis.method} After {analysis.source}."
    yield from (f"Warning: {line}" for line in analysis.warnings)
    yield from analysis.notes
    for line in analysis.agreement:
        yield f"Agreement of people and model: {line}."


def _estimates(estimates: list[Estimate]) -> Table:
    table = Table(show_lines=False)
    for name in ("measure", "group", "estimate", "value [95 %]", "SE", "unit", "n", "people", "p"):
        table.add_column(name, overflow="fold")
    for each in estimates:
        table.add_row(
            each.measure,
            each.group,
            each.name,
            each.problem or interval(each.value, each.low, each.high),
            "" if each.error is None else f"{each.error:.3g}",
            each.unit,
            number(each.n),
            number(each.counsellors),
            _p(each),
        )
    return table


def _curve(curve: Curve) -> Table:
    table = Table(title=f"{curve.title} · {curve.group} · {curve.bundle}")
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
