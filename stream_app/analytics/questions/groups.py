"""Sizes of groups of sessions, and which of them are shown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from stream_app.analytics.questions.clustered import Fit, NotEstimable, bands
from stream_app.analytics.questions.frames import Frames
from stream_app.analytics.questions.result import (
    ALL,
    SMALL,
    Analysis,
    Context,
    Curve,
    Estimate,
    Point,
    Texts,
)
from stream_app.analytics.questions.suppression import CellSize, suppressed_cells


def size_of(sessions: pd.DataFrame) -> CellSize:
    """How many people some sessions are about."""
    return CellSize(sessions["client"].nunique(), sessions["counsellor"].nunique())


def bundles_of(sessions: pd.DataFrame) -> str:
    """The bundles behind a figure, as one text."""
    return " + ".join(sorted(sessions["bundle"].unique()))


def begin(frames: Frames, context: Context, question: str, texts: Texts) -> Analysis:
    """An analysis without figures yet; ``texts`` as they are."""
    size = size_of(frames.sessions)
    return Analysis(
        question=question,
        since=context.since,
        until=context.until,
        sessions=None if size.too_small else len(frames.sessions),
        counsellors=None if size.too_small else size.counsellors,
        bundles=sorted(frames.sessions["bundle"].unique()),
        agreement=list(context.agreement),
        title=texts.title,
        about=texts.about,
        method=texts.method,
        source=texts.source,
    )


def blank(rows: pd.DataFrame, measure: str, group: str, unit: str) -> Estimate:
    """An estimate about these rows that has no value yet."""
    return Estimate(
        "",
        measure,
        group,
        unit,
        None,
        None,
        None,
        len(rows),
        rows["counsellor"].nunique(),
        bundles_of(rows),
    )


def hidden_estimate(name: str, measure: str, group: str) -> Estimate:
    """Shown instead of an estimate about too few people."""
    return Estimate(name, measure, group, "", None, None, None, None, None, "", problem=SMALL)


def estimated(
    fit: Callable[[], Fit],
    names: Mapping[str, str],
    base: Estimate,
    transform: Callable[[float], float] = float,
) -> list[Estimate]:
    """The terms of a fit as estimates; if it cannot be fitted, the first says why."""
    try:
        found = fit()
    except NotEstimable as problem:
        return [replace(base, name=next(iter(names.values())), problem=str(problem))]
    return [
        replace(
            base,
            name=name,
            value=transform(found.terms[term].value),
            low=transform(found.terms[term].low),
            high=transform(found.terms[term].high),
            p=found.terms[term].p,
            error=found.terms[term].error if transform is float else None,
        )
        if term in found.terms
        else replace(base, name=name, problem="not enough data: no variation")
        for term, name in names.items()
    ]


def curves(
    sessions: pd.DataFrame,
    measure: str,
    groups: str | None,
    labels: Mapping[float, str],
    *,
    title: str,
    axis: str,
    unit: str,
) -> list[Curve]:
    """Means of a measure by ``bin``, one line for each group and bundle and one over all groups.

    A line never joins two bundles. Small cells are hidden, and those that would give them away.
    ``labels``: of the bins.
    """
    found = []
    known = sessions.dropna(subset=[measure])
    for bundle, part in known.groupby("bundle", sort=True):
        names: list[str] = sorted({str(name) for name in part[groups]}) if groups else []
        bins = sorted(set(part["bin"]))
        rows = [
            (name, part[part[groups].astype(str) == name] if groups else part) for name in names
        ]
        rows.append((ALL, part))
        gone = _hidden([some for _, some in rows], bins)
        for row, (name, some) in enumerate(rows):
            means = bands(some, measure, "bin", "counsellor")
            points = [
                Point(float(place), labels[place], None, None, None, None)
                if (row, column) in gone
                else _point(place, labels[place], means.loc[place])
                for column, place in enumerate(bins)
                if place in means.index
            ]
            found.append(Curve(title, measure, name, str(bundle), axis, unit, points))
    return found


def _point(place: float, label: str, row: pd.Series) -> Point:
    value, low, high = (float(row[key]) for key in ("value", "low", "high"))
    return Point(float(place), label, value, low, high, int(row["n"]))


def _hidden(rows: Sequence[pd.DataFrame], bins: Sequence[float]) -> set[tuple[int, int]]:
    """Hide small cells of groups by bins; the last row and column are totals."""
    cells = {}
    for row, some in enumerate(rows):
        by_bin = {place: size_of(part) for place, part in some.groupby("bin")}
        for column, place in enumerate(bins):
            cells[row, column] = by_bin.get(place, CellSize(0, 0))
        cells[row, len(bins)] = size_of(some)
    if len(rows) == 1:  # a table needs two rows: the group and the total are the same
        cells |= {(1, column): size for (_, column), size in list(cells.items())}
    return suppressed_cells(cells)
