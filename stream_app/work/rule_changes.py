"""The alert rules in force and their versions, as people read, check and change them."""

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from stream_app.core.rules.intent_variables import catalogue
from stream_app.core.rules.rule_file import RuleFileError, parse
from stream_app.core.rules.rules import RuleSet
from stream_app.core.rules.yaml_file import digest_of
from stream_app.settings import RulesSource
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.alerts import rule_versions
from stream_app.store.sessions import bundle_info
from stream_app.store.sessions.scored_turns import StateConflict
from stream_app.work.desk import Desk

MAX_TEXT: Final = 64 * 1024
"""Characters of a draft: any text is checked in about two seconds of CPU time at most."""
DRAFT: Final = "draft"


@dataclass(frozen=True, slots=True)
class RulesInForce:
    """The rules as this process reads them."""

    source: Annotated[RulesSource, Field(description="Where rules come from, by RAPPORT_RULES…")]
    name: Annotated[str, Field(description="The file, or the version")]
    version: Annotated[int | None, Field(description="Null: the rules are the file's")]
    digest: Annotated[str, Field(description="As in alerts: `rules_digest`")]
    text: str


@dataclass(frozen=True, slots=True)
class RuleTextProblem:
    """One error in a text of rules."""

    line: Annotated[int, Field(ge=1)]
    column: Annotated[int, Field(ge=1)]
    what: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What ``rapport rules check`` finds in a text."""

    valid: bool
    rules: Annotated[list[str], Field(description="Names; empty unless the text is valid")]
    digest: str
    problems: list[RuleTextProblem]


def in_force(desk: Desk) -> RulesInForce:
    """The rules in force.

    Raises:
        RuleFileError: the file cannot be read.
    """
    found = desk.rules.read()
    return RulesInForce(
        desk.settings.rules_source,
        found.name,
        found.version,
        digest_of(found.raw),
        found.raw.decode("utf-8", "replace"),
    )


def parsed(desk: Desk, text: str, name: str = DRAFT) -> RuleSet:
    """Parse a text; its rules may use the heads of all bundles in use, and intents.

    Raises:
        RuleFileError: it is not valid.
    """
    known = catalogue(bundle_info.heads(desk.store), desk.intents.read())
    return parse(text.encode(), name, known)


def check(desk: Desk, text: str) -> Checked:
    """Check a text as ``rapport rules check`` does."""
    digest = digest_of(text.encode())
    try:
        found = parsed(desk, text)
    except RuleFileError as problem:
        places = [RuleTextProblem(each.line, each.column, each.what) for each in problem.problems]
        return Checked(False, [], digest, places)
    return Checked(True, [rule.name for rule in found.rules], digest, [])


def save(desk: Desk, person: Person, text: str, reason: str) -> int:
    """Store a valid text as a version, a proposal until an administrator adopts it; audited.

    Raises:
        RuleFileError: it is not valid.
        StateConflict: the rules come from a file.
    """
    _require_database(desk)
    digest = parsed(desk, text).digest
    version = rule_versions.save(desk.store, text, person.name, reason)
    _audit(desk, person, f"saved version {version}, digest {digest}")
    return version


def adopt(
    desk: Desk, person: Person, version: int, reason: str, replaces: int | None = None
) -> None:
    """Bring a version into force; workers read it within seconds. Audited.

    Raises:
        NotFound: there is no such version.
        RuleFileError: it is no longer valid, for example without a former bundle's heads.
        StateConflict: the rules come from a file, it is in force, or ``replaces`` no longer is.
    """
    _require_database(desk)
    found = rule_versions.find(desk.store, version)
    parsed(desk, found.text, f"version {version}")
    rule_versions.adopt(desk.store, version, person.name, reason, replaces)
    _audit(desk, person, f"adopted version {version}, digest {found.digest}")


def _require_database(desk: Desk) -> None:
    if desk.settings.rules_source is not RulesSource.DATABASE:
        raise StateConflict(
            "the rules come from a file: change it on the server, or set "
            "RAPPORT_RULES_SOURCE=database"
        )


def _audit(desk: Desk, person: Person, detail: str) -> None:
    audit.record(desk.store, person.name, AuditAction.CHANGE_RULES, detail=detail)
