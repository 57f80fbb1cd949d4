"""Groups of perceived heads that are shown as one value, and its agreement with ratings.

Perceived heads are trained on listeners' ratings. Showing two heads that held-out ratings do not
distinguish would present one measurement as two. The groups come with the bundle, written by
``python -m models.evaluate.multitrait --bundle FOLDER``; scores keep every head.
"""

from typing import Annotated

from msgspec import Meta, Struct

Correlation = Annotated[float, Meta(ge=-1, le=1)]
Words = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1)]


class Validity(Struct, frozen=True, forbid_unknown_fields=True):
    """Held-out rank correlation of a value with a rating that its heads learn from.

    ``rating``: corpus and rating; ``words``: the rating as a phrase in a sentence. ``low``,
    ``high``: 95 % interval. ``n`` ratings of ``sessions`` sessions.
    """

    rating: Words
    words: Words
    r: Correlation
    low: Correlation
    high: Correlation
    n: Count
    sessions: Count


class PerceivedGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """Heads that are shown as one value: that of ``shown``, one of the ``members``.

    ``validity``: of that value; the first one is shown if there is room for only one.
    """

    name: Words
    members: Annotated[list[str], Meta(min_length=1)]
    shown: str
    validity: list[Validity]


class PerceivedValues(Struct, frozen=True, forbid_unknown_fields=True):
    """All groups of a bundle, and the method that determined them."""

    protocol: str
    groups: list[PerceivedGroup]
