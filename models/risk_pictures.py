"""Pictures of the session risk: AUROC by turn and reliability, drawn from sessions.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "rapport"  # the same figures give the same file
mpl.rcParams["svg.fonttype"] = "none"

from matplotlib import pyplot as plt  # noqa: E402

COLOURS = ("#1b6e8c", "#c2571a", "#5a7d2a")


def draw_by_turn(report: dict[str, Any], path: Path) -> None:
    """AUROC with its interval after each number of counsellor turns, and the targets."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    turns = [row["counsellor_turns"] for row in report["by_turn"]]
    for colour, (key, label) in zip(
        COLOURS,
        (("known_by_then", "all sessions"), ("running", "sessions still running")),
        strict=False,
    ):
        rows = [row[key] for row in report["by_turn"]]
        axes.plot(turns, [row["value"] for row in rows], color=colour, label=label)
        axes.fill_between(
            turns,
            [row["low"] for row in rows],
            [row["high"] for row in rows],
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
    aims = report["targets"]
    axes.plot([6, 10], [aims["after_6"], aims["after_10"]], "k+", label="target")
    axes.axhline(0.5, color="grey", linewidth=0.8)
    axes.set(xlabel="counsellor turns", ylabel="AUROC, low against good", ylim=(0.45, 1.0))
    axes.legend(loc="lower right", frameon=False)
    _save(figure, path)


def draw_calibration(report: dict[str, Any], path: Path) -> None:
    """Share of low sessions against the risk, in bins of equal size."""
    figure, axes = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    names = (("after_6", "after 6 turns"), ("after_10", "after 10 turns"), ("end", "at the end"))
    for colour, (key, label) in zip(COLOURS, names, strict=True):
        bins = report["calibration"][key]["bins"]
        risk, low = [b["risk"] for b in bins], [b["low"] for b in bins]
        axes.plot(risk, low, marker="o", markersize=4, color=colour, label=label)
    axes.set(xlabel="risk", ylabel="share of low sessions", xlim=(0, 1), ylim=(0, 1))
    axes.legend(loc="upper left", frameon=False)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
