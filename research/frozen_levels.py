"""EPITOME's levels from a frozen encoder: `python -m research.frozen_levels`.

A multinomial logistic regression on mean-pooled sentence vectors, one for each mechanism, on the
folds of our models. Three inputs: the response alone; seeker post and response as two vectors; both
in one text, which the encoder reads together (a concatenated window). The penalty is chosen inside
the training part, by macro-F1 in three folds. Nothing in the encoder is trained, so the rows show
what fine-tuning adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold

from models.data import Conversation, load_for_command
from models.model.encoder import encoder_name, load_backbone
from research import baselines_page, results
from research.folds import FOLDS, Part, labelled_levels
from research.folds import parts as parts_of
from research.sentence_vectors import CACHE, SentenceEncoder, Text

if TYPE_CHECKING:
    from models.probes.scorers import Dialogue, Levels

NAME, COMMAND = "frozen_levels", "python -m research.frozen_levels"
STRENGTHS = (1.0, 10.0, 100.0)
"""Inverse ridge penalties to choose from."""

Input = Literal["alone", "two_vectors", "window"]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Row:
    """What the regression reads, in words."""

    input: Input
    words: str
    context: str


ROWS = {
    "frozen_alone": Row("alone", "frozen encoder, response alone", "none"),
    "frozen_two_vectors": Row(
        "two_vectors", "frozen encoder, vectors of seeker post and response", "seeker post"
    ),
    "frozen_window": Row("window", "frozen encoder, both in one text", "seeker post"),
}


class Embedder:
    """Adapts `SentenceEncoder` to dialogues: features [dialogues, size]."""

    def __init__(self, encode: SentenceEncoder, view: Input) -> None:
        self.encode, self.view = encode, view

    def __call__(self, dialogues: Sequence[Dialogue]) -> Floats:
        """Features of the last turn of each dialogue; of its context, the turn before is read."""
        responses: list[Text] = [dialogue[-1].text for dialogue in dialogues]
        if self.view == "alone":
            return self.encode(responses)
        before = [dialogue[-2].text if len(dialogue) > 1 else "" for dialogue in dialogues]
        if self.view == "window":
            return self.encode([(b, d[-1].text) for b, d in zip(before, dialogues, strict=True)])
        return np.concatenate([self.encode(before), self.encode(responses)], axis=1)


class FrozenLevels:
    """A `LevelScorer`: one regression for each mechanism."""

    def __init__(self, embed: Embedder, training: Sequence[Conversation]) -> None:
        self.embed = embed
        features = embed([pair.turns for pair in training])
        groups = np.unique([pair.split_key for pair in training], return_inverse=True)[1]
        self.regressions = []
        for levels in labelled_levels(training).T:
            self.regressions.append(chosen_regression(features, levels, groups))

    def levels(self, dialogues: Sequence[Dialogue]) -> Levels:
        """As `LevelScorer`."""
        features = self.embed(dialogues)
        return np.stack([fitted.predict(features) for fitted in self.regressions], axis=1).astype(
            np.int64
        )

    @property
    def parameters(self) -> int:
        """Coefficients and intercepts of the regressions."""
        return sum(r.coef_.size + r.intercept_.size for r in self.regressions)


def chosen_regression(
    features: Floats, labels: NDArray[np.int64], groups: NDArray[np.int64]
) -> LogisticRegression:
    """Fit with the strength of the best macro-F1 over three folds of whole groups."""
    search = GridSearchCV(
        LogisticRegression(class_weight="balanced", max_iter=2000),
        {"C": STRENGTHS},
        scoring="f1_macro",
        cv=GroupKFold(3),
    )
    fitted: LogisticRegression = search.fit(features, labels, groups=groups).best_estimator_
    return fitted


def row_of(row: Row, parts: list[Part], encode: SentenceEncoder) -> dict[str, Any]:
    """Fit and test on each fold."""
    gold, given, parameters = [], [], 0
    for part in parts:
        fitted = FrozenLevels(Embedder(encode, row.input), part.train)
        gold.append(part.gold)
        given.append(fitted.levels([pair.turns for pair in part.test]))
        parameters = fitted.parameters
    size = sum(p.numel() for p in load_backbone(encoder=encode.encoder).parameters())
    return {
        "words": row.words,
        "context": row.context,
        "encoder": encoder_name(encode.encoder),
        "parameters": size + parameters,
        "trained": parameters,
        "folds": [part.number for part in parts],
        "heads": results.level_figures(gold, given),
    }


def main(
    folds: Annotated[list[int] | None, typer.Option(help="Folds of five; default: all.")] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Folder or hub name of another encoder.")
    ] = None,
    cache: Annotated[Path, typer.Option(help="File with the encoder's vectors.")] = CACHE,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the result files.")] = results.FOLDER,
    pages: Annotated[Path, typer.Option(help="Folder of the page.")] = baselines_page.FOLDER,
    threads: int = 1,
) -> None:
    """Fit and test the regressions on frozen vectors."""
    torch.set_num_threads(threads)
    parts = parts_of(load_for_command(data_dir), folds or list(range(FOLDS)))
    encode = SentenceEncoder(cache, encoder)
    for key, row in ROWS.items():
        found = row_of(row, parts, encode)
        path = results.write_row(NAME, key, found, COMMAND, out)
        score = np.mean([head["macro_f1"]["mean"] for head in found["heads"].values()])
        print(f"{path}: {row.words}, macro-F1 {score:.3f}", flush=True)
    print(baselines_page.write(out, folder=pages))


if __name__ == "__main__":
    typer.run(main)
