"""Micromodels (Lee et al. 2023, section 3): `python -m models.methods.micromodels`.

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

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Any

import numpy as np
import torch
import typer
from interpret.glassbox import ExplainableBoostingClassifier
from numpy.typing import NDArray
from tokenizers import Tokenizer

from models.batches import overlaps, seeded_random
from models.data import epitome
from models.data.corpora import Conversation, MissingCorpusError, Turn, resolve_data_dir
from models.data.split import split_fold
from models.encoder import load_tokenizer
from models.evaluate import metrics
from models.evaluate.published import MAJORITY, MICROMODELS
from models.labels import RATIONALE_ORDER
from models.methods.sentence_vectors import CACHE, Embedder, SentenceEncoder
from models.probes.scorers import Dialogue, Levels
from stream_app.inference.rationale import sentences

Floats = NDArray[np.floating]
FOLDS, SEED = 5, 17
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
    """The annotated rationales of some pairs, by mechanism, each with its response."""

    def __init__(self, turns: Iterable[Turn], embed: Embedder) -> None:
        self.vectors: list[Floats] = []
        self.owner: list[NDArray[np.int64]] = []
        members = list(turns)
        for head in RATIONALE_ORDER:
            found = [
                (turn.text[start:stop], id(turn))
                for turn in members
                for start, stop in turn.rationales.get(head, [])
            ]
            self.vectors.append(embed([text for text, _ in found]))
            self.owner.append(np.array([owner for _, owner in found], np.int64))

    def similarity(self, vectors: Floats, own: int | None = None) -> Floats:
        """Cosine with the nearest seed of each mechanism, [sentences, 3].

        `vectors` [sentences, hidden]; seeds from the response `own` are excluded.
        """
        columns = []
        for seeds, owner in zip(self.vectors, self.owner, strict=True):
            products = vectors @ seeds.T
            if own is not None:
                products[:, owner == own] = -1.0
            columns.append(products.max(1))
        return np.stack(columns, axis=1)


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


def evaluate(
    pairs: list[Conversation], embed: Embedder, tokenizer: Tokenizer, *, own_seeds: bool
) -> dict[str, list[dict[str, float]]]:
    """Figures (0-1) by mechanism, one row per fold."""
    rows: dict[str, list[dict[str, float]]] = {head: [] for head in RATIONALE_ORDER}
    for fold in range(FOLDS):
        parts = split_fold(pairs, fold, FOLDS, SEED)
        fitted = Micromodels(parts["train"], embed, tokenizer, own_seeds=own_seeds)
        responses = [fitted.read(pair.turns[-1], fitted.seeds) for pair in parts["test"]]
        for head in RATIONALE_ORDER:
            gold = np.array([response.level(head) for response in responses])
            given = fitted.level(head, responses)
            tokens, spans = rationale_f1(responses, head, fitted.thetas[head])
            published_tokens, published_spans = rationale_f1(responses, head, PUBLISHED_THETA)
            marked = rationale_f1(responses, head, fitted.thetas[head], marked_only=True)
            nothing = rationale_f1(responses, head, theta=1.1)
            rows[head].append(
                {
                    "responses": len(responses),
                    "accuracy": metrics.accuracy(gold, given),
                    "macro_f1": metrics.macro_f1(gold, given),
                    "theta": fitted.thetas[head],
                    "token_f1": tokens,
                    "iou_f1": spans,
                    "token_f1_gold": marked[0],
                    "iou_f1_gold": marked[1],
                    "token_f1_at_published_theta": published_tokens,
                    "iou_f1_at_published_theta": published_spans,
                    "token_f1_without_rationales": nothing[0],
                    "iou_f1_without_rationales": nothing[1],
                    "majority_accuracy": float(np.bincount(gold).max() / len(gold)),
                }
            )
            print(f"fold {fold} {head}: {rows[head][-1]}", flush=True)
    return rows


def summary(rows: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Mean and standard deviation over the folds, and the values per fold."""
    result: dict[str, Any] = {}
    for head, folds in rows.items():
        columns = {name: [row[name] for row in folds] for name in folds[0]}
        result[head] = {
            name: {"mean": mean(values), "sd": stdev(values) if len(values) > 1 else 0.0}
            for name, values in columns.items()
        }
        result[head]["folds"] = folds
    return result


MEASURES = ("accuracy", "macro_f1", "token_f1", "iou_f1")


def markdown(content: dict[str, Any]) -> str:
    """Format in per cent, mean ± sd over the folds, with the published figures below."""
    columns = [f"{head} {measure}" for head in RATIONALE_ORDER for measure in MEASURES]
    lines = ["| | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 1) + "|"]
    for name in ("micromodels", "own_seeds"):
        cells = [
            f"{100 * found['mean']:.1f} ± {100 * found['sd']:.1f}"
            for head in RATIONALE_ORDER
            for found in (content[name][head][measure] for measure in MEASURES)
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    published = content["published"]["micromodels"]
    cells = [f"{published[head][measure]:.1f}" for head in RATIONALE_ORDER for measure in MEASURES]
    return "\n".join([*lines, "| published | " + " | ".join(cells) + " |"])


class MicromodelLevels:
    """Micromodels as a scorer for the context probe; they read the response alone."""

    def __init__(self, fitted: Micromodels) -> None:
        self.fitted = fitted

    def levels(self, dialogues: Sequence[Dialogue]) -> Levels:
        """As `models.probes.scorers.LevelScorer`."""
        turns = [dialogue[-1] for dialogue in dialogues]
        # One call for all sentences: the cache is written once.
        self.fitted.embed(
            [text for turn in turns for text in in_sentences(turn.text, self.fitted.tokenizer)[2]]
        )
        responses = [self.fitted.read(turn, self.fitted.seeds) for turn in turns]
        columns = [self.fitted.level(head, responses) for head in RATIONALE_ORDER]
        return np.stack(columns, axis=1)


def fit_levels(training: list[Conversation]) -> MicromodelLevels:
    """Fit micromodels on the EPITOME pairs among `training`, for the probe."""
    pairs = [conversation for conversation in training if conversation.corpus == "epitome"]
    return MicromodelLevels(Micromodels(pairs, warmed(pairs), load_tokenizer()))


def warmed(pairs: list[Conversation]) -> SentenceEncoder:
    """A sentence encoder with every sentence and rationale of the pairs in its cache."""
    embed, tokenizer = SentenceEncoder(CACHE), load_tokenizer()
    texts: list[str] = []
    for pair in pairs:
        response = pair.turns[-1]
        texts += in_sentences(response.text, tokenizer)[2]
        spans = (span for found in response.rationales.values() for span in found)
        texts += [response.text[start:stop] for start, stop in spans]
    embed(texts)
    return embed


def main(
    out: Annotated[Path, typer.Option(help="File to write the figures to.")] = Path(
        "docs/evaluation/micromodels.json"
    ),
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    threads: int = 1,
) -> None:
    """Fit and test micromodels on the models' folds."""
    torch.set_num_threads(threads)
    try:
        pairs = list(epitome.load(resolve_data_dir(data_dir)))
    except MissingCorpusError as problem:
        raise SystemExit(f"error: {problem}") from problem
    embed, tokenizer = warmed(pairs), load_tokenizer()
    content: dict[str, Any] = {"folds": FOLDS, "seed": SEED, "encoder": "all-MiniLM-L6-v2"}
    for name, own_seeds in (("micromodels", False), ("own_seeds", True)):
        content[name] = summary(evaluate(pairs, embed, tokenizer, own_seeds=own_seeds))
    content["published"] = {"micromodels": MICROMODELS, "majority": MAJORITY}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(markdown(content))


if __name__ == "__main__":
    typer.run(main)
