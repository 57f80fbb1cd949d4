"""How few seeds a micromodel needs (Lee et al. 2023, section 4.5, Figure 3 and Table 2).

A sentence above theta is triggered by its nearest seed. Step by step, the seeds that triggered most
often are kept and the others removed. Triggers are counted again after each step, because the
sentences of a removed seed may be above the threshold for another one.

    published   triggers counted on the test responses: the choice has seen what it is tested on
    training    triggers counted on the training responses, each without its own seeds
    random      seeds drawn at random, the control
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from models.data.corpora import Conversation, Turn
from models.evaluate import metrics
from models.labels import RATIONALE_ORDER
from models.model.batches import seeded_random
from models.pages.report import over_folds
from research.folds import SEED
from research.micromodels.model import Floats, Ints, Micromodels, Response, in_sentences

Choice = Literal["published", "training", "random"]
CHOICES: tuple[Choice, ...] = ("published", "training", "random")
SIZES = (200, 100, 50, 20, 10, 5, 3, 1)
FEWEST = 3
"""Seeds that the paper's Table 2 shows."""


@dataclass(frozen=True)
class Cosines:
    """Cosines of the sentences of some responses with the seeds of one mechanism.

    `products` [sentences, seeds]; `response_of` [sentences] numbers the sentences' responses.
    """

    products: Floats
    response_of: Ints


def cosines(
    fitted: Micromodels, turns: Sequence[Turn], mechanism: int, *, leave_out: bool
) -> Cosines:
    """Of the turns' sentences; with `leave_out`, a turn's own seeds have -1."""
    rows, numbers = [], []
    for number, turn in enumerate(turns):
        texts = in_sentences(turn.text, fitted.tokenizer)[2]
        own = id(turn) if leave_out else None
        rows.append(fitted.seeds.products(mechanism, fitted.embed(texts), own))
        numbers += [number] * len(texts)
    return Cosines(np.concatenate(rows), np.array(numbers, np.int64))


def most_triggered(products: Floats, theta: float, sizes: Sequence[int]) -> dict[int, Ints]:
    """The seeds kept at each size, the most frequently triggered first, by falling size."""
    kept = np.arange(products.shape[1])
    found = {}
    for size in sizes:
        own = products[:, kept]
        nearest = own.argmax(1)[own.max(1) > theta]
        triggers = np.bincount(nearest, minlength=len(kept))
        kept = kept[np.argsort(-triggers, kind="stable")[:size]]
        found[size] = kept
    return found


def drawn(count: int, sizes: Sequence[int], *parts: object) -> dict[int, Ints]:
    """Seeds at random, a smaller set within the larger ones."""
    order = seeded_random("seeds", SEED, *parts).sample(range(count), count)
    return {size: np.array(order[:size], np.int64) for size in sizes}


def figures_of(
    fitted: Micromodels, responses: Sequence[Response], head: str, best: Floats
) -> dict[str, float]:
    """Rationale figures if `best` [sentences] is each sentence's largest cosine.

    `found` is the share of responses with a rationale.
    """
    theta = fitted.thetas[head]
    golds, masks, start = [], [], 0
    for response in responses:
        own = best[start : start + len(response.texts)]
        start += len(response.texts)
        gold = response.gold(head)
        if gold is not None:
            golds.append(gold)
            masks.append((own[response.sentence_of] > theta).astype(np.int64))
    marked = [number for number, gold in enumerate(golds) if gold.any()]
    return {
        "token_f1": metrics.token_f1(golds, masks),
        "iou_f1": metrics.iou_f1(golds, masks),
        "iou_f1_gold": metrics.iou_f1([golds[n] for n in marked], [masks[n] for n in marked]),
        "found": float(np.mean([mask.any() for mask in masks])),
    }


Row = dict[str, float]


def study(
    fitted: Micromodels,
    training: Sequence[Conversation],
    test: Sequence[Conversation],
    fold: int,
    sizes: Sequence[int] = SIZES,
) -> dict[str, dict[str, Any]]:
    """Figures by mechanism and choice at each size of one fold.

    `kept_words` are the numbers of words of the seeds that are kept longest; their text, which
    people in distress wrote, stays out of the result.
    """
    responses = [fitted.read(pair.turns[-1], fitted.seeds) for pair in test]
    own = [pair.turns[-1] for pair in training]
    result: dict[str, dict[str, Any]] = {}
    for mechanism, head in enumerate(RATIONALE_ORDER):
        tested = cosines(fitted, [each.turn for each in responses], mechanism, leave_out=False)
        trained = cosines(fitted, own, mechanism, leave_out=True)
        count = tested.products.shape[1]
        usable = [size for size in sizes if size < count]
        theta = fitted.thetas[head]
        kept = {
            "published": most_triggered(tested.products, theta, usable),
            "training": most_triggered(trained.products, theta, usable),
            "random": drawn(count, usable, fold, head),
        }
        everything = figures_of(fitted, responses, head, tested.products.max(1))
        rows: dict[str, Any] = {"seeds": count, "theta": theta, "all": everything}
        for choice in CHOICES:
            rows[choice] = {
                str(size): figures_of(
                    fitted, responses, head, tested.products[:, kept[choice][size]].max(1)
                )
                for size in usable
            }
        texts = fitted.seeds.texts[mechanism]
        longest = kept["training"].get(FEWEST, np.zeros(0, np.int64))
        rows["kept_words"] = [len(texts[position].split()) for position in longest]
        result[head] = rows
    return result


def over_all_folds(found: Sequence[dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Mean and standard deviation over folds of each figure; sizes that every fold has."""

    def spread(rows: list[Row]) -> dict[str, Any]:
        means = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        return over_folds(rows, means)

    result: dict[str, dict[str, Any]] = {}
    for head in RATIONALE_ORDER:
        folds = [each[head] for each in found]
        result[head] = {
            "seeds": [fold["seeds"] for fold in folds],
            "theta": [fold["theta"] for fold in folds],
            "all": spread([fold["all"] for fold in folds]),
            "kept_words": [fold["kept_words"] for fold in folds],
        }
        for choice in CHOICES:
            sizes = [size for size in folds[0][choice] if all(size in f[choice] for f in folds)]
            result[head][choice] = {
                size: spread([fold[choice][size] for fold in folds]) for size in sizes
            }
    return result


def without_rationale(pairs: Sequence[Conversation]) -> dict[str, float]:
    """Share of responses without an annotated rationale, by mechanism."""
    turns = [pair.turns[-1] for pair in pairs]
    return {
        head: float(np.mean([not t.rationales[head] for t in turns if head in t.rationales]))
        for head in RATIONALE_ORDER
    }
