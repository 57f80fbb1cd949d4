"""Calibrate the reader's shown heads on what was held out: `python -m models.reader.calibrate`.

A head's probability is `sigmoid(slope * logit + intercept)`. Two heads are shifted, because their
corpora hold far more positives than conversations do: one half is passed by at most `FALSE_ALARMS`
of 1,000 ordinary client turns (crisis language), and by at most `FALSE_LAPSES` of the answers in
plainly good sessions (lapse).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from sklearn.linear_model import LogisticRegression

from models.data.corpora import resolve_data_dir
from models.reader import corpora, written
from models.reader.evaluation.evaluate import gathered
from models.reader.examples import SCALES, Example
from models.reader.tasks import Floats

GOOD = {"rated": 2, "areas": 1, "understood": 3, "exchange": 3}
"""Scales of people, and the level from which an answer is called good."""
FALSE_ALARMS = 5
"""Largest number of 1,000 ordinary client turns that may be called crisis language."""
FALSE_LAPSES = 0.05
"""Share of the answers in plainly good sessions that may be called a lapse."""
GOOD_SESSIONS, BAD_SESSIONS = "plain_sessions_good", "plain_sessions_bad"
LAPSES = ("esconv_feedback", "manners")
"""Corpora with lapses and answers without, as prefixes; both count the same."""


def platt(logit: Floats, yes: Floats, weight: Floats) -> tuple[float, float]:
    """Slope and intercept of a logistic regression of `yes` on the logit (Platt 1999)."""
    model = LogisticRegression(C=1e3).fit(logit[:, None], yes > 0.5, sample_weight=weight)
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def answers(examples: list[Example], logit: Floats) -> tuple[Floats, Floats, Floats]:
    """Logits, whether people call the answer good, and weights that make the scales equal."""
    rows, good, scales = [], [], []
    for place, example in enumerate(examples):
        if np.isnan(logit[place]) or example.grade is None or example.grade[0] not in GOOD:
            continue
        scale, level = example.grade
        rows.append(place)
        good.append(float(level >= GOOD[scale]))
        scales.append(list(SCALES).index(scale))
    weight = 1.0 / np.bincount(scales, minlength=len(SCALES))[scales]
    return logit[rows], np.array(good), weight * len(rows) / weight.sum()


def lapses(examples: Sequence[Example], logit: Floats) -> tuple[float, float]:
    """Slope and intercept of lapses; the corpora decide the slope, good sessions the intercept."""
    rows, sources = [], []
    for place, example in enumerate(examples):
        source = next((n for n, name in enumerate(LAPSES) if example.corpus.startswith(name)), None)
        if source is not None and "lapse" in example.binary and not np.isnan(logit[place]):
            rows.append(place)
            sources.append(source)
    yes = np.array([examples[place].binary["lapse"] for place in rows])
    slope, _ = platt(logit[rows], yes, len(rows) / np.bincount(sources)[sources])
    good = [
        value
        for example, value in zip(examples, logit, strict=True)
        if example.corpus == GOOD_SESSIONS and not np.isnan(value)
    ]
    return slope, -slope * float(np.quantile(good, 1.0 - FALSE_LAPSES))


def _with_lapses(examples: Sequence[Example], logit: Floats) -> dict[str, list[int]]:
    """Places of the held-out answers of good and bad sessions, and of experts' judgements."""
    found: dict[str, list[int]] = {}
    for place, example in enumerate(examples):
        label = example.binary.get("lapse")
        if np.isnan(logit[place]):
            continue
        if example.corpus in (GOOD_SESSIONS, BAD_SESSIONS):
            found.setdefault(example.corpus, []).append(place)
        elif example.corpus == LAPSES[0] and label is not None:
            name = "lapses by experts" if label > 0.5 else "good answers by experts"
            found.setdefault(name, []).append(place)
    return found


def main(
    runs: Annotated[list[Path], typer.Argument(help="Folders with predictions.npz.")],
    out: Annotated[Path, typer.Option(help="File to write.")] = Path(
        "build/reader/calibration.json"
    ),
    ordinary: Annotated[
        Path | None, typer.Option(help="Logits of crisis language of ordinary turns (.npy).")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    contrast: Annotated[Path, typer.Option(help="Folder of the voices.")] = written.CONTRAST,
) -> None:
    """Write slope and intercept of every shown head."""
    folder = resolve_data_dir(data_dir)
    examples = [*corpora.load(folder), *written.load(folder, contrast)]
    heads = gathered(examples, runs)
    found = {
        "answer": platt(*answers(examples, heads["answer"][:, 0])),
        "lapse": lapses(examples, heads["lapse"][:, 0]),
    }
    for name, head, names in (
        ("opportunity", "emotional_opportunity", ("eaf_people", "plain_clients")),
        ("crisis_language", "crisis", ("crisis_rallypoint", "crisis_cssrs", "crisis_inputs")),
    ):
        rows = [
            place
            for place, example in enumerate(examples)
            if example.corpus in names
            and head in example.binary
            and not np.isnan(heads[head][place, 0])
        ]
        yes = np.array([examples[place].binary[head] for place in rows])
        found[name] = platt(heads[head][rows, 0], yes, np.ones(len(rows)))
    if ordinary is not None:
        slope, _ = found["crisis_language"]
        limit = float(np.quantile(np.load(ordinary), 1.0 - FALSE_ALARMS / 1000))
        found["crisis_language"] = slope, -slope * limit
    lapse, (slope, intercept) = heads["lapse"][:, 0], found["lapse"]
    for name, rows in _with_lapses(examples, lapse).items():
        called = float((slope * lapse[rows] + intercept > 0.0).mean())
        print(f"called a lapse: {called:.0%} of {len(rows)} {name}")
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    typer.run(main)
