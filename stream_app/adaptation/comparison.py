"""Results of an adaptation, head by head, with the gate: as a table and as a record."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stream_app.adaptation.estimates import Estimate
from stream_app.adaptation.fitting import Fit
from stream_app.adaptation.head_results import HeadResult
from stream_app.adaptation.outcome_risks import OutcomeDefinition
from stream_app.adaptation.references import ReferenceFit


@dataclass(frozen=True, slots=True)
class OutcomeResult:
    """An outcome risk's cross-validation; ``definition``: what its event is here."""

    definition: OutcomeDefinition
    result: HeadResult[Fit]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that was fitted."""

    heads: Sequence[HeadResult[Any]]
    references: Sequence[ReferenceFit]
    outcomes: Sequence[OutcomeResult]

    @property
    def passes(self) -> bool:
        """Whether anything passes the gate."""
        return (
            any(one.passes for one in self.heads)
            or any(one.passes for one in self.references)
            or any(one.result.passes for one in self.outcomes)
        )

    def markdown(self) -> str:
        """Tables of the heads, the references and the outcome risks, as far as there are any."""
        parts = []
        if self.heads:
            parts.append(_table(_HEADER, [_row(one.head, one) for one in self.heads]))
        if self.references:
            header = ["reference", "sessions", "counsellors", "pinball loss difference", "result"]
            rows = [
                [
                    one.domain,
                    str(one.sessions),
                    str(one.counsellors),
                    one.difference.words,
                    "adapted" if one.passes else "as shipped: no certain gain",
                ]
                for one in self.references
            ]
            parts.append(_table(header, rows))
        if self.outcomes:
            header = ["outcome risk", *_HEADER[1:]]
            rows = [_row(one.definition.words, one.result) for one in self.outcomes]
            parts.append(_table(header, rows))
        return "\n\n".join(parts) or "There are no judgements to adapt to."

    def record(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "heads": {one.head: _record(one) for one in self.heads},
            "references": {
                one.domain: {
                    "sessions": one.sessions,
                    "counsellors": one.counsellors,
                    "prior_sessions": one.strength,
                    "pinball_difference": _numbers(one.difference),
                    "passes": one.passes,
                }
                for one in self.references
            },
            "outcomes": {one.definition.words: _record(one.result) for one in self.outcomes},
        }


_HEADER = [
    "head",
    "ratings",
    "disputes",
    "counsellors",
    "log loss before",
    "after",
    "difference",
    "kappa before",
    "after",
    "difference",
    "fitted on all",
    "result",
]


def _row(name: str, one: HeadResult[Any]) -> list[str]:
    counts = [name, str(one.ratings), str(one.disputes), str(one.counsellors)]
    if one.validation is None or one.fitted is None:
        return [*counts, *["–"] * 7, one.verdict]
    found = one.validation
    return [
        *counts,
        *(f"{value:.3f}" for value in found.log_loss),
        found.log_loss_difference.words,
        *(f"{value:.3f}" for value in found.kappa),
        found.kappa_difference.words,
        one.fitted.choice.words,
        one.verdict,
    ]


def _record(one: HeadResult[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ratings": one.ratings,
        "disputes": one.disputes,
        "counsellors": one.counsellors,
        "passes": one.passes,
        "result": one.verdict,
    }
    if one.validation is not None and one.fitted is not None:
        validation = one.validation
        found |= {
            "blind": validation.blind,
            "log_loss": [round(value, 4) for value in validation.log_loss],
            "log_loss_difference": _numbers(validation.log_loss_difference),
            "kappa": [round(value, 4) for value in validation.kappa],
            "kappa_difference": _numbers(validation.kappa_difference),
            "kappa_after": _numbers(validation.agreement),
            "rank_correlation": _numbers(validation.rank),
            "ratings_missing": validation.missing,
            "chosen_by_fold": list(validation.choices),
            "chosen": one.fitted.choice.words,
        }
    return found


def _numbers(found: Estimate) -> list[float | None]:
    """Value and interval; None instead of NaN, which JSON lacks."""
    return [None if value != value else round(value, 4) for value in found]  # noqa: PLR0124


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(header), ["---"] + ["---:"] * (len(header) - 2) + ["---"], *map(list, rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
