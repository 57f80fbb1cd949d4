"""Measures Matthews correlation of every classifier on the labelled targets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.data import Conversation
from models.evaluate.metrics import mcc
from models.model.batches import seeded_random
from research.low_resource import exchanges
from research.low_resource.contrast import Contrast, Flags, Floats, fit, inputs, trained
from research.low_resource.exchanges import Exchange, Target
from research.low_resource.nli import Inference, zero_shot
from research.sentence_vectors import SentenceEncoder

RESAMPLES = 5
BUDGETS = (8, 16, 32, 64, 128, 256, 512)
TEST_FOLD = 0


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Mean and standard deviation."""
    return {"mean": mean(values), "sd": stdev(values) if len(values) > 1 else 0.0}


def by_question(target: Target, given: Flags) -> dict[str, float]:
    """MCC on all exchanges and on those that are no questions (section 3.2.2)."""
    other = ~target.question
    return {
        "all": mcc(target.empathic, given),
        "no_questions": mcc(target.empathic[other], given[other]),
    }


def contrast_row(
    pair: tuple[str, str],
    pools: dict[str, list[Exchange]],
    targets: Sequence[Target],
    encode: SentenceEncoder,
    utterances: int,
    size: int,
) -> tuple[dict[str, Any], Contrast]:
    """One pair of corpora, resampled: MCC on its own test part and on the targets.

    Each resample draws `size` training and size / 4 test exchanges of each side. Returns the first
    resample's classifier as well.
    """
    own: list[float] = []
    found: dict[str, dict[str, list[float]]] = {target.name: {} for target in targets}
    first: Contrast | None = None
    for number in range(RESAMPLES):
        sides = []
        for name in pair:
            chance = seeded_random("contrast", *pair, name, number)
            sides.append(chance.sample(pools[name], min(len(pools[name]), size + size // 4)))
        count = min(len(side) for side in sides) * 4 // 5
        fitted = trained(sides[0][:count], sides[1][:count], encode, utterances)
        first = first or fitted
        test = [side[count : count + count // 4] for side in sides]
        gold = np.repeat([True, False], [len(side) for side in test])
        own.append(mcc(gold, fitted.empathic([*test[0], *test[1]])))
        for target in targets:
            rows = by_question(target, fitted.empathic(target.exchanges))
            rows["by_sentence"] = mcc(
                target.empathic, fitted.empathic_by_sentence(target.exchanges)
            )
            for name, value in rows.items():
                found[target.name].setdefault(name, []).append(value)
    assert first is not None  # noqa: S101 (RESAMPLES > 0)
    row = {
        "positive": pair[0],
        "negative": pair[1],
        "utterances": utterances,
        "items": 2 * count,
        "own": spread(own),
        "targets": {
            name: {key: spread(values) for key, values in rows.items()}
            for name, rows in found.items()
        },
    }
    return row, first


def few_shot(target: Target, start: Contrast, encode: SentenceEncoder) -> list[dict[str, Any]]:
    """MCC on the target's test fold after training on some labelled turns of the other folds.

    Every budget is drawn `RESAMPLES` times, with at least two of each class; `alone` starts from
    nothing, `started` from the contrast classifier. Budgets above the number of turns are left out.
    """
    features = inputs(target.exchanges, encode, start.utterances)
    test = target.fold == TEST_FOLD
    pool = np.flatnonzero(~test)
    rows: list[dict[str, Any]] = []
    zero = mcc(target.empathic[test], features[test] @ start.weights > 0)
    rows.append({"turns": 0, "alone": spread([0.0]), "started": spread([zero])})
    for budget in BUDGETS:
        if budget > len(pool):
            break
        found: dict[str, list[float]] = {"alone": [], "started": []}
        for number in range(RESAMPLES):
            chosen = _drawn(pool, target.empathic, budget, number)
            for name, weights in (("alone", None), ("started", start.weights)):
                found[name].append(_tested(features, target.empathic, chosen, test, weights))
        rows.append({"turns": budget} | {name: spread(values) for name, values in found.items()})
    return rows


def _drawn(pool: NDArray[np.int64], empathic: Flags, budget: int, number: int) -> NDArray[np.int64]:
    chance = np.random.default_rng([budget, number])
    mixed = chance.permutation(pool)
    sides = [mixed[empathic[mixed] == side][:2] for side in (True, False)]
    rest = mixed[~np.isin(mixed, np.concatenate(sides))]
    return np.concatenate([*sides, rest])[:budget]


def _tested(
    features: Floats,
    empathic: Flags,
    chosen: NDArray[np.int64],
    test: Flags,
    start: Floats | None,
) -> float:
    weights = fit(features[chosen], empathic[chosen], start)
    return mcc(empathic[test], features[test] @ weights > 0)


def curves(
    conversations: list[Conversation],
    data_dir: Path,
    encode: SentenceEncoder,
    *,
    pair: tuple[str, str],
    size: int,
) -> dict[str, Any]:
    """The few-shot curves, from the first resample of a one-utterance contrast."""
    pools = {name: exchanges.drawn(name, conversations, data_dir, 2 * size) for name in pair}
    _, start = contrast_row(pair, pools, [], encode, 1, size)
    targets = [
        exchanges.annomi(conversations),
        exchanges.epitome(conversations, all_folds=True),
    ]
    found = {target.name: few_shot(target, start, encode) for target in targets}
    return {"start": list(pair), "curves": found}


def contrasts(
    conversations: list[Conversation],
    data_dir: Path,
    encode: SentenceEncoder,
    *,
    pairs: Sequence[tuple[str, str]],
    size: int,
) -> dict[str, Any]:
    """The targets, and the figures of every pair with one utterance and with two."""
    targets = [exchanges.annomi(conversations), exchanges.epitome(conversations)]
    names = dict.fromkeys(name for pair in pairs for name in pair)
    pools = {name: exchanges.drawn(name, conversations, data_dir, 2 * size) for name in names}
    rows = []
    for utterances in (1, 2):
        for pair in pairs:
            row, _ = contrast_row(pair, pools, targets, encode, utterances, size)
            row["control"] = pair not in exchanges.CONTRASTS
            rows.append(row)
            print(f"{pair} ({utterances}): {row['own']['mean']:.2f}", flush=True)
    return {"targets": [about(target) for target in targets], "contrasts": rows}


def about(target: Target) -> dict[str, Any]:
    """A target's size and shares."""
    asked = target.question
    return {
        "name": target.name,
        "words": target.words,
        "n": len(target.exchanges),
        "empathic": float(target.empathic.mean()),
        "questions": float(asked.mean()),
        "empathic_questions": float(target.empathic[asked].mean()) if asked.any() else None,
    }


def zero_shot_figures(
    conversations: list[Conversation], inference: Inference
) -> dict[str, dict[str, dict[str, float]]]:
    """The NLI baselines by target."""
    targets = [exchanges.annomi(conversations), exchanges.epitome(conversations)]
    return {
        target.name: {
            name: by_question(target, given)
            for name, given in zero_shot(inference, target.exchanges).items()
        }
        for target in targets
    }
