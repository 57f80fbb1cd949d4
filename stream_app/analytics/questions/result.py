"""The result of every analysis: estimates and curves, each with n, interval and bundle."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from stream_app.analytics.questions.suppression import (
    MIN_CLIENTS,
    MIN_COUNSELLORS,
    CellSize,
    suppressed_cells,
)

ALL = "all"
SMALL = f"hidden: fewer than {MIN_CLIENTS} clients or {MIN_COUNSELLORS} counsellors"


@dataclass(frozen=True, slots=True)
class Estimate:
    """One figure. ``problem`` says why there is none, or what limits it."""

    name: Annotated[str, Field(description="What is estimated")]
    measure: Annotated[str, Field(description="Of which measure, outcome, rule or head")]
    group: Annotated[str, Field(description="Cohort, level or subgroup; `all`: everyone")]
    unit: str
    value: float | None
    low: Annotated[float | None, Field(description="Lower end of the 95 % interval")]
    high: Annotated[float | None, Field(description="Upper end of the 95 % interval")]
    n: Annotated[int | None, Field(description="Observations; null: hidden")]
    counsellors: Annotated[int | None, Field(description="Counsellors (clusters); null: hidden")]
    bundle: Annotated[str, Field(description="Models that scored; several are adjusted for")]
    p: Annotated[float | None, Field(description="Two-sided p-value")] = None
    p_adjusted: Annotated[float | None, Field(description="Holm-adjusted within its table")] = None
    problem: str | None = None
    error: Annotated[
        float | None, Field(description="Standard error; null for ratios and bootstrapped figures")
    ] = None

    def checked(self, size: CellSize) -> "Estimate":
        """Hidden if it is about too few people."""
        if not size.too_small:
            return self
        return Estimate(
            *(self.name, self.measure, self.group, self.unit),
            *(None, None, None, None, None),
            self.bundle,
            problem=SMALL,
        )


@dataclass(frozen=True, slots=True)
class Point:
    """A value at a place of the horizontal axis; without one where too few people are behind it."""

    x: Annotated[float, Field(description="Position: months, or days since 1970-01-01")]
    label: str
    value: float | None
    low: float | None
    high: float | None
    n: int | None


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of one group under one bundle: lines never join two models."""

    title: str
    measure: str
    group: str
    bundle: str
    axis: str
    unit: str
    points: list[Point]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The answer to one question. Associations: none of it shows a cause."""

    question: str
    title: str
    about: Annotated[str, Field(description="How to read it")]
    method: str
    source: Annotated[str, Field(description="Paper and section that the method follows")]
    since: str
    until: str
    sessions: int | None
    counsellors: int | None
    bundles: list[str]
    agreement: Annotated[
        list[str], Field(description="Latest agreement of people and model, by bundle and head")
    ]
    estimates: list[Estimate] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: Annotated[
        list[str], Field(description="What a reader of the figures should look at first")
    ] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Texts:
    """The context of an analysis: its fields that are not figures; see ``Analysis``."""

    title: str
    about: str
    method: str
    source: str


@dataclass(frozen=True, slots=True)
class Context:
    """Context of an analysis: the chosen dates and the agreement."""

    since: str = ""
    until: str = ""
    agreement: tuple[str, ...] = ()


def hidden_groups(sizes: Mapping[str, CellSize], total: CellSize) -> set[str]:
    """Groups to hide in a list that is shown with its total.

    >>> sizes = {"a": CellSize(5, 2), "b": CellSize(30, 9), "c": CellSize(20, 8)}
    >>> sorted(hidden_groups(sizes, CellSize(50, 15)))
    ['a', 'c']
    """
    names = [*sorted(sizes), ALL]
    cells = {
        (row, column): {**sizes, ALL: total}[name]
        for row, name in enumerate(names)
        for column in range(2)
    }
    return {names[row] for row, _ in suppressed_cells(cells)}
