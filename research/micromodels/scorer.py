"""Micromodels as a scorer for the context probe, and their cached sentence vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.data.corpora import Conversation
from models.labels import RATIONALE_ORDER
from models.model.encoder import load_tokenizer
from models.probes.scorers import Dialogue, Levels
from research.micromodels.model import Micromodels, in_sentences
from research.sentence_vectors import CACHE, SentenceEncoder


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
