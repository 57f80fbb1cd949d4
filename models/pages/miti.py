"""The section on the MITI summary, from docs/evaluation/miti.json."""

from __future__ import annotations

from typing import Any

from models.pages.tables import NONE, table

Content = dict[str, Any]
MEASURES = {
    "reflection_to_question": "R:Q",
    "complex_reflection_share": "% complex reflections",
    "open_question_share": "% open questions",
}
PARTS = {"all": "all sessions", "held_out": "held out"}


def miti_section(report: Content) -> str:
    """Agreement of each bundle's summary with human codes, then the rejected counting methods."""
    protocol = "\n".join(f"- {name}: {words}." for name, words in report["protocol"].items())
    shipped = report["shipped"]
    parts = [
        "The [MITI summary](miti.md) of AnnoMI's sessions, and the same summary of its human "
        "codes.",
        protocol,
    ]
    for name, entry in report["bundles"].items():
        parts += [f"### {name}", _measures(entry, shipped), _codes(entry["all"]["codes"])]
    first, entry = next(iter(report["bundles"].items()))
    parts += [
        "### Counting methods",
        f"All sessions, {first}. Shipped: {shipped}. A sentence is scored in place of its turn "
        "with the turn's neighbours, which multiplies the cost of a turn by its sentences.",
        _ways(entry["all"]),
    ]
    return "\n\n".join(parts)


def _measures(entry: Content, shipped: str) -> str:
    header = [
        *("measure", "sessions", "mean error", "of a constant", "median error"),
        *("Spearman (95 %)", "same standing", "of a constant"),
    ]
    rows = []
    for part, words in PARTS.items():
        if (own := entry[part]) is None:
            continue
        for name, title in MEASURES.items():
            row, constant = own["ways"][shipped][name], own["constant"][name]
            rows.append(
                [
                    f"{title}, {words}",
                    str(row["sessions"]),
                    _figure(row["error"]),
                    _figure(constant["error"]),
                    _figure(row["median_error"]),
                    _ranked(row["spearman"]),
                    f"{_percent(row['same_standing'])} of {row['standings']}",
                    _percent(constant["same_standing"]),
                ]
            )
    return table(header, rows)


def _codes(codes: Content) -> str:
    header = [
        *("code, all sessions", "people's mean", "expected mean", "mean error"),
        *("of a constant", "Spearman (95 %)"),
    ]
    rows = [
        [
            name.replace("_", " "),
            *(_figure(row[key]) for key in ("mean", "ours", "error", "error_of_a_constant")),
            _ranked(row["spearman"]),
        ]
        for name, row in codes.items()
    ]
    return table(header, rows)


def _ways(own: Content) -> str:
    header = ["counted"]
    for title in MEASURES.values():
        header += [f"{title}: mean error", "more than shipped (95 %)", "Spearman", "same standing"]
    rows = []
    for name, found in own["ways"].items():
        row = [name]
        for key in MEASURES:
            each = found[key]
            shipped = not any(each["more_error"][key] for key in ("low", "high"))
            row += [
                _figure(each["error"]),
                NONE if shipped else _ranked(each["more_error"], sign=True),
                _figure(each["spearman"]["value"]),
                _percent(each["same_standing"]),
            ]
        rows.append(row)
    return table(header, rows)


def _figure(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{100 * value:.0f} %"


def _ranked(row: Content, *, sign: bool = False) -> str:
    if row["value"] is None:
        return NONE
    form = "+.2f" if sign else ".2f"
    return f"{row['value']:{form}} ({row['low']:{form}} to {row['high']:{form}})"
