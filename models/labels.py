"""The classification heads and their labels, shared by data, training and export."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.heads import (
    LEVELS,
    PERCEIVED,
    SATISFACTION,
    STRATEGY,
    TALK,
    HeadWords,
)

CLIENT, COUNSELLOR = 0, 1
ROLE_NAMES = ("client", "counsellor")

RATIONALE_ORDER = MECHANISMS
"""Last axis of the encoder's rationale logits."""


TEMPERED = ("emotional_reactions", "explorations")
"""Combined with a context-free reading, which improves them; interpretations do not gain."""


@dataclass(frozen=True)
class HeadSpec:
    """One classification head.

    `kind` is "level" for ordered levels 0, 1, 2, "binary" for no and yes, else "categorical";
    `role` is the speaker whose turns the head scores; `dimension` is empathy as the counsellor
    expresses it, empathy as the client perceives it, the client's own talk, or how the session may
    end; `tempered` heads are combined with a context-free reading (`models.model.heads`); `corpus`
    names the training data; `weight` multiplies the loss; `words` are the display words; `evidence`
    names the labels that a session keeps for rules and outcome models.
    """

    name: str
    labels: tuple[str, ...]
    role: int
    corpus: str
    kind: Literal["level", "categorical", "binary"] = "categorical"
    weight: float = 1.0
    dimension: Literal["expressed", "perceived", "client", "outcome"] = "expressed"
    tempered: bool = False
    words: HeadWords = field(default_factory=HeadWords)
    evidence: tuple[str, ...] = ()

    @property
    def rationale_index(self) -> int | None:
        """Position on the rationale axis, or None for a head without rationales."""
        return RATIONALE_ORDER.index(self.name) if self.name in RATIONALE_ORDER else None


STRATEGIES = (
    "question",
    "restatement_or_paraphrasing",
    "reflection_of_feelings",
    "self_disclosure",
    "affirmation_and_reassurance",
    "providing_suggestions",
    "information",
    "others",
)

EMPATHIC_INTENTS = (
    "acknowledging",
    "agreeing",
    "consoling",
    "encouraging",
    "questioning",
    "suggesting",
    "sympathizing",
    "wishing",
    "neutral",
)
"""Response intents of Welivita & Pu (2020) on EmpatheticDialogues, and neutral."""

NO_YES = ("no", "yes")

RATED = "empathy"
"""Perceived empathy as third parties rated it (EmpatheticExchanges)."""

OUTCOME_HEADS = (*PERCEIVED, SATISFACTION)
"""Fitted after the other heads, on listeners' ratings of sessions (`models/fit/perceived.py`)."""

HEADS: tuple[HeadSpec, ...] = (
    *(
        HeadSpec(name, LEVELS, COUNSELLOR, "epitome", "level", tempered=name in TEMPERED)
        for name in RATIONALE_ORDER
    ),
    HeadSpec(STRATEGY, STRATEGIES, COUNSELLOR, "esconv", evidence=STRATEGIES),
    HeadSpec(
        "behaviour",
        ("question", "reflection", "therapist_input", "other"),
        COUNSELLOR,
        "annomi",
        weight=0.5,
    ),
    HeadSpec(
        "question",
        ("none", "closed", "open"),
        COUNSELLOR,
        "annomi",
        weight=0.5,
        evidence=("closed", "open"),
    ),
    HeadSpec(
        "reflection",
        ("none", "simple", "complex"),
        COUNSELLOR,
        "annomi",
        weight=0.5,
        evidence=("simple", "complex"),
    ),
    HeadSpec(
        "input",
        ("none", "information", "advice", "options", "negotiation"),
        COUNSELLOR,
        "annomi",
        weight=0.5,
        evidence=("information", "advice"),
    ),
    HeadSpec(
        TALK,
        ("change", "neutral", "sustain"),
        CLIENT,
        "annomi",
        weight=0.5,
        dimension="client",
    ),
    HeadSpec(
        "empathic_intent",
        EMPATHIC_INTENTS,
        COUNSELLOR,
        "empathetic_intents",
        weight=0.5,
        words=HeadWords("intent"),
    ),
    HeadSpec(
        RATED,
        NO_YES,
        COUNSELLOR,
        "empathetic_exchanges",
        "binary",
        dimension="perceived",
        words=HeadWords("Empathy"),
    ),
    *(
        HeadSpec(name, NO_YES, COUNSELLOR, "outcomes", "binary", dimension="perceived")
        for name in PERCEIVED
    ),
    HeadSpec(SATISFACTION, NO_YES, CLIENT, "outcomes", "binary", dimension="outcome"),
)

HEADS_BY_NAME = {head.name: head for head in HEADS}
