"""``rapport people``: manages the accounts of the console."""

from collections.abc import Collection

from stream_app import bootstrap
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.people import ANY_SESSION, IngestScope, People, Person, PersonError
from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.work.account_changes import AccountChanges


def add(
    settings: Settings,
    name: str,
    role: PersonRole,
    team: str | None,
    speaker: str | None,
    password: str | None,
    *,
    all_teams: bool = False,
) -> None:
    """Create an account; without a password, only with tokens.

    Raises:
        PersonError: the name exists, the password is too weak, a counsellor has no speaker, or it
            is not clear which teams a supervisor reads.
    """
    store = bootstrap.store(settings)
    store.load_privacy(settings.redact)
    AccountChanges(store, audit.COMMAND_LINE).add(
        name, role, team, speaker, password, all_teams=all_teams
    )


def list_accounts(settings: Settings) -> list[Person]:
    """All accounts."""
    return People(bootstrap.store(settings)).all()


def change_teams(settings: Settings, name: str, team: str | None, *, all_teams: bool) -> None:
    """Change which teams a supervisor reads.

    Raises:
        PersonError: there is no such account, or it is not clear which teams it reads.
    """
    _changes(settings).change_teams(name, team, all_teams=all_teams)


def change_password(settings: Settings, name: str, password: str) -> None:
    """Change the password of an account.

    Raises:
        PersonError: there is no such account, or the password is too weak.
    """
    _changes(settings).change_password(name, password)


def bind(settings: Settings, name: str, sub: str) -> None:
    """Let a person at the identity provider sign in to an account.

    Raises:
        PersonError: there is no such account or no provider, or the person has another account.
    """
    if settings.oidc_issuer is None:
        raise PersonError("RAPPORT_OIDC_ISSUER is not set: there is no identity provider")
    _changes(settings).bind(name, settings.oidc_issuer, sub)


def new_token(
    settings: Settings,
    name: str,
    label: str,
    days: int,
    sends: IngestScope = ANY_SESSION,
    rights: Collection[Right] = (),
) -> str:
    """Create a token for the API. Without ``rights``, it reads scores or, for a program, sends.

    Raises:
        PersonError: there is no such account, or it cannot have these limits or rights.
    """
    return _changes(settings).new_token(name, label, days, sends, rights)


def revoke(settings: Settings, name: str, label: str) -> None:
    """Revoke the tokens with this label.

    Raises:
        PersonError: there are none.
    """
    _changes(settings).revoke(name, label)


def disable(settings: Settings, name: str) -> None:
    """Disable the account.

    Raises:
        PersonError: there is no such account.
    """
    _changes(settings).disable(name)


def _changes(settings: Settings) -> AccountChanges:
    return AccountChanges(bootstrap.store(settings), audit.COMMAND_LINE)
