"""The report on a calibration sample that at least two people have rated blind."""

from dataclasses import dataclass
from itertools import combinations
from string import ascii_uppercase
from typing import Annotated, Final

from pydantic import Field

from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.heads import LEVELS
from stream_app.findings.agreement import ConfusionMatrix, Kappa, Sides, confusion_matrix, kappa
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions.scored_turns import StateConflict
from stream_app.store.stream.repository import Store
from stream_app.store.work import calibration_samples
from stream_app.store.work.calibration_samples import CalibrationSample, SampleRatings

MIN_RATERS: Final = 2
MAX_DIFFERENCES: Final = 10
MODEL: Final = "model"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Agreement of two raters, or of a rater and the model, on one head."""

    head: str
    sides: Sides
    one: Annotated[str, Field(description="Rows of `counts`")]
    other: Annotated[str, Field(description="Columns of `counts`")]
    kappa: Kappa
    counts: Annotated[ConfusionMatrix, Field(description="Number of turns by label")]


@dataclass(frozen=True, slots=True)
class Difference:
    """A turn on which raters differ; ``apart``: largest difference of levels, summed over heads."""

    place: int
    apart: int
    values: Annotated[
        dict[str, dict[str, int]], Field(description="Levels by rater (and `model`), then by head")
    ]


@dataclass(frozen=True, slots=True)
class Report:
    """Raters are identified by letters; ``you`` is the reader's letter, None if they did not rate.

    ``differences``: the turns on which raters differ most.
    """

    raters: list[str]
    you: str | None
    comparisons: list[Comparison]
    differences: list[Difference]


def may_read_report(done: SampleRatings, person: Person) -> bool:
    """Whether this person may read the report without biasing their own ratings.

    Requires two finished raters. Supervisors must have finished, too; analysts do not rate.
    """
    if len(done.finished) < MIN_RATERS:
        return False
    return person.role is PersonRole.ANALYST or person.name in done.finished


def build_report(store: Store, person: Person, sample: CalibrationSample) -> Report:
    """Compare the raters with each other and with the model.

    Raises:
        StateConflict: fewer than two people have rated every turn, or this person has not.
    """
    done = calibration_samples.collect_ratings(store, sample)
    if not may_read_report(done, person):
        raise StateConflict(
            "the report opens when at least two people have rated every turn; "
            "raters must have completed their own ratings"
        )
    # alphabetical order would reveal the raters to anyone who knows their names
    shuffled = sorted(
        done.finished, key=lambda name: store.privacy.pseudonym(f"{sample.sample_id} {name}")
    )
    letters = {name: _letter(i) for i, name in enumerate(shuffled)}
    values_by_rater = {letters[name]: done.values[name] for name in shuffled}
    model = calibration_samples.model_levels(store, sample)
    comparisons = []
    for head in MECHANISMS:
        for one, other in combinations(values_by_rater, 2):
            comparisons.append(_compare(head, Sides.PEOPLE_PEOPLE, one, other, values_by_rater))
        for one, values in values_by_rater.items():
            both = {one: values, MODEL: model}
            comparisons.append(_compare(head, Sides.PEOPLE_MODEL, one, MODEL, both))
    return Report(
        list(values_by_rater),
        letters.get(person.name),
        comparisons,
        _differences(values_by_rater, model),
    )


Values = dict[str, dict[int, dict[str, int]]]
"""Levels by rater, then by place in the sample, then by head."""


def _compare(head: str, sides: Sides, one: str, other: str, values: Values) -> Comparison:
    pairs = [
        (levels[head], values[other][place][head])
        for place, levels in sorted(values[one].items())
        if head in levels and head in values[other].get(place, {})
    ]
    counts = confusion_matrix(pairs, len(LEVELS))
    return Comparison(head, sides, one, other, kappa(counts), counts)


def _differences(values_by_rater: Values, model: dict[int, dict[str, int]]) -> list[Difference]:
    found = []
    for place in sorted({place for values in values_by_rater.values() for place in values}):
        values = {
            rater: levels[place] for rater, levels in values_by_rater.items() if place in levels
        }
        apart = 0
        for head in MECHANISMS:
            levels = [by_head[head] for by_head in values.values() if head in by_head]
            apart += max(levels, default=0) - min(levels, default=0)
        if apart:
            found.append(Difference(place, apart, {**values, MODEL: model.get(place, {})}))
    return sorted(found, key=lambda each: (-each.apart, each.place))[:MAX_DIFFERENCES]


def _letter(number: int) -> str:
    """A to Z, then A1 to Z1 and so on."""
    turn, letter = divmod(number, len(ascii_uppercase))
    return ascii_uppercase[letter] + (str(turn) if turn else "")
