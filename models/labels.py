"""The classification heads and their labels: one table that data, training and export share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CLIENT, COUNSELLOR = 0, 1
ROLE_NAMES = ("client", "counsellor")

LEVELS = ("none", "weak", "strong")
"""Levels 0, 1 and 2 of an EPITOME mechanism (Sharma et al. 2020, section 3)."""

RATIONALE_ORDER = ("emotional_reactions", "interpretations", "explorations")
"""Last axis of the encoder's rationale logits."""


@dataclass(frozen=True)
class HeadSpec:
    """One classification head.

    `kind` is "level" for ordered levels 0, 1, 2 and "categorical" otherwise; `role` is the
    speaker whose turns the head scores; `corpus` names what it is learned from; `weight`
    multiplies its loss.
    """

    name: str
    labels: tuple[str, ...]
    role: int
    corpus: str
    kind: Literal["level", "categorical"] = "categorical"
    weight: float = 1.0

    @property
    def dimension(self) -> Literal["expressed", "client"]:
        """What the head measures: empathy expressed by the counsellor, or the client's talk."""
        return "expressed" if self.role == COUNSELLOR else "client"

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

HEADS: tuple[HeadSpec, ...] = (
    *(HeadSpec(name, LEVELS, COUNSELLOR, "epitome", "level") for name in RATIONALE_ORDER),
    HeadSpec("strategy", STRATEGIES, COUNSELLOR, "esconv"),
    HeadSpec(
        "behaviour",
        ("question", "reflection", "therapist_input", "other"),
        COUNSELLOR,
        "annomi",
        weight=0.5,
    ),
    HeadSpec("question", ("none", "closed", "open"), COUNSELLOR, "annomi", weight=0.5),
    HeadSpec("reflection", ("none", "simple", "complex"), COUNSELLOR, "annomi", weight=0.5),
    HeadSpec(
        "input",
        ("none", "information", "advice", "options", "negotiation"),
        COUNSELLOR,
        "annomi",
        weight=0.5,
    ),
    HeadSpec("talk_type", ("change", "neutral", "sustain"), CLIENT, "annomi", weight=0.5),
)

HEADS_BY_NAME = {head.name: head for head in HEADS}
