"""`python -m models.evaluate.multitrait`: do the perceived heads measure different things?

A multitrait-multimethod table (Campbell & Fiske 1959) of every perceived head and every rating: a
head should correlate with the rating that it learns from (convergent) and less with the others
(discriminant). ESConv's failed file has lower ratings and shorter chats, so a head that recognises
the file correlates with every rating: the correlations are partial, with the file held constant.
All p-values are corrected together (Holm 1979). Writes docs/evaluation/multitrait.json from the
fold models' outputs.

`--bundle FOLDER` measures nothing: it uses the file to decide which heads the console shows as one
value (`models.evaluate.trait_groups`), and writes the groups into the bundle's manifest and model
card.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import typer
from numpy.typing import NDArray
from scipy.stats import t as student
from statsmodels.stats.multitest import multipletests

from models.data.corpora import resolve_data_dir
from models.data.rated_sessions import RatedSession
from models.evaluate.ratings import Fold, bag_scores
from models.evaluate.resampling import interval, partial_spearman, spearman
from models.evaluate.trait_groups import perceived_values
from models.fit.turn_features import View
from models.labels import COUNSELLOR
from models.model.multiple_instance import Bag, bags_of, learns_from
from stream_app.core.measures.heads import PERCEIVED
from stream_app.core.measures.perceived import PerceivedValues

VIEW: View = "final"
ALPHA = 0.05
ESCONV = ("esconv", "esconv_failed")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Rated:
    """Ratings of some turns, and the heads' outputs for them; all arrays are [ratings].

    `scores` has each head's log-odds; `file` is the index of the corpus file, which is held
    constant; `session` is the index of the turns' session; `own` names the heads that learn from
    such ratings.
    """

    name: str
    rating: Floats
    scores: Mapping[str, Floats]
    file: Ints
    session: Ints
    own: frozenset[str] = frozenset()

    @property
    def dummies(self) -> Floats:
        """Dummy variables for each file but the first, [ratings, files - 1]."""
        return np.asarray(self.file[:, None] == np.unique(self.file)[None, 1:], np.float64)


def table(rated: Sequence[Rated]) -> dict[str, Any]:
    """All cells, heads by ratings, with p-values corrected over all cells together.

    `spearman` is plain and pooled, `partial` holds the file constant and has an interval that
    resamples sessions; `p` is the two-sided p of the partial correlation.
    """
    cells = [_cell(head, item) for item in rated for head in item.scores]
    known = [cell for cell in cells if cell["p"] is not None]
    if known:
        corrected = multipletests([cell["p"] for cell in known], ALPHA, method="holm")[1]
        for cell, value in zip(known, corrected, strict=True):
            cell["p_holm"] = float(value)
    return {"alpha": ALPHA, "tests": len(known), "cells": cells}


def _cell(head: str, item: Rated) -> dict[str, Any]:
    score, rating, given = item.scores[head], item.rating, item.dummies
    partial = interval(
        item.session, lambda rows: partial_spearman(score[rows], rating[rows], given[rows])
    )
    sessions = len(np.unique(item.session))
    return {
        "head": head,
        "rating": item.name,
        "own": head in item.own,
        "n": len(score),
        "sessions": sessions,
        "files": given.shape[1] + 1,
        "spearman": spearman(score, rating),
        "partial": partial,
        "p": p_value(partial["value"], sessions, given.shape[1]),
        "p_holm": None,
    }


def p_value(correlation: float, sessions: int, covariates: int) -> float | None:
    """Two-sided p of a partial correlation, by Student's t with sessions - 2 - covariates.

    The sample size is the number of sessions, because ratings of one session are not independent.

    >>> round(p_value(0.5, 18, 0), 3)
    0.035
    """
    free = sessions - 2 - covariates
    if np.isnan(correlation) or free < 1:
        return None
    if abs(correlation) >= 1:
        return 0.0
    statistic = abs(correlation) * np.sqrt(free / (1 - correlation**2))
    return float(2 * student.sf(statistic, free))


def between_heads(item: Rated) -> dict[str, Any]:
    """Rank correlation of every two heads over the same turns, plain and given the file."""
    rows = []
    for first, second in combinations(item.scores, 2):
        x, y = item.scores[first], item.scores[second]
        partial = partial_spearman(x, y, item.dummies)
        rows.append({"heads": [first, second], "spearman": spearman(x, y), "partial": partial})
    return {"over": item.name, "n": len(item.rating), "pairs": rows}


def distinguishable(rated: Sequence[Rated], resamples: int | None = None) -> list[dict[str, Any]]:
    """For each head and each rating it learns from: its advantage over every other head.

    This is the difference of the two partial correlations, with an interval that resamples
    sessions; two heads are distinguishable where the interval lies above 0.
    """
    rows = []
    for item in rated:
        for head in (name for name in item.scores if name in item.own):
            for other in (name for name in item.scores if name != head):
                found = interval(item.session, _difference(item, head, other), resamples)
                apart = bool(found["low"] > 0)
                about = {"head": head, "other": other, "rating": item.name}
                rows.append(about | {"difference": found, "distinguishable": apart})
    return rows


def _difference(item: Rated, head: str, other: str) -> Any:
    given = item.dummies

    def statistic(rows: Ints) -> float:
        first, second = (
            partial_spearman(item.scores[name][rows], item.rating[rows], given[rows])
            for name in (head, other)
        )
        return first - second

    return statistic


def report(rated: Sequence[Rated], chats: Rated) -> dict[str, Any]:
    """All tables; `chats` are whole chats, for the correlations between heads."""
    return {
        "protocol": "each conversation is scored by the model of the fold that left it out; ranks "
        "are regressed on the corpus file and the residuals are correlated; intervals resample "
        "conversations; p by Student's t over conversations, Holm-corrected over all cells",
        **table(rated),
        "between_heads": between_heads(chats),
        "distinguishable": distinguishable(rated),
    }


def rated_by(
    sessions: list[RatedSession], folds: list[Fold], heads: Sequence[str] = PERCEIVED
) -> list[Rated]:
    """Ratings of counsellor turns by kind of rating, with the heads' held-out log-odds.

    ESConv's two files are joined, with the file to be held constant; so are the four service
    corpora.
    """
    groups: dict[str, list[Bag]] = {}
    for bag in bags_of(sessions, folds[0].outcomes.starts):
        source, _, what = bag.kind.partition(":")
        if _is_counsellors(bag, sessions, folds[0]) and what != "failed":
            where = "ESConv" if source in ESCONV else "service"
            groups.setdefault(f"{where} {what}", []).append(bag)
    return [_rated(name, bags, sessions, folds, heads) for name, bags in groups.items()]


def whole_chats(
    sessions: list[RatedSession], folds: list[Fold], heads: Sequence[str] = PERCEIVED
) -> Rated:
    """Every ESConv chat, rated or not, with the heads' mean over its counsellor turns."""
    starts = folds[0].outcomes.starts
    bags = [
        Bag("", session.source, rows, 0.0, 0.0, number)
        for number, session in enumerate(sessions)
        if session.source in ESCONV
        and (rows := tuple(int(starts[number]) + i for i in session.positions[COUNSELLOR]))
    ]
    return _rated("ESConv chats", bags, sessions, folds, heads)


def _is_counsellors(bag: Bag, sessions: list[RatedSession], fold: Fold) -> bool:
    first = int(fold.outcomes.starts[bag.session])
    return sessions[bag.session].turns[bag.rows[0] - first].role == COUNSELLOR


def _rated(
    name: str,
    bags: list[Bag],
    sessions: list[RatedSession],
    folds: list[Fold],
    heads: Sequence[str],
) -> Rated:
    kept: list[Bag] = []
    scores: dict[str, list[Floats]] = {head: [] for head in heads}
    for fold in folds:
        own = [bag for bag in bags if not fold.share.trains(sessions[bag.session].key)]
        if not own:
            continue
        kept += own
        for head in heads:
            logits = fold.outcomes.logits[VIEW][head]
            scores[head].append(bag_scores(logits[:, 1] - logits[:, 0], own, "mean_log_odds"))
    files = sorted({sessions[bag.session].source for bag in kept})
    return Rated(
        name,
        np.array([bag.rating for bag in kept], dtype=np.float64),
        {head: np.concatenate(parts) for head, parts in scores.items()},
        np.array([files.index(sessions[bag.session].source) for bag in kept], dtype=np.int64),
        np.array([bag.session for bag in kept], dtype=np.int64),
        frozenset(bag.head for bag in kept if bag.head in heads and learns_from(bag)),
    )


def write_groups(bundle: Path, figures: Path) -> PerceivedValues:
    """Decide from the figures which heads are shown as one value; write that into the bundle."""
    # These bring the export, which the functions above do without.
    from models.bundle import CARD, MANIFEST, write_manifest  # noqa: PLC0415
    from models.card import model_card  # noqa: PLC0415

    content = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    heads = [head["name"] for head in content["heads"] if head["dimension"] == "perceived"]
    ratings = figures.with_name("ratings.json")
    found = perceived_values(
        json.loads(figures.read_text(encoding="utf-8")),
        json.loads(ratings.read_text(encoding="utf-8")) if ratings.is_file() else {},
        heads,
    )
    content["perceived"] = msgspec.to_builtins(found)
    write_manifest(bundle, content)
    (bundle / CARD).write_text(model_card(content), encoding="utf-8")
    return found


def main(
    folds: Annotated[Path, typer.Option(help="Folder with one model folder per fold.")] = Path(
        "build/folds"
    ),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="File to write the figures to.")] = Path(
        "docs/evaluation/multitrait.json"
    ),
    bundle: Annotated[
        Path | None,
        typer.Option(help="Measure nothing: write the groups of heads into this bundle."),
    ] = None,
) -> None:
    """Measure the heads of all folds that have them, and write the figures."""
    if bundle is not None:
        for group in write_groups(bundle, out).groups:
            first = group.validity[0] if group.validity else None
            says = f"r = {first.r:.2f} with {first.words}" if first else "not measured"
            print(f"{group.name}: shows {group.shown}, {says}")
        return

    # Imported here because they bring the session risk and the export.
    from models.outcomes.folds import load_folds  # noqa: PLC0415
    from models.pages import document  # noqa: PLC0415
    from models.pages.report import rounded  # noqa: PLC0415

    sessions, members = load_folds(folds, resolve_data_dir(data_dir))
    content = report(rated_by(sessions, members), whole_chats(sessions, members))
    content["folds"] = [fold.number for fold in members]
    out.parent.mkdir(parents=True, exist_ok=True)
    document.write_json(out, rounded(content, 6))
    print(document.write(out.parent))


if __name__ == "__main__":
    typer.run(main)
