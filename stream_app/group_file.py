"""Reads the file of what holds by team, domain, channel and group of the identity provider.

Format: ``docs/security.md``, Groups. Every error names the file, the key and what it may be.
"""

from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from stream_app.contracts.events import Approach
from stream_app.core.rules import yaml_file
from stream_app.core.session.approaches import parse_approaches
from stream_app.core.session.restrictions import parse_restrictions
from stream_app.store.accounts.roles import PersonRole

OF_TEAMS: Final = (PersonRole.SUPERVISOR, PersonRole.STUDY)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class GrantedAccess(_Part):
    """The access of a group's members: role, and team of supervisors."""

    role: PersonRole
    team: str | None = None
    all_teams: bool = False

    @model_validator(mode="after")
    def _says_what_members_may_read(self) -> Self:
        if self.role is PersonRole.INGEST:
            raise ValueError("programs (role ingest) send with tokens: name another role")
        if self.all_teams and (self.role not in OF_TEAMS or self.team is not None):
            raise ValueError("all_teams is for supervisors and studies without a team: remove it")
        return self


class SingleSignOn(_Part):
    """Settings of OpenID Connect: the claims that are read, and the access that groups give."""

    scope: str = "openid profile"
    name_claim: str = "preferred_username"
    speaker_claim: str | None = None
    access_claim: str = "groups"
    access: dict[str, GrantedAccess] = Field(default_factory=dict)
    create_accounts: bool = False

    @model_validator(mode="after")
    def _new_accounts_have_access(self) -> Self:
        if self.create_accounts and not self.access:
            raise ValueError("create_accounts needs access: say which group gives which role")
        return self


class GroupFile(_Part):
    """The content of the file."""

    approaches: dict[str, Approach] = Field(default_factory=dict)
    restricted_outputs: dict[str, list[Literal["client", "perceived"]]] = Field(
        default_factory=dict
    )
    single_sign_on: SingleSignOn = SingleSignOn()

    @field_validator("approaches")
    @classmethod
    def _of_teams_and_domains(cls, given: dict[str, Approach]) -> dict[str, Approach]:
        parse_approaches(given)
        return given

    @field_validator("restricted_outputs")
    @classmethod
    def _of_known_kinds(cls, given: dict[str, list[str]]) -> dict[str, list[str]]:
        parse_restrictions(given)
        return given


@cache
def load(file: Path | None) -> GroupFile:
    """The file's content; once read, a process keeps it. None: nothing holds.

    Raises:
        ValueError: the file cannot be read, or it is not valid; one sentence per error.
    """
    if file is None:
        return GroupFile()
    try:
        body = yaml_file.load(file.read_bytes())
        return GroupFile.model_validate({} if body is None else body)
    except OSError as problem:
        raise ValueError(f"{file} cannot be read: {problem.strerror}") from None
    except yaml_file.Fault as fault:
        raise ValueError(f"{file}: line {fault.line}: {fault.what}") from None
    except ValidationError as problem:
        faults = "; ".join(_sentence(error) for error in problem.errors())
        raise ValueError(f"{file}: {faults}") from None


def _sentence(error: Any) -> str:
    *above, key = error["loc"] or ("the file",)
    place = ".".join(str(part) for part in (*above, key) if part != "[key]")
    if error["type"] == "extra_forbidden":
        return f"`{place}` is unknown: remove it, or look for its name in docs/security.md#groups"
    return f"`{place}`: {error['msg'].removeprefix('Value error, ')}"
