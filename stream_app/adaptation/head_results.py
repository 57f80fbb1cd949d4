"""What was found for one head: its cross-validation, and its fit on all judgements."""

from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np

from stream_app.adaptation.choosing import MIN_RATINGS, Fitted, Method, ModelT, learn
from stream_app.adaptation.crossvalidation import MIN_COUNSELLORS, Validation, validate
from stream_app.adaptation.fitting import HeadData
from stream_app.adaptation.thresholds import fit_abstention


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
        """In words."""
        if self.problem is not None:
            return self.problem
        return "adapted" if self.passes else "as shipped: no certain gain"


def evaluated(data: HeadData, method: Method[Any, ModelT]) -> HeadResult[ModelT]:
    """Cross-validate and fit one head."""
    rated = data.rows(~data.disputed)
    counsellors = len(np.unique(rated.group))
    result: HeadResult[ModelT] = HeadResult(
        data.head, len(rated), len(data) - len(rated), counsellors
    )
    if len(rated) < MIN_RATINGS:
        return replace(result, problem=f"as shipped: fewer than {MIN_RATINGS} ratings")
    if counsellors < MIN_COUNSELLORS:
        return replace(result, problem=f"as shipped: fewer than {MIN_COUNSELLORS} counsellors")
    validation = validate(data, method)
    right = validation.labels == rated.target.argmax(axis=-1)
    return replace(
        result,
        validation=validation,
        fitted=learn(data, method),
        abstain_below=fit_abstention(validation.predicted.max(axis=-1), right),
    )
