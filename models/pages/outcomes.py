"""The section on outcome risks, from docs/evaluation/outcomes.json."""

from __future__ import annotations

from typing import Any

from models.pages.tables import NONE, table

Content = dict[str, Any]


def outcomes_section(report: Content) -> str:
    """Definitions of the outcomes, then AUROCs and comparisons blind to file identity."""
    numbers = ", ".join(map(str, report["folds"]))
    protocol = "\n".join(f"- {name}: {words}" for name, words in report["protocol"].items())
    found = report["outcomes"]
    parts = [
        f"Folds {numbers}. Outcome risks are correlates of what people said of whole sessions, not "
        "measures of empathy ([outcomes.md](outcomes.md)).",
        protocol,
        _summary(found),
        *(f"### {name}\n\n{_outcome(own)}" for name, own in found.items()),
    ]
    if report.get("annomi_quality"):
        parts.append(f"### AnnoMI quality: yardsticks\n\n{quality(report['annomi_quality'])}")
    return "\n\n".join(parts)


def _summary(found: Content) -> str:
    header = [
        *("outcome", "sessions", "with it", "AUROC at the end (95 %)", "target"),
        *("at equal length", "after 10 turns, running", "after 6"),
    ]
    rows = [
        [
            *(name, str(own["sessions"]), str(own["positive"]), figure(own["auroc"])),
            *(f"{own['target']:.2f}", figure(own["equal_length"])),
            *(figure(own["running"][key]) for key in ("after_10", "after_6")),
        ]
        for name, own in found.items()
    ]
    return table(header, rows)


def _outcome(own: Content) -> str:
    about = f"Counts as 1: {own['label']}. Counts as 0: {own['other']}."
    applies = f"Applies to sessions of the domain `{own['domain']}`" + (
        f" whose approach is `{own['approach']}`." if own["approach"] else "."
    )
    scored = [["all sessions", own], *own["within"].items()]
    header = ["comparison", "sessions", "with it", "AUROC (95 %)", "at equal length (95 %)"]
    rows = [
        [
            *(name, str(row["auroc"]["sessions"]), str(row["auroc"]["positive"])),
            *(figure(row["auroc"]), figure(row["equal_length"])),
        ]
        for name, row in scored
    ]
    parts = [f"{about} {applies}", table(header, rows)]
    if own["beside"]:
        beside = [
            [name, figure(row["auroc"]), figure(row["equal_length"])]
            for name, row in own["beside"].items()
        ]
        names = ["with other inputs", "AUROC (95 %)", "at equal length (95 %)"]
        parts.append(table(names, beside))
    if own["spearman"]:
        ranks = [[name, str(row["sessions"]), figure(row)] for name, row in own["spearman"].items()]
        names = ["rating of the whole session, 1-5", "sessions", "Spearman with the risk (95 %)"]
        parts.append(table(names, ranks))
    return "\n\n".join([*parts, _calibration(own["calibration"])])


def _calibration(row: Content) -> str:
    return (
        f"Calibration: Brier {row['brier']:.3f} ({row['brier_of_the_base_rate']:.3f} for the base "
        f"rate alone), mean risk {100 * row['mean_risk']:.1f} % where {100 * row['share']:.1f} % "
        f"had the outcome, expected calibration error "
        f"{100 * row['expected_calibration_error']:.1f} %."
    )


def quality(content: Content) -> str:
    """AUROC of low quality by other inputs, with sessions and with topics held out."""
    rows = [
        [name, *(figure(row[held]) for held in ("sessions held out", "topics held out"))]
        for name, row in content.items()
        if isinstance(row, dict)
    ]
    words = (
        f"{content['sessions']} sessions, {content['low']} of low quality, {content['topics']} "
        f"topics: {content['protocol']}."
    )
    header = ["features", "AUROC, sessions held out (95 %)", "AUROC, topics held out (95 %)"]
    return f"{words}\n\n{table(header, rows)}"


def figure(row: Content) -> str:
    """Value and interval.

    >>> figure({"value": 0.813, "low": 0.7, "high": 0.9}), figure({"value": None})
    ('0.81 (0.70 to 0.90)', '–')
    """
    if row["value"] is None:
        return NONE
    return f"{row['value']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
