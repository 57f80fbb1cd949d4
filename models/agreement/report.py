"""Agreement of ratings, printed as a table and written as figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from models.agreement.comparison import Comparison, compare
from models.agreement.ratings import Rating, RatingsError, Scale, by_variable
from models.agreement.tables import agreement_table
from models.evaluate.resampling import RESAMPLES


def compared_by_variable(
    ratings: Iterable[Rating], scales: Mapping[str, Scale], resamples: int
) -> list[Comparison]:
    """Compare all kinds of coders on every variable; see `by_variable` for errors."""
    return [row for coded in by_variable(ratings, scales) for row in compare(coded, resamples)]


def print_agreement(
    ratings: Iterable[Rating],
    scales: Mapping[str, Scale],
    resamples: int = RESAMPLES,
    out: Path | None = None,
) -> None:
    """Print the table of agreement, and write the figures.

    Raises:
        SystemExit: the ratings contradict each other, or no item has two coders.
    """
    try:
        rows: list[dict[str, Any]] = [
            row.as_json() for row in compared_by_variable(ratings, scales, resamples)
        ]
    except RatingsError as problem:
        raise SystemExit(f"error: {problem}") from None
    if not rows:
        raise SystemExit("error: no item was coded by two coders")
    print(agreement_table(rows))
    if out is not None:
        out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
