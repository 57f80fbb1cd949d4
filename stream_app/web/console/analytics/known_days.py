"""The marked days of an installation, as pages need them: a wrong file stops no page."""

from collections.abc import Collection
from dataclasses import dataclass, field

from stream_app.analytics.questions import marked_days
from stream_app.analytics.questions.marked_days import MarkedDay, MarkedDaysError
from stream_app.settings import Settings


@dataclass(frozen=True, slots=True)
class KnownDays:
    """``problem``: why trainings and releases are not marked; empty if they are."""

    days: list[MarkedDay] = field(default_factory=list)
    problem: str = ""


def read(settings: Settings, team: str | None) -> KnownDays:
    """The days that concern a team, or all."""
    try:
        return KnownDays(marked_days.read(settings.marked_days, team))
    except MarkedDaysError as problem:
        return KnownDays(problem=str(problem))


def read_of_teams(settings: Settings, teams: Collection[str]) -> KnownDays:
    """The days that concern one of these teams, or all teams."""
    known = read(settings, None)
    return KnownDays([each for each in known.days if each.team in ("", *teams)], known.problem)
