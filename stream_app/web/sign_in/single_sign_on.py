"""The account of a person whom the identity provider has authenticated."""

from dataclasses import replace
from typing import Final

from stream_app.group_file import GrantedAccess
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person, PersonError
from stream_app.store.accounts.roles import PersonRole
from stream_app.web.http.identity_provider import ClaimMissing, Claims, SignInRefused, claim_at
from stream_app.web.services import Services
from stream_app.work.account_changes import identity_of

MAX_NAME_CHARS: Final = 100


def account_of(services: Services, issuer: str, claims: Claims) -> Person:
    """The account that is bound to the provider's ``sub``, updated as the settings say.

    A name opens no account: names change hands, and at many providers people choose their own.
    Accounts are bound when they are created here, or by ``rapport people bind``.

    Raises:
        SignInRefused: there is no account, it is disabled or somebody else's, or it has no access.
    """
    try:
        identity = identity_of(issuer, str(claims["sub"]))
        person = services.people.find_by_identity(identity)
    except PersonError as problem:
        raise SignInRefused(str(problem)) from None
    granted = _granted(services, claims)
    if person is None:
        return _create(services, identity, granted, claims)
    if person.role is PersonRole.INGEST:
        raise SignInRefused("programs send with tokens")
    if granted is None:
        return person
    updated = replace(person, role=granted.role, team=granted.team, all_teams=granted.all_teams)
    if updated != person:
        services.people.set_access(updated)
        _audit(services, f"{person.name} is {_described(updated)} by single sign-on")
    return updated


def _create(
    services: Services, identity: str, granted: GrantedAccess | None, claims: Claims
) -> Person:
    rules = services.settings.single_sign_on
    name = _text(claims, rules.name_claim)
    if services.people.find(name) is not None:
        raise SignInRefused(
            f"the account {name} is not bound to this person, who has the sub {claims['sub']}"
        )
    if not rules.create_accounts or granted is None:
        raise SignInRefused(f"there is no account {name}, or it is disabled")
    counsels = granted.role is PersonRole.COUNSELLOR and rules.speaker_claim is not None
    speaker = _text(claims, rules.speaker_claim or "") if counsels else None
    person = Person(
        name,
        granted.role,
        granted.team,
        services.store.privacy.pseudonym(speaker) if speaker else None,
        all_teams=granted.all_teams,
    )
    try:
        services.people.add(person, None, identity)
    except PersonError as problem:
        raise SignInRefused(str(problem)) from None
    _audit(services, f"added {name} as {_described(person)} by single sign-on")
    return person


def _granted(services: Services, claims: Claims) -> GrantedAccess | None:
    """The access of the first configured group that the person is in; None without groups."""
    rules = services.settings.single_sign_on
    if not rules.access:
        return None
    path = rules.access_claim
    stated = claim_at(claims, path)
    if stated is None:
        raise ClaimMissing(path)
    groups = stated if isinstance(stated, list) else [stated]
    for group, access in rules.access.items():
        if group in groups:
            return access
    raise SignInRefused("none of the person's groups has access")


def _text(claims: Claims, name: str) -> str:
    value = claim_at(claims, name)
    if value is None:
        raise ClaimMissing(name)
    usable = isinstance(value, str) and 0 < len(value) <= MAX_NAME_CHARS and value.isprintable()
    if not usable or value != value.strip():
        raise SignInRefused(f"the claim {name} is unusable")
    return str(value)


def _described(person: Person) -> str:
    of = " of all teams" if person.all_teams else f" of {person.team}" if person.team else ""
    return f"{person.role.value}{of}"


def _audit(services: Services, what: str) -> None:
    audit.record(services.store, audit.SINGLE_SIGN_ON, AuditAction.CHANGE_ACCOUNT, detail=what)
