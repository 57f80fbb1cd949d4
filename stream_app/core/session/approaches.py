"""Default approach of sessions by team or domain."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from stream_app.contracts.events import Approach, Domain

DOMAIN: Final = "domain:"
TEAM: Final = "team:"


class Approaches(Struct, frozen=True):
    """Approaches by team and by domain; the team's takes precedence."""

    by_team: dict[str, str] = field(default_factory=dict)
    by_domain: dict[str, str] = field(default_factory=dict)

    def of(self, domain: str | None, team: str | None) -> str | None:
        """The approach of sessions of this domain and team, or None.

        >>> given = Approaches({"night": "a"}, {"counselling": "b"})
        >>> given.of("counselling", "night"), given.of("counselling", "day"), given.of(None, None)
        ('a', 'b', None)
        """
        found = self.by_team.get(team) if team is not None else None
        if found is None and domain is not None:
            found = self.by_domain.get(domain)
        return found


def parse_approaches(given: Mapping[str, Approach]) -> Approaches:
    """Sort approaches by their keys, ``domain:NAME`` and ``team:NAME``.

    Raises:
        ValueError: another key, or an unknown domain.

    >>> parse_approaches({"team:night": Approach.MOTIVATIONAL_INTERVIEWING}).by_team
    {'night': 'motivational-interviewing'}
    """
    by_team: dict[str, str] = {}
    by_domain: dict[str, str] = {}
    domains = [domain.value for domain in Domain]
    for key, approach in given.items():
        if key.startswith(TEAM) and key != TEAM:
            by_team[key.removeprefix(TEAM)] = approach.value
        elif key.startswith(DOMAIN) and key.removeprefix(DOMAIN) in domains:
            by_domain[key.removeprefix(DOMAIN)] = approach.value
        else:
            known = f"team:NAME, or domain: with one of {', '.join(domains)}"
            raise ValueError(f"unknown key `{key}`; keys are {known}")
    return Approaches(by_team, by_domain)
