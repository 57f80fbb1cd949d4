"""Natural language inference: zero-shot empathy and client-therapist agreement (sections 4.3, 4.4).

Any sequence classifier with an entailment label can be loaded from a folder or hub name. None is at
hand without a model hub, so a stand-in is trained on SNLI: a logistic regression on the frozen
vectors u, v, |u - v| and uv of premise and hypothesis (Conneau et al. 2017, section 3.1). The
figures here are the stand-in's; the paper used BART-large trained on MultiNLI.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from models.data.corpora import Corpus, read_rows
from research.low_resource.exchanges import Exchange
from research.sentence_vectors import SentenceEncoder

SNLI = Corpus(
    "snli",
    "SNLI (Bowman et al. 2015)",
    ("snli_dev.jsonl.gz", "snli_test.jsonl.gz"),
    "https://nlp.stanford.edu/projects/snli/",
    "CC BY-SA 4.0",
)
ENTAILMENT = "entailment"
ALONE = "This text is empathetic."
TOGETHER = "The Therapist is empathetic towards the Client."
AT_ONCE = 16

Flags = NDArray[np.bool_]


class Inference(Protocol):
    """Whether premises entail hypotheses."""

    def entails(self, premises: Sequence[str], hypotheses: Sequence[str]) -> Flags:
        """True where entailment is the most probable label, [n]."""


class FrozenInference:
    """The stand-in, trained on (premise, hypothesis, label) rows."""

    def __init__(self, rows: Sequence[tuple[str, str, str]], encode: SentenceEncoder) -> None:
        self.encode = encode
        premises, hypotheses, labels = zip(*rows, strict=True)
        features = self._features(premises, hypotheses)
        self.regression = LogisticRegression(C=10.0, max_iter=1000).fit(features, labels)

    def _features(self, premises: Sequence[str], hypotheses: Sequence[str]) -> NDArray[Any]:
        u, v = self.encode(premises), self.encode(hypotheses)
        scale = u.shape[1] ** 0.5
        return np.concatenate([u, v, scale * np.abs(u - v), scale * u * v], axis=1)

    def labels(self, premises: Sequence[str], hypotheses: Sequence[str]) -> NDArray[np.str_]:
        """The most probable label of each pair, [n]."""
        found: NDArray[np.str_] = self.regression.predict(self._features(premises, hypotheses))
        return found

    def entails(self, premises: Sequence[str], hypotheses: Sequence[str]) -> Flags:
        """As `Inference`."""
        return np.asarray(self.labels(premises, hypotheses) == ENTAILMENT)


class PretrainedInference:
    """A sequence classifier from a local folder or by hub name.

    Raises ValueError if none of its labels is named entailment.
    """

    def __init__(self, name: str) -> None:
        self.model = AutoModelForSequenceClassification.from_pretrained(name).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        names = {int(i): str(label).lower() for i, label in self.model.config.id2label.items()}
        found = [i for i, label in names.items() if label == ENTAILMENT]
        if not found:
            message = f"{name} has no label {ENTAILMENT!r}: its labels are {sorted(names.values())}"
            raise ValueError(message)
        self.entailment = found[0]

    @torch.inference_mode()
    def entails(self, premises: Sequence[str], hypotheses: Sequence[str]) -> Flags:
        """As `Inference`; long premises are cut first."""
        found: list[bool] = []
        for start in range(0, len(premises), AT_ONCE):
            batch = self.tokenizer(
                list(premises[start : start + AT_ONCE]),
                list(hypotheses[start : start + AT_ONCE]),
                truncation=True,
                max_length=min(512, self.model.config.max_position_embeddings),
                padding=True,
                return_tensors="pt",
            )
            chosen = self.model(**batch).logits.argmax(-1)
            found += (chosen == self.entailment).tolist()
        return np.array(found, bool)


def snli(data_dir: Path, file: int, most: int) -> list[tuple[str, str, str]]:
    """The first rows of SNLI's development (0) or test file (1)."""
    rows = read_rows(SNLI, SNLI.files[file], data_dir)
    found = [(row["premise"], row["hypothesis"], row["label"]) for row in rows]
    return found[:most]


def zero_shot(inference: Inference, exchanges: Sequence[Exchange]) -> dict[str, Flags]:
    """Predictions [n] of the four baselines: nli_E (1) and (2), nli_A in both directions."""
    before = [exchange.before for exchange in exchanges]
    answers = [exchange.answer for exchange in exchanges]
    both = [f"Client: {b} | Therapist: {a}" for b, a in zip(before, answers, strict=True)]
    return {
        "nli (1)": inference.entails(answers, [ALONE] * len(answers)),
        "nli (2)": inference.entails(both, [TOGETHER] * len(both)),
        "agreement, client to therapist": inference.entails(before, answers),
        "agreement, therapist to client": inference.entails(answers, before),
    }
