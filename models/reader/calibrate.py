"""Calibrate the reader's shown heads on what was held out: `python -m models.reader.calibrate`.

A head's probability is `sigmoid(slope * logit + intercept)`. Crisis language is shifted so that one
half is passed by at most `FALSE_ALARMS` of 1,000 ordinary client turns.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from sklearn.linear_model import LogisticRegression

from models.data import esconv
from models.data.corpora import read_rows, resolve_data_dir
from models.labels import CLIENT
from models.reader import corpora, written
from models.reader.evaluate import gathered
from models.reader.examples import SCALES, Example
from models.reader.tasks import Floats

GOOD = {"rated": 2, "areas": 1, "understood": 3, "exchange": 3}
"""Scales of people, and the level from which an answer is called good."""
FALSE_ALARMS = 5
"""Of 1,000 ordinary client turns, at most so many are called crisis language."""
ORDINARY = 4000


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


def ordinary_turns(data_dir: Path) -> list[Example]:
    """Client turns of emotional dialogues and of support chats that went well, evenly drawn."""
    texts = [
        said["text"]
        for row in read_rows(corpora.DIALOGUES, corpora.DIALOGUES.files[0], data_dir)
        for said in row["utterances"]
        if said["speaker"] == "speaker"
    ]
    texts = texts[:: len(texts) // (ORDINARY // 2)]
    chats = [t.text for item in esconv.load(data_dir) for t in item.turns if t.role == CLIENT]
    texts += chats[:: len(chats) // (ORDINARY // 2)]
    return [Example("ordinary", text, CLIENT, text) for text in texts]


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
    found = {"answer": platt(*answers(examples, heads["answer"][:, 0]))}
    for name, head, names in (
        ("lapse", "lapse", ("esconv_feedback",)),
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
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    typer.run(main)
