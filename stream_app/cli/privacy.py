"""Erasure, consent, legal holds and the audit trail."""

from typing import Annotated

import typer

from stream_app.cli.options import settings_for
from stream_app.contracts.events import ConsentPurpose, ConsentStatus

commands = typer.Typer()


@commands.command()
def erase(
    session: Annotated[list[str] | None, typer.Option(help="Id of a session; repeatable.")] = None,
    speaker: Annotated[
        list[str] | None,
        typer.Option(help="speaker_id as in events: all sessions of that person; repeatable."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    receipt: Annotated[
        bool, typer.Option("--receipt", help="Print the stored receipts of --session instead.")
    ] = False,
) -> None:
    """Erase sessions permanently, with scores, alerts and ratings; print the removed rows."""
    from stream_app.commands.records import erase as command

    if receipt:
        if speaker or not session:
            raise typer.BadParameter("--receipt needs --session: speakers of erased ones are gone")
        for line in command.stored_receipts(settings_for(), session):
            typer.echo(line)
        return
    if not (session or speaker):
        raise typer.BadParameter("use --session or --speaker")
    with command.open_erasure(settings_for()) as erasure:
        plan = erasure.plan(session or (), speaker or ())
        moved = f"; {plan.archived} are archived" if plan.archived else ""
        typer.echo(
            f"{len(plan.sessions)} sessions to erase; {plan.extent.sessions} of them are stored, "
            f"with {plan.extent.turns} turns{moved}"
        )
        if not yes:
            typer.confirm("This cannot be undone. Erase them?", abort=True)
        done = erasure.carry_out(plan)
    for line in command.receipt_lines(done.removed, done.lines):
        typer.echo(line)


@commands.command()
def purge(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Purge what has expired, also if a worker refuses because it would be much at once."""
    from stream_app.commands.records import purge as command

    with command.open_purge(settings_for()) as (planned, carry_out):
        for kind in planned:
            typer.echo(f"{kind.expiring} of {kind.stored} {kind.what} have expired")
        if not yes:
            typer.confirm("This cannot be undone. Purge them?", abort=True)
        removed = carry_out()
    typer.echo(
        ", ".join(f"{count} {what}" for what, count in removed.items()) or "nothing to purge"
    )


consent_commands = typer.Typer(
    no_args_is_help=True, help="Record consent that was given or withdrawn elsewhere."
)


SessionId = Annotated[str, typer.Argument(help="The session's id, as in its events.")]


@consent_commands.command("record")
def record_consent(
    session: SessionId,
    status: Annotated[ConsentStatus, typer.Option(help="What the person decided.")],
    version: Annotated[
        str | None,
        typer.Option(help="Version of the wording; only a newer one ends a withdrawal."),
    ] = None,
    source: Annotated[str, typer.Option(help="Where it was recorded.")] = "command line",
    speaker: Annotated[
        str | None, typer.Option(help="speaker_id of the person, as in events.")
    ] = None,
    purpose: Annotated[
        list[ConsentPurpose] | None, typer.Option(help="What the person also agreed to.")
    ] = None,
) -> None:
    """Send a consent record of a session to the turns topic; a worker applies it."""
    from stream_app.commands.records import consent as command

    settings = settings_for()
    command.record(settings, session, status, version, source, speaker, purpose or ())
    typer.echo(f"consent {status.value} sent to {settings.turns_topic}")


@consent_commands.command("list")
def list_consents(session: SessionId) -> None:
    """Print the stored consent records of a session, oldest first."""
    from stream_app.commands.records import consent as command

    found = command.of_session(settings_for(), session)
    for one in found.records:
        place = one.source or "" if one.seq is None else f"turn {one.seq}"
        effect = "" if one.effective else "  without effect"
        agreed = "".join(f"  {purpose.value}" for purpose in one.purposes)
        typer.echo(
            f"{one.occurred_at.isoformat()}  {one.status.value:9}  "
            f"{one.version or '-':12}  {place}{effect}{agreed}"
        )
    if found.hidden:
        typer.echo("consent was withdrawn: text and scores cannot be read")


hold_commands = typer.Typer(
    no_args_is_help=True, help="Legal holds: keep sessions from being purged or erased."
)


@hold_commands.command("add")
def add_hold(
    session: SessionId,
    reason: Annotated[str, typer.Option(help="Why, for example the number of the case.")],
) -> None:
    """Keep a session from being purged or erased until the hold is removed."""
    from stream_app.commands.records import hold as command

    command.add(settings_for(), session, reason)
    typer.echo("on legal hold")


@hold_commands.command("remove")
def remove_hold(session: SessionId) -> None:
    """End a hold; the session then expires as usual and can be erased."""
    from stream_app.commands.records import hold as command

    command.remove(settings_for(), session)
    typer.echo("no longer on legal hold")


@hold_commands.command("list")
def list_holds() -> None:
    """Print the sessions on legal hold, oldest hold first."""
    from stream_app.commands.records import hold as command

    for hold in command.find(settings_for()):
        typer.echo(f"{hold.session_id}  since {hold.at.isoformat()}  {hold.reason}")


trail = typer.Typer(no_args_is_help=True, help="Check the audit trail; see docs/audit.md.")


@trail.callback()
def _trail() -> None:
    """Keep `verify` a subcommand, although it is the only one."""


@trail.command("verify")
def verify_trail(
    head: Annotated[
        str | None,
        typer.Option(help="ID:HASH that an earlier check printed: detects a shortened trail."),
    ] = None,
) -> None:
    """Check that no entry of the audit trail was changed, removed, inserted or moved."""
    from stream_app.commands.records import audit as command

    found = command.verify(settings_for(), head)
    typer.echo(command.summary(found))
    typer.echo(f"head {found.head}")
