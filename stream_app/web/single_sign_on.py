"""The account of a person whom the identity provider has authenticated."""

from dataclasses import replace
from typing import Final

from stream_app.store import audit
from stream_app.store.audit import AuditAction
from stream_app.store.granted_access import GrantedAccess
from stream_app.store.people import Person, PersonError
from stream_app.store.roles import PersonRole
from stream_app.web.identity_provider import Claims, SignInRefused
from stream_app.web.services import Services

MAX_NAME_CHARS: Final = 100
MAX_IDENTITY_CHARS: Final = 500


def account_of(services: Services, issuer: str, claims: Claims) -> Person:
    """The account, created or updated as the settings say.

    At the first sign-in, the account of the claimed name is bound to the provider's ``sub``; from
    then on only the ``sub`` counts, because names can be given to somebody else.

    Raises:
        SignInRefused: there is no account, it is disabled or somebody else's, or it has no access.
    """
    settings = services.settings
    identity = f"{issuer} {claims['sub']}"
    if len(identity) > MAX_IDENTITY_CHARS:
        raise SignInRefused("the claim sub is too long")
    name = _text(claims, settings.oidc_name_claim)
    granted = _granted(services, claims)
    person = services.people.find_by_identity(identity) or services.people.find(name)
    if person is None:
        return _create(services, name, identity, granted, claims)
    bound_to = services.people.identity(person.name)
    if bound_to not in (None, identity):
        raise SignInRefused(f"the account {person.name} belongs to another identity")
    if person.role is PersonRole.INGEST:
        raise SignInRefused("programs send with tokens")
    if bound_to is None:
        services.people.bind(person.name, identity)
    if granted is None:
        return person
    updated = replace(person, role=granted.role, team=granted.team, all_teams=granted.all_teams)
    if updated != person:
        services.people.set_access(updated)
        _audit(services, f"{person.name} is {_described(updated)} by single sign-on")
    return updated


def _create(
    services: Services, name: str, identity: str, granted: GrantedAccess | None, claims: Claims
) -> Person:
    if not services.settings.oidc_create_accounts or granted is None:
        raise SignInRefused(f"there is no account {name}, or it is disabled")
    speaker_claim = services.settings.oidc_speaker_claim
    counsels = granted.role is PersonRole.COUNSELLOR and speaker_claim is not None
    speaker = _text(claims, speaker_claim or "") if counsels else None
    person = Person(
        name,
        granted.role,
        granted.team,
        services.store.privacy.pseudonym(speaker) if speaker else None,
        all_teams=granted.all_teams,
    )
    try:
        services.people.add(person, None)
    except PersonError as problem:
        raise SignInRefused(str(problem)) from None
    services.people.bind(name, identity)
    _audit(services, f"added {name} as {_described(person)} by single sign-on")
    return person


def _granted(services: Services, claims: Claims) -> GrantedAccess | None:
    """The access of the first configured group that the person is in; None without groups."""
    by_group = services.settings.access_by_group
    if not by_group:
        return None
    stated = claims.get(services.settings.oidc_access_claim)
    groups = stated if isinstance(stated, list) else [stated]
    for group, access in by_group.items():
        if group in groups:
            return access
    raise SignInRefused("none of the person's groups has access")


def _text(claims: Claims, name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME_CHARS or "\0" in value:
        raise SignInRefused(f"the claim {name} is missing or unusable")
    return value


def _described(person: Person) -> str:
    of = " of all teams" if person.all_teams else f" of {person.team}" if person.team else ""
    return f"{person.role.value}{of}"


def _audit(services: Services, what: str) -> None:
    audit.record(services.store, audit.SINGLE_SIGN_ON, AuditAction.CHANGE_ACCOUNT, detail=what)
