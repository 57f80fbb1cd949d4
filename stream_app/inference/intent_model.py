"""Weights of intents, in closed form from the vectors of their example sentences.

An intent's raw score of a turn is ``weights · (x - centre)``, where x is the mean of the turn's
token states with length 1. The weights are those of a ridge regression on whether a sentence is an
example of the intent (1) or not (0): its counter-examples, the other intents' examples and a
sample of ordinary turns. It has a closed-form solution, and so has its leave-one-out prediction
(Allen 1974, PRESS): each sentence is scored as if the weights had been computed without it. The
leave-one-out scores give the threshold and the scale of each intent.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from stream_app.contracts.events import SCORED_ROLES, Role
from stream_app.core.measures.intents import IntentSet

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Encode = Callable[[Sequence[str]], Sequence[bytes]]
"""Computes the vectors of texts, as in ``core.window.WindowTurn``."""

PENALTY: Final = 1.0
"""Penalty of the ridge regression, in mean eigenvalues of the examples' scatter matrix.

Of 0.3, 1, 3, 10 and 30 the one with the best leave-one-out average precision over the shipped
service intents, as a mean of both shipped bundles (``python -m models.intents penalty``).
"""
LEAST_SPREAD: Final = 1e-3


class Sentences(Struct, frozen=True):
    """The sentences of a set of intents, each once, and the background.

    ``is_example``, ``is_counter`` [sentences, intents]. ``fits`` [sentences, intents]: whether
    somebody with a role of the intent could have said it. The background comes last.
    """

    texts: list[str]
    is_example: Flags
    is_counter: Flags
    fits: Flags


class Fitted(Struct, frozen=True):
    """Weights [intents, hidden] and, by intent, what turns raw scores into scores.

    ``centre`` [hidden]. A raw score of ``cut`` is a score of 0.5; one above it by ``1 / slope``
    has log-odds of 1. ``left_out`` [sentences, intents]: leave-one-out raw scores. ``units``
    [sentences, hidden].
    """

    weights: Floats
    centre: Floats
    cut: Floats
    slope: Floats
    left_out: Floats
    units: Floats


def collect(intents: IntentSet, background: Sequence[str]) -> Sentences:
    """All sentences of the intents and the background; the same sentence only once."""
    shown: dict[str, str] = {}
    for intent in intents.intents:
        for text in (*intent.examples, *intent.counter_examples):
            shown.setdefault(text.casefold(), text)
    for text in background:
        shown.setdefault(text.casefold(), text)
    texts = {key: place for place, key in enumerate(shown)}
    shape = len(texts), len(intents.intents)
    is_example, is_counter = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    spoken_by: list[set[Role]] = [set() for _ in texts]
    for column, intent in enumerate(intents.intents):
        for rows, marks in (
            (intent.examples, is_example),
            (intent.counter_examples, is_counter),
        ):
            for text in rows:
                row = texts[text.casefold()]
                marks[row, column] = True
                spoken_by[row] |= intent.roles
    for text in background:
        spoken_by[texts[text.casefold()]] |= set(SCORED_ROLES)
    fits = np.array(
        [[bool(roles & intent.roles) for intent in intents.intents] for roles in spoken_by],
        np.bool_,
    ).reshape(shape)
    return Sentences(list(shown.values()), is_example, is_counter, fits)


def fit(sentences: Sentences, encode: Encode, penalty: float = PENALTY) -> Fitted:
    """Compute weights, thresholds and scales."""
    x = units(encode(sentences.texts))
    centre = x.mean(axis=0)
    rows = x - centre
    targets = sentences.is_example.astype(np.float64)
    scatter = rows.T @ rows
    ridge = max(penalty * float(np.trace(scatter)) / len(scatter), np.finfo(np.float64).tiny)
    inverse = np.linalg.inv(scatter + ridge * np.eye(len(scatter)))
    weights = inverse @ (rows.T @ targets)
    leverage = np.einsum("nd,nd->n", rows @ inverse, rows)[:, None]
    left_out = (rows @ weights - leverage * targets) / (1.0 - leverage)
    found = [
        scale(
            left_out[sentences.fits[:, column], column],
            sentences.is_example[sentences.fits[:, column], column],
        )
        for column in range(targets.shape[1])
    ]
    cut, slope = np.array(found, np.float64).reshape(-1, 2).T
    return Fitted(weights.T.copy(), centre, cut, slope, left_out, x)


def units(vectors: Sequence[bytes]) -> Floats:
    """The mean token states of turns with length 1, [turns, hidden].

    Each row depends on its own turn alone, to the last bit. Zero where there is no direction.
    """
    both = np.frombuffer(b"".join(vectors), np.float16).reshape(len(vectors), 2, -1)
    mean = np.nan_to_num(both[:, 1].astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    lengths = np.sqrt((mean * mean).sum(axis=1, keepdims=True))
    return np.asarray(mean / np.maximum(lengths, np.finfo(np.float32).tiny))


def scale(scores: Floats, is_example: Flags) -> tuple[float, float]:
    """Threshold and slope of an intent from leave-one-out scores.

    The threshold has the greatest F1, and lies in the middle of the gap. The slope is that of the
    log-odds of two normal distributions with the means of both classes and their pooled variance.
    """
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(is_example[order])
    f1 = 2 * hits / (np.arange(1, len(order) + 1) + hits[-1])
    best = int(np.argmax(f1))
    after = order[min(best + 1, len(order) - 1)]
    cut = float(scores[order[best]] + scores[after]) / 2
    if is_example.all():  # no sentence to tell them from
        return cut, 0.0
    yes, no = scores[is_example], scores[~is_example]
    spread = float(np.concatenate([yes - yes.mean(), no - no.mean()]).std())
    return cut, max(0.0, float(yes.mean() - no.mean())) / max(spread, LEAST_SPREAD) ** 2


def left_out_hits(fitted: Fitted, sentences: Sentences) -> Flags:
    """Whether each sentence hits each intent with weights computed without it."""
    return np.asarray(sentences.fits & (fitted.slope > 0) & (fitted.left_out >= fitted.cut))
