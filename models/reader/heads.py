"""The reader's heads that a bundle shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from models.labels import CLIENT, COUNSELLOR, NO_YES, ROLE_NAMES


@dataclass(frozen=True)
class ShownHead:
    """A binary head of a bundle, read from the reader's output `source`."""

    name: str
    source: str
    role: int
    dimension: Literal["expressed", "client"]
    title: str
    evidence: tuple[str, ...] = ()

    def entry(self, calibration: Mapping[str, Any]) -> dict[str, Any]:
        """The head's entry in the manifest, with its slope and intercept of calibration."""
        slope, intercept = calibration.get(self.name, (1.0, 0.0))
        return {
            "name": self.name,
            "dimension": self.dimension,
            "kind": "binary",
            "roles": [ROLE_NAMES[self.role]],
            "labels": list(NO_YES),
            "words": {"title": self.title, "badge": "", "labels": {}},
            "evidence": list(self.evidence),
            "temperature": round(1.0 / slope, 6),
            "bias": [0.0, round(intercept, 6)],
            "offsets": [],
            "label_thresholds": {},
            "abstain_below": 0.0,
            "rationale": None,
        }


SHOWN = (
    ShownHead("answer", "answer", COUNSELLOR, "expressed", "Answer fits", ("yes",)),
    ShownHead("lapse", "lapse", COUNSELLOR, "expressed", "Lapse", ("yes",)),
    ShownHead("crisis_language", "crisis", CLIENT, "client", "Crisis language"),
    ShownHead(
        "opportunity", "emotional_opportunity", CLIENT, "client", "Calls for empathy", ("yes",)
    ),
)
