"""The report on a sample that at least two people have rated blind."""

from dataclasses import dataclass
from itertools import combinations
from string import ascii_uppercase
from typing import Annotated, Final

from pydantic import Field

from stream_app.contracts.scores import MECHANISMS
from stream_app.core.heads import LEVELS
from stream_app.store import samples
from stream_app.store.judged import NotNow
from stream_app.store.people import Person, PersonRole
from stream_app.store.repository import Store
from stream_app.store.samples import Sample, Work
from stream_app.web.agreement import Kappa, Sides, Table, kappa, table

MIN_RATERS: Final = 2
MAX_DIFFERENCES: Final = 10
MODEL: Final = "model"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two raters, or a rater and the model, on one head."""

    head: str
    sides: Sides
    one: Annotated[str, Field(description="Rows of `counts`")]
    other: Annotated[str, Field(description="Columns of `counts`")]
    kappa: Kappa
    counts: Annotated[Table, Field(description="Turns by what the one and the other said")]


@dataclass(frozen=True, slots=True)
class Difference:
    """A turn on which people differ; ``apart``: levels between the furthest two, over heads."""

    place: int
    apart: int
    values: Annotated[
        dict[str, dict[str, int]], Field(description="By rater (and `model`), then by head")
    ]


@dataclass(frozen=True, slots=True)
class Report:
    """``raters``: letters instead of names; ``you``: the reader's own, if they rated."""

    raters: list[str]
    you: str | None
    comparisons: list[Comparison]
    differences: list[Difference]


def may_read_report(done: Work, person: Person) -> bool:
    """Whether the report would spoil nothing: two have finished, and the reader is one of them.

    Analysts never rate, and read it as soon as there is one.
    """
    if len(done.finished) < MIN_RATERS:
        return False
    return person.role is PersonRole.ANALYST or person.name in done.finished


def report(store: Store, person: Person, sample: Sample) -> Report:
    """The report.

    Raises:
        NotNow: fewer than two have rated every turn, or the reader has yet to.
    """
    done = samples.work(store, sample)
    if not may_read_report(done, person):
        raise NotNow(
            "the report opens when at least two people have rated every turn, "
            "and for a rater when the own ratings are complete"
        )
    # by the alphabet, whoever knows the names of the raters would know who is who
    shuffled = sorted(
        done.finished, key=lambda name: store.privacy.pseudonym(f"{sample.sample_id} {name}")
    )
    letters = {name: _letter(i) for i, name in enumerate(shuffled)}
    said = {letters[name]: done.values[name] for name in shuffled}
    model = samples.said_by_model(store, sample)
    comparisons = []
    for head in MECHANISMS:
        for one, other in combinations(said, 2):
            comparisons.append(_compare(head, Sides.PEOPLE_PEOPLE, one, other, said))
        for one, values in said.items():
            both = {one: values, MODEL: model}
            comparisons.append(_compare(head, Sides.PEOPLE_MODEL, one, MODEL, both))
    return Report(list(said), letters.get(person.name), comparisons, _differences(said, model))


Said = dict[str, dict[int, dict[str, int]]]


def _compare(head: str, sides: Sides, one: str, other: str, said: Said) -> Comparison:
    pairs = [
        (values[head], said[other][place][head])
        for place, values in sorted(said[one].items())
        if head in values and head in said[other].get(place, {})
    ]
    counts = table(pairs, len(LEVELS))
    return Comparison(head, sides, one, other, kappa(counts), counts)


def _differences(said: Said, model: dict[int, dict[str, int]]) -> list[Difference]:
    found = []
    for place in sorted({place for values in said.values() for place in values}):
        values = {rater: said[rater][place] for rater in said if place in said[rater]}
        apart = 0
        for head in MECHANISMS:
            levels = [by_head[head] for by_head in values.values() if head in by_head]
            apart += max(levels, default=0) - min(levels, default=0)
        if apart:
            found.append(Difference(place, apart, {**values, MODEL: model.get(place, {})}))
    return sorted(found, key=lambda each: (-each.apart, each.place))[:MAX_DIFFERENCES]


def _letter(number: int) -> str:
    """A, B, C and so on; after Z come A1, B1, C1."""
    turn, letter = divmod(number, len(ascii_uppercase))
    return ascii_uppercase[letter] + (str(turn) if turn else "")
