"""What predicts transfer: support-vector regression and permutation importance (Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from research.transfer.tasks import BY_NAME

Floats = NDArray[np.floating[Any]]
SPLITS, PERMUTATIONS, TEST_SHARE = 10, 50, 0.2
SIZES = {"samples": "train", "tokens": "words", "vocabulary": "vocabulary", "labels": "labels"}


def features(content: dict[str, Any]) -> tuple[list[str], dict[str, Floats], Floats]:
    """Names of the rated transfers, their feature groups [n, columns], and % improvement [n].

    The groups of section 5.1: direction of the change in size (-1, 0, 1), kinds of both tasks, same
    source and same setting, similarity of data sets and of tasks, differences in ratings.
    """
    sizes = {row["name"]: row for row in content["tasks"]}
    place = {name: number for number, name in enumerate(sizes)}
    groups: dict[str, list[list[float]]] = {}
    names, changes = [], []
    for row in content["transfers"]:
        source, target = BY_NAME[row["source"]], BY_NAME[row["target"]]
        if source.ratings is None or target.ratings is None or not row["base"]:
            continue
        at = place[source.name], place[target.name]
        found: dict[str, list[float]] = {
            name: [float(np.sign(sizes[target.name][key] - sizes[source.name][key]))]
            for name, key in SIZES.items()
        }
        found["task types"] = [
            float(source.kind == first and target.kind == second)
            for first in ("classification", "regression")
            for second in ("classification", "regression")
        ]
        found["data source"] = [float(source.source == target.source)]
        found["language setting"] = [float(source.setting == target.setting)]
        found["data similarity"] = [content["data_similarity"][at[1]][at[0]]]
        found["task similarity"] = [content["task_similarity"][at[1]][at[0]]]
        for name, first, second in zip(
            ("definition", "link", "conduciveness"), source.ratings, target.ratings, strict=True
        ):
            found[name] = [second - first]
        for name, values in found.items():
            groups.setdefault(name, []).append(values)
        names.append(f"{source.name} to {target.name}")
        changes.append(100 * (row["score"] - row["base"]) / abs(row["base"]))
    return names, {name: np.array(rows) for name, rows in groups.items()}, np.array(changes)


def importances(
    groups: dict[str, Floats],
    target: Floats,
    splits: int = SPLITS,
    permutations: int = PERMUTATIONS,
    seed: int = 17,
) -> dict[str, Any]:
    """Mean and sd over the splits of the loss in R² when a group is permuted in the test part.

    With the R² itself: where it is not above 0 the model predicts nothing, and the importances say
    nothing.
    """
    names: Sequence[str] = list(groups)
    matrix = np.concatenate([groups[name] for name in names], axis=1)
    ends = np.cumsum([groups[name].shape[1] for name in names])
    columns = dict(zip(names, np.split(np.arange(matrix.shape[1]), ends[:-1]), strict=True))
    losses: dict[str, list[float]] = {name: [] for name in names}
    explained = []
    for split in range(splits):
        train, test = train_test_split(
            np.arange(len(target)), test_size=TEST_SHARE, random_state=seed + split
        )
        fitted = make_pipeline(StandardScaler(), SVR()).fit(matrix[train], target[train])
        reached = float(r2_score(target[test], fitted.predict(matrix[test])))
        explained.append(reached)
        chance = np.random.default_rng(seed + split)
        for name in names:
            drops = []
            for _ in range(permutations):
                mixed = matrix[test].copy()
                mixed[:, columns[name]] = mixed[chance.permutation(len(test))][:, columns[name]]
                drops.append(reached - r2_score(target[test], fitted.predict(mixed)))
            losses[name].append(float(np.mean(drops)))
    return {
        "pairs": len(target),
        "r2": {"mean": float(np.mean(explained)), "sd": float(np.std(explained, ddof=1))},
        "loss": {
            name: {"mean": float(np.mean(each)), "sd": float(np.std(each, ddof=1))}
            for name, each in losses.items()
        },
    }
