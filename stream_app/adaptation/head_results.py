"""Results for one head: its cross-validation, and its fit on all judgements."""

from dataclasses import dataclass, replace
from typing import Any, Final, Generic

import numpy as np

from stream_app.adaptation.choosing import MIN_RATINGS, Fitted, Method, ModelT, learn
from stream_app.adaptation.crossvalidation import MIN_COUNSELLORS, Validation, validate
from stream_app.adaptation.fitting import HeadData
from stream_app.adaptation.thresholds import fit_abstention

MIN_RATERS: Final = 2
"""Fewest raters: from one alone the bundle would learn that person."""


@dataclass(frozen=True, slots=True)
class HeadResult(Generic[ModelT]):
    """A head's cross-validation, and its fit on all judgements; both None if there are too few.

    ``problem`` says why there is no cross-validation.
    """

    head: str
    ratings: int
    disputes: int
    counsellors: int
    problem: str | None = None
    validation: Validation | None = None
    fitted: Fitted[ModelT] | None = None
    abstain_below: float | None = None

    @property
    def passes(self) -> bool:
        """Whether the gate lets the head into the new bundle."""
        learnt = self.fitted is not None and self.fitted.choice.candidate is not None
        return learnt and self.validation is not None and self.validation.passes

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        if self.problem is not None:
            return self.problem
        if self.passes or self.validation is None:
            return "adapted"
        missing = self.validation.missing
        more = "" if missing is None else f"; about {missing} more ratings may tell"
        if self.validation.gains and not self.validation.agrees:
            return f"as shipped: people and bundle agree no more than by chance{more}"
        return f"as shipped: no certain gain{more}"


def evaluated(
    data: HeadData, method: Method[Any, ModelT], raters: int = MIN_RATERS
) -> HeadResult[ModelT]:
    """Cross-validate and fit one head; ``raters``: how many people judged."""
    rated = data.rows(~data.disputed)
    counsellors = len(np.unique(rated.group))
    result: HeadResult[ModelT] = HeadResult(
        data.head, len(rated), len(data) - len(rated), counsellors
    )
    if len(rated) < MIN_RATINGS:
        return replace(result, problem=_too_few(MIN_RATINGS, len(rated), "ratings"))
    if counsellors < MIN_COUNSELLORS:
        return replace(result, problem=_too_few(MIN_COUNSELLORS, counsellors, "counsellors"))
    if raters < MIN_RATERS:
        return replace(result, problem=_too_few(MIN_RATERS, raters, "raters"))
    validation = validate(data, method)
    right = validation.labels == rated.target.argmax(axis=-1)
    return replace(
        result,
        validation=validation,
        fitted=learn(data, method),
        abstain_below=fit_abstention(validation.predicted.max(axis=-1), right),
    )


def _too_few(least: int, known: int, what: str) -> str:
    return f"as shipped: fewer than {least} {what}, {least - known} missing"
