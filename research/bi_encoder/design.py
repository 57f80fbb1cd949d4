"""Which parts of the bi-encoder a row of EPITOME's Table 5 has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Context = Literal["attention", "joined", "window", "none"]


@dataclass(frozen=True)
class Design:
    """One row.

    `context` is how the seeker post enters: by single-head attention from the response's token
    states, by joining its first state to each of them ("-attention"), in one text with the response
    ("window", a concatenated window), or not at all ("-seeker post"). `rationale_weight` is lambda
    of the rationale loss; 0 trains no extractor ("-rationales"). `multitask` trains one pair of
    encoders for the three mechanisms instead of three pairs. `adapted` starts both encoders from
    the weights of `research.recipe.masked_language` (the paper's domain-adaptive pre-training).
    """

    words: str
    context: Context = "attention"
    rationale_weight: float = 0.5
    multitask: bool = True
    adapted: bool = False

    @property
    def seeker_words(self) -> str:
        """What of the context is read, for tables."""
        return "none" if self.context == "none" else "seeker post"


DESIGNS = {
    "bi_encoder": Design("bi-encoder with attention, one for three mechanisms"),
    "no_attention": Design("-attention: seeker vector joined to each token", "joined"),
    "no_seeker": Design("-seeker post: response alone", "none"),
    "no_rationales": Design("-rationales: levels alone", rationale_weight=0.0),
    "window": Design("one encoder reads seeker post and response together", "window"),
    "independent": Design("three independent bi-encoders, as published", multitask=False),
    "pretrained": Design("with masked-language pre-training on the corpora", adapted=True),
    "lambda_0.1": Design("lambda of the rationales 0.1", rationale_weight=0.1),
    "lambda_0.2": Design("lambda of the rationales 0.2", rationale_weight=0.2),
    "lambda_1": Design("lambda of the rationales 1", rationale_weight=1.0),
}
"""Every row of Table 5 and the range of lambda that the paper searched (Appendix B.2)."""
