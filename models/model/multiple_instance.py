"""Multiple-instance learning of the outcome heads, from listeners' ratings of bags of turns.

Nobody rates single turns for perceived empathy; listeners rated sets of turns, which are bags in
the sense of multiple-instance learning (Dietterich et al. 1997; Carbonneau et al. 2018). A turn's
output is a log-odds; a bag's is the mean over its turns, as in the session state
(`stream_app.core.measures.aggregates`); its target is the rating scaled to [0, 1].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from models.data.rated_sessions import SERVICE, RatedSession, above_neutral, soft
from models.fit.turn_features import VIEWS, TurnFeatures, View
from models.labels import CLIENT, COUNSELLOR, OUTCOME_HEADS

Pooling = Literal["mean_log_odds", "mean_probability", "noisy_or"]
POOLINGS: tuple[Pooling, ...] = ("mean_log_odds", "mean_probability", "noisy_or")

LARGEST_FALL = 4
FAILED_UNRATED = 2.0
"""Assumed rating of a failed chat whose seeker left before the survey."""
FEEDBACK_TURNS = 2
"""In the failed chats, feedback was requested after every two supporter turns."""
SESSION_RATINGS = ("empathy", "relevance", "fall", "failed")
WHOLE_CHATS_ONLY = ("satisfaction",)
"""Learned from whole chats alone; ratings of single turns test it.

Adding the service dialogues and the feedback makes its mean much worse at separating poor from good
chats.
"""
PROVISIONAL_ONLY = ("engagement",)
"""Learned without the following turns, because its target is computed from them."""


@dataclass(frozen=True)
class Bag:
    """Turns (rows of the features) with one rating.

    `kind` is the source of the rating, `rating` is in its original units, `target` in [0, 1];
    `session` is the index of the session.
    """

    head: str
    kind: str
    rows: tuple[int, ...]
    rating: float
    target: float
    session: int


def bags_of(sessions: list[RatedSession], starts: NDArray[np.int64]) -> list[Bag]:
    """All bags of the sessions, without AnnoMI, which is for testing alone."""
    bags: list[Bag] = []
    for number, session in enumerate(sessions):
        first = int(starts[number])
        if session.source in ("esconv", "esconv_failed"):
            bags += _survey(session, number, first)
            bags += _feedback(session, number, first)
            bags += _engagement(session, number, first)
        elif session.source in SERVICE:
            bags += _service(session, number, first)
            bags += _engagement(session, number, first)
    return bags


def _survey(session: RatedSession, number: int, first: int) -> list[Bag]:
    """Bags from the seeker's survey of the whole chat.

    `satisfaction` learns whether the chat went well (4 or 5) or not (1, 2, failed), because the
    difference between 4 and 5 depends more on the seeker than on the chat; the perceived heads
    learn the rating itself.
    """
    counsellor = tuple(first + i for i in session.positions[COUNSELLOR])
    client = tuple(first + i for i in session.positions[CLIENT])
    if not counsellor or not client:
        return []
    kind = session.source
    found = []
    if session.empathy is not None:
        rating, target = float(session.empathy), soft(session.empathy)
        found.append(Bag("sympathy", f"{kind}:empathy", counsellor, rating, target, number))
        well = 0.5 if session.low is None else float(not session.low)
        found.append(Bag("satisfaction", f"{kind}:empathy", client, rating, well, number))
    elif session.source == "esconv_failed":
        found.append(Bag("satisfaction", f"{kind}:failed", client, FAILED_UNRATED, 0.0, number))
    if session.relevance is not None:
        rating, target = float(session.relevance), soft(session.relevance)
        found.append(Bag("understanding", f"{kind}:relevance", counsellor, rating, target, number))
    if session.fall is not None:
        target = min(max(session.fall, 0), LARGEST_FALL) / LARGEST_FALL
        found.append(
            Bag("helpfulness", f"{kind}:fall", counsellor, float(session.fall), target, number)
        )
    return found


def _feedback(session: RatedSession, number: int, first: int) -> list[Bag]:
    found = []
    since: list[int] = []
    for position, turn in enumerate(session.turns):
        if turn.role == COUNSELLOR:
            since.append(first + position)
        elif turn.feedback is not None:
            rating, target = float(turn.feedback), soft(turn.feedback)
            row = (first + position,)
            kind = f"{session.source}:feedback"
            found.append(Bag("satisfaction", kind, row, rating, target, number))
            if since:
                rows = tuple(since[-FEEDBACK_TURNS:])
                found.append(Bag("helpfulness", kind, rows, rating, target, number))
            since = []
    return found


def _service(session: RatedSession, number: int, first: int) -> list[Bag]:
    found = []
    kind = f"{session.source}:satisfaction"
    for position, turn in enumerate(session.turns):
        if not turn.satisfaction:
            continue
        rating, target = mean(turn.satisfaction), above_neutral(turn.satisfaction)
        found.append(Bag("satisfaction", kind, (first + position,), rating, target, number))
        if position and session.turns[position - 1].role == COUNSELLOR:
            row = (first + position - 1,)
            found.append(Bag("helpfulness", kind, row, rating, target, number))
    return found


def _engagement(session: RatedSession, number: int, first: int) -> list[Bag]:
    """Target w / (w + u): words w of the next reply, u of the client's median reply.

    0 if the client does not reply, 1/2 for a reply of median length.
    """
    replies = replies_after(session)
    lengths = [words for words in replies.values() if words]
    if not lengths:
        return []
    usual = float(median(lengths))
    return [
        Bag(
            "engagement",
            f"{session.source}:reply",
            (first + position,),
            words / (words + usual),
            words / (words + usual),
            number,
        )
        for position, words in replies.items()
    ]


def replies_after(session: RatedSession) -> dict[int, int]:
    """Words of the client's next reply (all its turns until the counsellor's next), by position."""
    found: dict[int, int] = {}
    words, answering = 0, False
    for position in reversed(range(len(session.turns))):
        turn = session.turns[position]
        if turn.role == CLIENT:
            words = len(turn.text.split()) + (words if answering else 0)
            answering = True
        else:
            found[position] = words
            answering = False
    return dict(sorted(found.items()))


def pool(log_odds: Tensor, bag: Tensor, count: int, pooling: Pooling = "mean_log_odds") -> Tensor:
    """Pool turn log-odds to bag log-odds [count]; `bag` [turns] is the bag index of each turn.

    `mean_log_odds` lets every turn contribute; `mean_probability` bounds the influence of a turn;
    `noisy_or` can be satisfied by one strong turn (Maron & Lozano-Pérez 1998).
    """
    size = torch.zeros(count).index_add(0, bag, torch.ones_like(log_odds)).clamp(min=1.0)
    if pooling == "mean_log_odds":
        return torch.zeros(count).index_add(0, bag, log_odds) / size
    if pooling == "mean_probability":
        share = torch.zeros(count).index_add(0, bag, log_odds.sigmoid()) / size
    else:
        none = torch.zeros(count).index_add(0, bag, nn.functional.logsigmoid(-log_odds))
        share = 1.0 - none.exp()
    return torch.logit(share, eps=1e-4)


@dataclass(frozen=True)
class Fit:
    """Hyper-parameters of the outcome heads.

    A bag that rates a whole session has weight 1; bags of a kind that rates turns have at most the
    weight of `most` sessions together. `strength` is the inverse of the ridge penalty.
    """

    strength: float = 1e-3
    most: int = 400


def fit_heads(
    features: TurnFeatures,
    bags: Sequence[Bag],
    recipe: Fit,
    heads: Sequence[str] = OUTCOME_HEADS,
) -> dict[str, Linear]:
    """Fit each head to its bags.

    A bag's log-odds is the mean over its turns, and a turn's is linear in its features, so this is
    a logistic regression on mean features. With only a thousand rated chats, networks with a hidden
    layer did worse (`docs/decisions/0003-evaluation.md`).
    """
    fitted = {}
    for head in heads:
        own = [bag for bag in bags if bag.head == head and learns_from(bag)]
        if own:
            fitted[head] = _fit_one(features, own, recipe)
    return fitted


@dataclass(frozen=True)
class Linear:
    """Log-odds of "yes": a turn's features times `weights` [features], plus `intercept`."""

    weights: NDArray[np.float32]
    intercept: float

    def log_odds(self, fused: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Log-odds [turns] from features [turns, features]."""
        return np.asarray(fused @ self.weights + np.float32(self.intercept), np.float32)

    def write(self, layer: nn.Linear) -> None:
        """Copy the weights into a layer with outputs (no, yes); the log-odds of "no" stay 0."""
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(np.stack([0 * self.weights, self.weights])))
            layer.bias.copy_(torch.tensor([0.0, self.intercept]))


def _fit_one(features: TurnFeatures, bags: list[Bag], recipe: Fit) -> Linear:
    views: tuple[View, ...] = ("provisional",) if bags[0].head in PROVISIONAL_ONLY else VIEWS
    x = np.concatenate([mean_features(features, bags, view) for view in views])
    target = np.tile([bag.target for bag in bags], len(views))
    kinds = Counter(bag.kind for bag in bags)
    worth = [1.0 if rates_session(bag) else min(1.0, recipe.most / kinds[bag.kind]) for bag in bags]
    weight = np.tile(worth, len(views)) / len(views)
    scaler = StandardScaler().fit(x, sample_weight=weight)
    z = scaler.transform(x)
    # Split a target between 0 and 1 into a weighted "yes" and a weighted "no".
    regression = LogisticRegression(C=recipe.strength, max_iter=1000)
    regression.fit(
        np.concatenate([z, z]),
        np.repeat([1, 0], len(z)),
        sample_weight=np.concatenate([weight * target, weight * (1.0 - target)]),
    )
    weights = regression.coef_[0] / scaler.scale_
    intercept = float(regression.intercept_[0] - weights @ scaler.mean_)
    return Linear(weights.astype(np.float32), intercept)


def mean_features(features: TurnFeatures, bags: Sequence[Bag], view: View) -> NDArray[np.float32]:
    """Mean features [bags, size] of the bags' turns."""
    rows = np.concatenate([np.array(bag.rows) for bag in bags])
    firsts = np.cumsum([0, *(len(bag.rows) for bag in bags)])
    sizes = np.diff(firsts)[:, None]
    sums = np.add.reduceat(features.fused[view][rows].astype(np.float32), firsts[:-1], axis=0)
    return np.asarray(sums / sizes, np.float32)


def rates_session(bag: Bag) -> bool:
    """Whether the rating is of the whole chat."""
    return bag.kind.partition(":")[2] in SESSION_RATINGS


def learns_from(bag: Bag) -> bool:
    """Whether the bag's head is trained on it, as opposed to only tested."""
    return rates_session(bag) or bag.head not in WHOLE_CHATS_ONLY
