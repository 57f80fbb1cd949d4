"""Micromodels of one set of training pairs: seeds, features, levels and rationales.

They do not use context. One micromodel per mechanism has the mechanism's rationales from the
training split as seeds; the feature of a response is that of its most similar sentence:

    feature c     max over sentences j and seeds z of mechanism c: cos(e(r_j), e(z))   (eq. 2)
    level         an explainable boosting machine on the three features
    rationale     every sentence whose similarity to a seed is above theta             (eq. 1)

Differences from the paper: the sentence encoder is all-MiniLM-L6-v2 (theirs:
paraphrase-xlm-r-multilingual-v1); tokens and sentences are those of our own evaluation; theta is
chosen for each mechanism on a tenth of the training pairs. A training response is not compared with
its own rationales, which would make its features near 1 by construction, unlike those of any other
response; `own_seeds` includes them, a literal reading of the paper.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from interpret.glassbox import ExplainableBoostingClassifier
from numpy.typing import NDArray
from tokenizers import Tokenizer

from models.data.corpora import Conversation, Turn
from models.evaluate import metrics
from models.labels import RATIONALE_ORDER
from models.model.batches import overlaps, seeded_random
from research.folds import SEED
from research.sentence_vectors import Embedder
from stream_app.inference.rationale import sentences

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
THETAS = [round(0.4 + 0.02 * step, 2) for step in range(28)]
PUBLISHED_THETA = 0.7
THETA_SHARE = 0.1


@dataclass
class Response:
    """A response in sentences. `sentence_of` [tokens] is the sentence index of each token.

    `similarity` [sentences, 3] is each sentence's similarity to the nearest seed of each mechanism.
    """

    turn: Turn
    offsets: list[tuple[int, int]]
    sentence_of: NDArray[np.int64]
    texts: list[str]
    similarity: Floats

    @property
    def features(self) -> Floats:
        """The three micromodels' outputs (eq. 2), [3]."""
        return np.asarray(self.similarity.max(0))

    def mask(self, mechanism: int, theta: float) -> NDArray[np.int64]:
        """Mask of the sentences above theta, [tokens]."""
        return np.asarray(self.similarity[self.sentence_of, mechanism] > theta, np.int64)

    def gold(self, head: str) -> NDArray[np.int64] | None:
        """Tokens that annotators marked, [tokens]; None if not annotated."""
        if head not in self.turn.rationales:
            return None
        spans = self.turn.rationales[head]
        return np.array([overlaps(offset, spans) for offset in self.offsets], np.int64)

    def level(self, head: str) -> int:
        """The annotated level."""
        return self.turn.labels[head].index(1.0)


def in_sentences(
    text: str, tokenizer: Tokenizer
) -> tuple[list[tuple[int, int]], NDArray[np.int64], list[str]]:
    """Token offsets, each token's sentence [tokens], and the sentences' texts.

    A text without tokens is one sentence.
    """
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    if not offsets:
        return [], np.zeros(0, np.int64), [text]
    _, sentence_of = np.unique(sentences(offsets, text), return_inverse=True)
    texts = []
    for number in range(int(sentence_of.max()) + 1):
        own = np.flatnonzero(sentence_of == number)
        texts.append(text[offsets[own[0]][0] : offsets[own[-1]][1]])
    return offsets, sentence_of.astype(np.int64), texts


class Seeds:
    """The annotated rationales of some pairs, by mechanism, each with its response.

    By mechanism: `texts` [seeds], `vectors` [seeds, hidden], and `owner` [seeds], which identifies
    the response that a seed is from.
    """

    def __init__(self, turns: Iterable[Turn], embed: Embedder) -> None:
        self.texts: list[list[str]] = []
        self.vectors: list[Floats] = []
        self.owner: list[Ints] = []
        members = list(turns)
        for head in RATIONALE_ORDER:
            found = [
                (turn.text[start:stop], id(turn))
                for turn in members
                for start, stop in turn.rationales.get(head, [])
            ]
            self.texts.append([text for text, _ in found])
            self.vectors.append(embed(self.texts[-1]))
            self.owner.append(np.array([owner for _, owner in found], np.int64))

    def products(self, mechanism: int, vectors: Floats, own: int | None = None) -> Floats:
        """Cosines of `vectors` [sentences, hidden] with the seeds, [sentences, seeds].

        Those with seeds from the response `own` are -1.
        """
        found = np.asarray(vectors @ self.vectors[mechanism].T)
        if own is not None:
            found[:, self.owner[mechanism] == own] = -1.0
        return found

    def similarity(self, vectors: Floats, own: int | None = None) -> Floats:
        """Cosine with the nearest seed of each mechanism, [sentences, 3]."""
        every = range(len(RATIONALE_ORDER))
        return np.stack([self.products(each, vectors, own).max(1) for each in every], axis=1)


class Micromodels:
    """Fitted on some pairs: seeds, one boosting machine and one theta per mechanism."""

    def __init__(
        self,
        training: list[Conversation],
        embed: Embedder,
        tokenizer: Tokenizer,
        *,
        own_seeds: bool = False,
    ) -> None:
        self.embed, self.tokenizer = embed, tokenizer
        turns = [conversation.turns[-1] for conversation in training]
        self.thetas = self._choose_thetas(training)
        self.seeds = Seeds(turns, embed)
        responses = [self.read(turn, self.seeds, leave_out=not own_seeds) for turn in turns]
        features = np.stack([response.features for response in responses])
        self.machines: dict[str, ExplainableBoostingClassifier] = {}
        for head in RATIONALE_ORDER:
            machine = ExplainableBoostingClassifier(
                feature_names=list(RATIONALE_ORDER), interactions=0, n_jobs=1, random_state=SEED
            )
            levels = np.array([response.level(head) for response in responses])
            self.machines[head] = machine.fit(features, levels)

    def read(self, turn: Turn, seeds: Seeds, *, leave_out: bool = False) -> Response:
        """Split the response into sentences with their similarities to the seeds."""
        offsets, sentence_of, texts = in_sentences(turn.text, self.tokenizer)
        similarity = seeds.similarity(self.embed(texts), id(turn) if leave_out else None)
        return Response(turn, offsets, sentence_of, texts, similarity)

    def level(self, head: str, responses: list[Response]) -> NDArray[np.int64]:
        """Levels 0-2, [responses]."""
        features = np.stack([response.features for response in responses])
        return np.asarray(self.machines[head].predict(features)).astype(np.int64)

    def _choose_thetas(self, training: list[Conversation]) -> dict[str, float]:
        """Maximise token F1 plus IOU-F1 on a tenth of the posts, which provide no seeds."""
        chosen: list[Turn] = []
        others: list[Turn] = []
        for pair in training:
            held = seeded_random("theta", SEED, pair.split_key).random() < THETA_SHARE
            (chosen if held else others).append(pair.turns[-1])
        seeds = Seeds(others, self.embed)
        responses = [self.read(turn, seeds) for turn in chosen]
        return {
            head: max(THETAS, key=lambda theta: sum(rationale_f1(responses, head, theta)))
            for head in RATIONALE_ORDER
        }


def rationale_f1(
    responses: list[Response], head: str, theta: float, *, marked_only: bool = False
) -> tuple[float, float]:
    """Token F1 and IOU-F1 of the sentences above theta, 0-1, over responses with known gold.

    With `marked_only`, only over responses with a gold rationale.
    """
    column = RATIONALE_ORDER.index(head)
    known = [
        (gold, response)
        for response in responses
        if (gold := response.gold(head)) is not None and (gold.any() or not marked_only)
    ]
    golds = [gold for gold, _ in known]
    masks = [response.mask(column, theta) for _, response in known]
    return metrics.token_f1(golds, masks), metrics.iou_f1(golds, masks)
