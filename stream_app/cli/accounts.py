"""Accounts, tokens and studies."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from stream_app.cli.options import DAY, settings_for
from stream_app.store.accounts.roles import PersonRole, Right

if TYPE_CHECKING:
    from stream_app.settings import Settings
    from stream_app.work.account_changes import AccountChanges

accounts = typer.Typer(no_args_is_help=True, help="Manage the accounts of the console and the API.")


Name = Annotated[str, typer.Argument(help="Sign-in name.")]


@accounts.command("add")
def add_person(
    name: Name,
    role: Annotated[PersonRole, typer.Option(help="Determines the access rights.")],
    team: Annotated[
        str | None, typer.Option(help="Team of a supervisor or study, who read its sessions.")
    ] = None,
    all_teams: Annotated[
        bool, typer.Option("--all-teams", help="The sessions of all teams instead.")
    ] = False,
    speaker: Annotated[
        str | None, typer.Option(help="speaker_id of a counsellor, as in events.")
    ] = None,
    no_password: Annotated[
        bool, typer.Option("--no-password", help="The person signs in by single sign-on only.")
    ] = False,
) -> None:
    """Create an account; asks for a password. The roles ingest and study use a token instead."""
    if role in (PersonRole.INGEST, PersonRole.STUDY):
        with _changes(settings_for()) as changes:
            changes.add(name, role, team, speaker, all_teams=all_teams)
        what = "send events" if role is PersonRole.INGEST else "export for a study"
        typer.echo(f"{name} may {what}: `rapport people token {name} --label …`")
        if role is PersonRole.STUDY:
            typer.echo(f"first admit it: `rapport people studies admit STUDY {name} --until DATE`")
        return
    password = (
        None if no_password else typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    )
    with _changes(settings_for()) as changes:
        changes.add(name, role, team, speaker, password, all_teams=all_teams)
    typer.echo(f"{name} may sign in as {role.value}")


@accounts.command("list")
def list_people() -> None:
    """List all accounts."""
    from stream_app import bootstrap
    from stream_app.store.accounts.people import People

    with bootstrap.opened(settings_for()) as store:
        found = People(store).all()
    for person in found:
        teams = "all teams" if person.all_teams else person.team or ""
        typer.echo(f"{person.name:30} {person.role.value:11} {teams}")


@accounts.command("team")
def change_team(
    name: Name,
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    all_teams: Annotated[bool, typer.Option("--all-teams", help="All teams.")] = False,
) -> None:
    """Change which teams a supervisor reads, at once."""
    with _changes(settings_for()) as changes:
        changes.change_teams(name, team, all_teams=all_teams)
    typer.echo(f"{name} reads {'all teams' if all_teams else team}")


@accounts.command("password")
def change_password(name: Name) -> None:
    """Change the password of an account."""
    password = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    with _changes(settings_for()) as changes:
        changes.change_password(name, password)
    typer.echo(f"{name} has a new password")


@accounts.command("bind")
def bind_person(
    name: Name,
    sub: Annotated[str, typer.Argument(help="The claim sub of the person at the provider.")],
) -> None:
    """Let a person of the identity provider (RAPPORT_OIDC_ISSUER) sign in to an account."""
    from stream_app.store.accounts.people import PersonError

    settings = settings_for()
    if settings.oidc_issuer is None:
        raise PersonError("RAPPORT_OIDC_ISSUER is not set: there is no identity provider")
    with _changes(settings) as changes:
        changes.bind(name, settings.oidc_issuer, sub)
    typer.echo(f"{sub} may sign in as {name}")


@accounts.command("token")
def new_token(
    name: Name,
    label: Annotated[str, typer.Option(help="Purpose of the token.")],
    may: Annotated[
        list[Right] | None,
        typer.Option(help="A right of the token; repeatable. Default: only read scores, or send."),
    ] = None,
    days: Annotated[int, typer.Option(min=1, help="Days until the token expires.")] = 90,
    team: Annotated[str | None, typer.Option(help="Only events of this team's sessions.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only sessions of this domain.")] = None,
    channel: Annotated[str | None, typer.Option(help="Only sessions of this channel.")] = None,
) -> None:
    """Create a token for the API with some of this person's rights; it is printed only once."""
    from stream_app.store.accounts.people import IngestScope

    sends = IngestScope(team, domain, channel)
    with _changes(settings_for()) as changes:
        typer.echo(changes.new_token(name, label, days, sends, may or ()))


@accounts.command("revoke")
def revoke_token(
    name: Name, label: Annotated[str, typer.Option(help="Label of the token.")]
) -> None:
    """Revoke a person's tokens with this label."""
    with _changes(settings_for()) as changes:
        changes.revoke(name, label)
    typer.echo(f"the tokens {label} of {name} are revoked")


@accounts.command("disable")
def disable_person(name: Name) -> None:
    """Disable an account and its tokens; the person's data is kept."""
    with _changes(settings_for()) as changes:
        changes.disable(name)
    typer.echo(f"{name} can no longer sign in")


@contextmanager
def _changes(settings: "Settings") -> "Iterator[AccountChanges]":
    from stream_app import bootstrap
    from stream_app.store.accounts import audit
    from stream_app.work.account_changes import AccountChanges

    with bootstrap.opened(settings, privacy=True) as store:
        yield AccountChanges(store, audit.COMMAND_LINE)


approved = typer.Typer(
    no_args_is_help=True, help="Studies whose accounts may export redacted text."
)
accounts.add_typer(approved, name="studies")


Study = Annotated[str, typer.Argument(help="The id under which the study was approved.")]


@approved.command("admit")
def admit_to_study(
    study: Study,
    account: Annotated[str, typer.Argument(help="An account of the role study.")],
    until: Annotated[
        datetime, typer.Option(formats=DAY, help="Exports are refused from this day on (UTC).")
    ],
) -> None:
    """Let an account export redacted text for a study; admit it again to change the date."""
    from stream_app import bootstrap
    from stream_app.store.accounts import audit, studies
    from stream_app.store.accounts.audit import AuditAction

    end = until.replace(tzinfo=UTC)
    with bootstrap.opened(settings_for()) as store:
        studies.admit(store, study, account, end)
        detail = f"{account} in study {study} until {end:%Y-%m-%d}"
        audit.record(store, audit.COMMAND_LINE, AuditAction.CHANGE_ACCOUNT, detail=detail)
    typer.echo(f"{account} may export text for {study} before {end:%Y-%m-%d}")


@approved.command("end")
def end_study(study: Study) -> None:
    """Refuse further exports of a study to all its accounts."""
    from stream_app import bootstrap
    from stream_app.store.accounts import audit, studies
    from stream_app.store.accounts.audit import AuditAction

    with bootstrap.opened(settings_for()) as store:
        count = studies.end(store, study)
        detail = f"ended study {study}"
        audit.record(store, audit.COMMAND_LINE, AuditAction.CHANGE_ACCOUNT, detail=detail)
    typer.echo(f"{study} has ended for {count} account(s)")


@approved.command("list")
def list_studies() -> None:
    """List all studies with their accounts and ends."""
    from stream_app import bootstrap
    from stream_app.store.accounts import studies

    with bootstrap.opened(settings_for()) as store:
        for each in studies.every(store):
            typer.echo(f"{each.study_id:30} {each.person:30} until {each.until:%Y-%m-%d}")
