"""An analysis as a file or text: JSON with everything, CSV and Markdown with its tables."""

import csv
import io
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final

import msgspec

from stream_app.analytics.questions.result import Analysis, Curve, Estimate
from stream_app.findings.exports.spreadsheet import safe_text

COLUMNS: Final = (
    "question",
    "part",
    "measure",
    "group",
    "name",
    "place",
    "unit",
    "value",
    "low",
    "high",
    "error",
    "n",
    "counsellors",
    "p",
    "p_adjusted",
    "bundle",
    "problem",
)
"""Columns of the CSV file: estimates and points of curves, told apart by ``part``."""
OF_ESTIMATES: Final = ("Measure", "Group", "Estimate", "Value", "95 %", "Unit", "n", "People", "p")


class FileFormat(Enum):
    """``json`` has everything; ``csv`` all figures; ``md`` the estimates with how to read them."""

    JSON = "json"
    CSV = "csv"
    MARKDOWN = "md"


MEDIA_TYPES: Final = {
    FileFormat.JSON: "application/json",
    FileFormat.CSV: "text/csv; charset=utf-8",
    FileFormat.MARKDOWN: "text/markdown; charset=utf-8",
}


def encoded(analysis: Analysis, wanted: FileFormat) -> str:
    """The analysis in this format."""
    if wanted is FileFormat.JSON:
        return msgspec.json.format(msgspec.json.encode(analysis), indent=2).decode()
    return _csv(analysis) if wanted is FileFormat.CSV else _markdown(analysis)


def _csv(analysis: Analysis) -> str:
    sink = io.StringIO()
    writer = csv.writer(sink)
    writer.writerow(COLUMNS)
    rows = [_of_estimate(each) for each in analysis.estimates]
    rows += [row for curve in analysis.curves for row in _of_curve(curve)]
    for row in rows:
        known = {"question": analysis.question, **row}
        writer.writerow([_cell(known.get(name)) for name in COLUMNS])
    return sink.getvalue()


def _of_estimate(each: Estimate) -> dict[str, object]:
    return {"part": "estimate", **{name: getattr(each, name, None) for name in COLUMNS[2:]}}


def _of_curve(curve: Curve) -> Iterator[dict[str, object]]:
    for point in curve.points:
        yield {
            "part": "curve",
            "measure": curve.measure,
            "group": curve.group,
            "name": curve.title,
            "place": point.label,
            "unit": curve.unit,
            "value": point.value,
            "low": point.low,
            "high": point.high,
            "n": point.n,
            "bundle": curve.bundle,
            "problem": "hidden" if point.value is None else None,
        }


def _cell(value: object) -> object:
    return safe_text(value) if isinstance(value, str) else value


def _markdown(analysis: Analysis) -> str:
    lines = [f"# {analysis.title}", "", analysis.about, ""]
    rows = [
        (
            each.measure,
            each.group,
            each.name,
            each.problem if each.value is None else f"{each.value:.4g}",
            "" if each.low is None or each.high is None else f"{each.low:.4g} to {each.high:.4g}",
            each.unit,
            each.n,
            each.counsellors,
            _p(each),
        )
        for each in analysis.estimates
    ]
    lines += [_row(OF_ESTIMATES), _row(["---"] * len(OF_ESTIMATES)), *map(_row, rows)]
    lines += ["", *(f"- {line}" for line in foot(analysis))]
    return "\n".join(lines)


def foot(analysis: Analysis) -> Iterator[str]:
    """Return the lines that say what the figures rest on, and their limits."""
    sessions = "too few to say" if analysis.sessions is None else str(analysis.sessions)
    people = "too few to say" if analysis.counsellors is None else str(analysis.counsellors)
    dates = f"{analysis.since or 'the beginning'} to {analysis.until or 'now'}"
    yield f"Sessions {sessions}, counsellors {people}, {dates}."
    yield f"Method: {analysis.method} After {analysis.source}."
    yield from (f"Warning: {line}" for line in analysis.warnings)
    yield from analysis.notes
    for line in analysis.agreement:
        yield f"Agreement of people and model: {line}."


def _row(cells: Iterable[object]) -> str:
    texts = ("" if cell is None else str(cell).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(texts)} |"


def _p(each: Estimate) -> str:
    p = each.p if each.p_adjusted is None else each.p_adjusted
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
