"""Alert rules: read, check and try them; versions, and their adoption."""

from typing import Annotated

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from stream_app.core.rules.rule_file import RuleFileError
from stream_app.store.accounts.roles import Right
from stream_app.store.alerts import rule_versions
from stream_app.store.alerts.rule_versions import MAX_REASON, RuleVersion, VersionEntry
from stream_app.web.http.fields import NO_NUL, VersionNumber
from stream_app.web.http.http_errors import as_http_errors
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Admin, RuleReader, needs
from stream_app.work import rule_changes, rule_trials
from stream_app.work.rule_changes import MAX_TEXT, Checked, RulesInForce
from stream_app.work.rule_trials import MAX_SESSIONS, USUAL_SESSIONS, Trial

router = APIRouter(prefix="/rules", tags=["rules"])
RuleText = Annotated[str, StringConstraints(max_length=MAX_TEXT, pattern=r"^[^\x00]*$")]
ReasonText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_REASON, pattern=NO_NUL, strip_whitespace=True),
]


class Draft(BaseModel):
    """A text of rules to check."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[RuleText, Field(description="As in a file of rules (YAML)")]


class DraftToTry(Draft):
    """A text of rules to try on ended sessions."""

    sessions: Annotated[int, Field(ge=1, le=MAX_SESSIONS, description="How many, newest first")] = (
        USUAL_SESSIONS
    )


class NewVersion(Draft):
    """A text of rules to store as a version."""

    reason: ReasonText


class NewAdoption(BaseModel):
    """Why a version comes into force."""

    model_config = ConfigDict(extra="forbid")

    reason: ReasonText
    replaces: Annotated[
        int | None, Field(ge=1, description="Only if this version is in force; else 409")
    ] = None


@router.get("")
@needs(Right.READ_SCORES)
def rules_in_force(services: ServicesDep, _: RuleReader) -> RulesInForce:
    """The rules in force."""
    try:
        return rule_changes.in_force(services)
    except RuleFileError as problem:
        raise HTTPException(404, str(problem)) from None


@router.post("/check")
@needs(Right.READ_SCORES)
def check_draft(services: ServicesDep, person: RuleReader, draft: Draft) -> Checked:
    """Check a text like `rapport rules check`; problems have line and column."""
    services.rules_checked.count(person.name)
    return rule_changes.check(services, draft.text)


@router.post("/trial")
@needs(Right.READ_SCORES)
def try_draft(services: ServicesDep, person: RuleReader, draft: DraftToTry) -> Trial:
    """Try a text on the last ended sessions within your access scope, from their stored scores.

    Compares its alerts with those of the rules in force on the same sessions. 409 while another
    trial is running.
    """
    with as_http_errors():
        return rule_trials.try_out(services, person, draft.text, draft.sessions)


@router.get("/versions")
@needs(Right.READ_SCORES)
def list_versions(services: ServicesDep, _: RuleReader) -> list[VersionEntry]:
    """The newest versions with their adoptions; empty if the rules come from a file."""
    return rule_versions.history(services.store)


@router.get("/versions/{version}")
@needs(Right.READ_SCORES)
def one_version(services: ServicesDep, _: RuleReader, version: VersionNumber) -> RuleVersion:
    """The text of a version."""
    with as_http_errors():
        return rule_versions.find(services.store, version)


@router.post("/versions", status_code=201)
@needs(Right.ACT)
def save_version(services: ServicesDep, person: RuleReader, new: NewVersion) -> RuleVersion:
    """Store a version, which is a proposal until an administrator adopts it."""
    with as_http_errors():
        version = rule_changes.save(services, person, new.text, new.reason)
        return rule_versions.find(services.store, version)


@router.post("/versions/{version}/adopt")
def adopt_version(
    services: ServicesDep, person: Admin, version: VersionNumber, adoption: NewAdoption
) -> RuleVersion:
    """Bring a version into force. To roll back, adopt an earlier version again.

    Tokens with limited rights cannot.
    """
    with as_http_errors():
        rule_changes.adopt(services, person, version, adoption.reason, adoption.replaces)
        return rule_versions.find(services.store, version)
