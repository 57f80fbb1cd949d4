"""What a prediction of the micromodels is made of.

An explainable boosting machine is additive: the score of a level is its intercept plus what each
micromodel's similarity contributes, and the probability is the softmax of the scores. With the
sentence and the seed that gave the similarity, the whole decision can be read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.data.corpora import Turn
from models.labels import RATIONALE_ORDER
from research.micromodels.model import Floats, Micromodels
from stream_app.core.measures.heads import LEVELS


@dataclass(frozen=True)
class Match:
    """A micromodel's output for a response: the most similar sentence and seed."""

    mechanism: str
    similarity: float
    sentence: str
    seed: str


@dataclass(frozen=True)
class Decision:
    """The level of one mechanism and the scores that it follows from.

    `intercept` [levels] and `contributions` [micromodels, levels] add up to the levels' scores;
    levels that the training pairs do not have are left out (`levels`).
    """

    mechanism: str
    levels: tuple[int, ...]
    intercept: Floats
    contributions: Floats

    @property
    def scores(self) -> Floats:
        """Score of each level."""
        return np.asarray(self.intercept + self.contributions.sum(0))

    @property
    def probabilities(self) -> Floats:
        """Probability of each level."""
        powers = np.exp(self.scores - self.scores.max())
        return np.asarray(powers / powers.sum())

    @property
    def level(self) -> int:
        """The most probable level."""
        return self.levels[int(self.scores.argmax())]


@dataclass(frozen=True)
class Explanation:
    """All matches and decisions of one response, and its rationale sentences by mechanism."""

    matches: tuple[Match, ...]
    decisions: tuple[Decision, ...]
    rationales: dict[str, list[str]]


def explain(fitted: Micromodels, turn: Turn) -> Explanation:
    """Explain a response's levels and rationales."""
    response = fitted.read(turn, fitted.seeds)
    vectors = fitted.embed(response.texts)
    matches = []
    for mechanism, head in enumerate(RATIONALE_ORDER):
        products = fitted.seeds.products(mechanism, vectors)
        sentence, seed = np.unravel_index(int(products.argmax()), products.shape)
        matches.append(
            Match(
                head,
                float(products[sentence, seed]),
                response.texts[sentence],
                fitted.seeds.texts[mechanism][seed],
            )
        )
    rationales = {
        head: [
            text
            for text, similarity in zip(response.texts, response.similarity, strict=True)
            if similarity[mechanism] > fitted.thetas[head]
        ]
        for mechanism, head in enumerate(RATIONALE_ORDER)
    }
    decisions = tuple(_decision(fitted, head, response.features) for head in RATIONALE_ORDER)
    return Explanation(tuple(matches), decisions, rationales)


def _decision(fitted: Micromodels, head: str, features: Floats) -> Decision:
    """A machine of two classes has one score, that of the second one."""
    machine = fitted.machines[head]
    intercept = np.atleast_1d(np.asarray(machine.intercept_, float))
    terms = np.asarray(machine.eval_terms(features[None, :]), float)[0]
    levels = tuple(int(level) for level in machine.classes_)
    if terms.ndim == 1:
        intercept = np.concatenate([np.zeros(1), intercept[-1:]])
        terms = np.stack([np.zeros_like(terms), terms], axis=1)
    return Decision(head, levels, intercept, terms)


def in_words(explanation: Explanation, *, seeds: bool = True) -> str:
    """The explanation as lines of text, with the text of the seeds or only their lengths."""
    lines = [
        f"micromodel {match.mechanism}: {match.similarity:.2f}, "
        f'"{match.sentence}" is most similar to {_named(match.seed, seeds=seeds)}'
        for match in explanation.matches
    ]
    for decision in explanation.decisions:
        shares = ", ".join(
            f"{LEVELS[level]} {100 * share:.0f} %"
            for level, share in zip(decision.levels, decision.probabilities, strict=True)
        )
        lines.append(f"{decision.mechanism}: {LEVELS[decision.level]} ({shares})")
        rows = [("intercept", decision.intercept)]
        rows += [
            (f"micromodel {name}", row)
            for name, row in zip(RATIONALE_ORDER, decision.contributions, strict=True)
        ]
        for name, row in rows:
            each = "  ".join(
                f"{LEVELS[level]} {value:+.2f}"
                for level, value in zip(decision.levels, row, strict=True)
            )
            lines.append(f"    {name}: {each}")
        found = explanation.rationales[decision.mechanism]
        lines.append(f"    rationale: {' / '.join(found) if found else 'none'}")
    return "\n".join(lines)


def _named(seed: str, *, seeds: bool) -> str:
    return f'the seed "{seed}"' if seeds else f"a seed of {len(seed.split())} words"


def importances(fitted: Micromodels) -> dict[str, dict[str, float]]:
    """Mean absolute contribution of each micromodel to the scores of each mechanism's levels."""
    return {
        head: dict(zip(RATIONALE_ORDER, map(float, machine.term_importances()), strict=True))
        for head, machine in fitted.machines.items()
    }
