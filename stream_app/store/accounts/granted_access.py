"""Which access a group of the identity provider grants: role, and team of supervisors."""

from typing import Final

import msgspec
from msgspec import Struct

from stream_app.store.accounts.roles import PersonRole

OF_TEAMS: Final = (PersonRole.SUPERVISOR, PersonRole.STUDY)


class GrantedAccess(Struct, frozen=True, forbid_unknown_fields=True):
    """The access of a group's members."""

    role: PersonRole
    team: str | None = None
    all_teams: bool = False

    def __post_init__(self) -> None:
        """Check that it is clear what members may read.

        Raises:
            ValueError: it is not.
        """
        if self.role is PersonRole.INGEST:
            raise ValueError("programs (role ingest) send with tokens")
        if self.all_teams and (self.role not in OF_TEAMS or self.team is not None):
            raise ValueError("all_teams is for supervisors and studies without a team")


AccessByGroup = dict[str, GrantedAccess]


def parse_access(text: str) -> AccessByGroup:
    """Parse a JSON object ``{"group": {"role": …, "team": …, "all_teams": …}}``.

    >>> parse_access('{"leads": {"role": "supervisor", "team": "north"}}')["leads"].team
    'north'

    Raises:
        ValueError: it is not valid.
    """
    if not text:
        return {}
    try:
        return msgspec.json.decode(text, type=AccessByGroup)
    except msgspec.DecodeError as problem:
        raise ValueError(str(problem)) from None
