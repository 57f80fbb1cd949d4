"""The adapter of the core's ``IntentReader`` port: compares turns' vectors with intents."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from stream_app.contracts.events import SCORED_ROLES, Role
from stream_app.core.measures.intents import Hits, IntentSet
from stream_app.core.session.ports import Scorer
from stream_app.inference.intent_files import background
from stream_app.inference.intent_model import Fitted, Floats, Sentences, collect, fit, units

STEPS: Final = 4096
"""Vectors of length 1 are rounded to multiples of 1/4096.

Products are then sums of whole numbers below 2^24, which single-precision floats hold exactly. So a
turn's scores do not depend on the batch or on the order of the additions.
"""
AT_ONCE: Final = 256
DIGITS: Final = 6


class IntentComparer:
    """Reads turns with the intents of one file and one bundle; immutable, thread-safe."""

    def __init__(self, intents: IntentSet, sentences: Sentences, fitted: Fitted) -> None:
        self.intents = intents
        self.sentences = sentences
        self.fitted = fitted
        lengths = np.sqrt((fitted.weights**2).sum(axis=1))
        known = np.maximum(lengths, np.finfo(np.float64).tiny)
        self._weights = np.rint(STEPS * fitted.weights / known[:, None]).astype(np.float32)
        self._unit = lengths / STEPS**2
        self._shift = fitted.weights @ fitted.centre
        usable = (fitted.slope > 0) & (lengths > 0)
        least = np.full(len(lengths), np.inf)
        for place in np.flatnonzero(usable):
            odds = _log_odds(intents.intents[place].threshold) / fitted.slope[place]
            raw = fitted.cut[place] + odds + self._shift[place]
            least[place] = raw / self._unit[place]
        self._least = least
        self._of_role = {
            role: np.array([role in intent.roles for intent in intents.intents], np.bool_)
            for role in SCORED_ROLES
        }

    def hits(self, vectors: Sequence[bytes], roles: Sequence[Role]) -> list[Hits]:
        """The hits of each turn; see ``core.intents.IntentReader``."""
        found: list[Hits] = [{} for _ in vectors]
        if not vectors or not self.intents.intents:
            return found
        whole = np.rint(STEPS * units(vectors)).astype(np.float32)
        # not a matrix product, which would use BLAS threads that spin
        products = np.einsum("nd,kd->nk", whole, self._weights)
        known = np.asarray(whole.any(axis=1))
        above = (products >= self._least) & known[:, None]
        for row, column in zip(*(places.tolist() for places in above.nonzero()), strict=True):
            if self._of_role[roles[row]][column]:
                name = self.intents.intents[column].name
                found[row][name] = self._score(float(products[row, column]), column)
        return found

    def nearest_example(self, vector: bytes, name: str, *, without: str = "") -> tuple[str, float]:
        """The intent's example most like a turn, with their cosine (-1 to 1) from the centre.

        ``without``: a sentence that is not considered; empty with cosine 0 if there is no other.
        """
        return self.nearest(units([vector])[0], name, without=without)

    def nearest(self, unit: Floats, name: str, *, without: str = "") -> tuple[str, float]:
        """The ``nearest_example`` to a turn's ``units`` [hidden]."""
        column = self.intents.names.index(name)
        texts = self.sentences.texts
        rows = [
            row
            for row in np.flatnonzero(self.sentences.is_example[:, column]).tolist()
            if texts[row] != without
        ]
        if not rows:
            return "", 0.0
        own = unit - self.fitted.centre
        others = self.fitted.units[rows] - self.fitted.centre
        lengths = np.linalg.norm(others, axis=1) * np.linalg.norm(own)
        cosines = others @ own / np.maximum(lengths, np.finfo(np.float64).tiny)
        best = int(np.argmax(cosines))
        return texts[rows[best]], float(cosines[best])

    def _score(self, product: float, column: int) -> float:
        raw = product * self._unit[column] - self._shift[column]
        odds = self.fitted.slope[column] * (raw - self.fitted.cut[column])
        return round(1.0 / (1.0 + math.exp(-min(30.0, max(-30.0, odds)))), DIGITS)


def compare(intents: IntentSet, scorer: Scorer) -> IntentComparer:
    """Encode the sentences with a bundle and compute the weights.

    Blocks for as long as the bundle takes for the sentences and 250 ordinary turns.
    """
    sentences = collect(intents, background())

    def encode(texts: Sequence[str]) -> list[bytes]:
        return [
            encoding.vectors
            for start in range(0, len(texts), AT_ONCE)
            for encoding in scorer.encode(list(texts[start : start + AT_ONCE]))
        ]

    return IntentComparer(intents, sentences, fit(sentences, encode))


def _log_odds(p: float) -> float:
    return math.log(p / (1.0 - p))
