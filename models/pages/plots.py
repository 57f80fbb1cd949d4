"""SVG diagrams for the documentation, byte-identical for equal figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

COLUMNS = 4
BEFORE, AFTER, GRID = "#b5651d", "#1f6f8b", "#cccccc"


def draw_reliability(content: dict[str, Any], path: Path) -> None:
    """Draw accuracy over confidence, one small diagram per head; `content`: calibration.json."""
    rows = content["rows"]
    height = -(-len(rows) // COLUMNS)
    with mpl.rc_context({"svg.hashsalt": "rapport", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(2.3 * COLUMNS, 2.5 * height), layout="constrained")
        axes = figure.subplots(height, COLUMNS, squeeze=False).flat
        for plot, (head, row) in zip(axes, rows.items(), strict=False):
            plot.plot([0, 1], [0, 1], color=GRID, linewidth=1)
            for when, colour in (("before", BEFORE), ("after", AFTER)):
                shares, confidence, accuracy = zip(*row["reliability"][when], strict=True)
                plot.plot(confidence, accuracy, color=colour, linewidth=1.2, label=when)
                sizes = [4 + 120 * share for share in shares]
                plot.scatter(confidence, accuracy, s=sizes, color=colour, alpha=0.55, linewidths=0)
            errors = f"{100 * row['ece_before']:.1f} → {100 * row['ece_after']:.1f} %"
            plot.set_title(f"{head}\nECE {errors}", fontsize=8)
            plot.set(xlim=(0, 1), ylim=(0, 1), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        for plot in list(figure.axes)[len(rows) :]:
            plot.set_visible(False)
        figure.axes[0].legend(loc="upper left", frameon=False)
        figure.supxlabel("confidence")
        figure.supylabel("accuracy")
        figure.savefig(path, format="svg", metadata={"Date": None})
