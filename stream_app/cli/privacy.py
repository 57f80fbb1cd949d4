"""Erasure, consent, legal holds and the audit trail."""

from typing import TYPE_CHECKING, Annotated

import typer

from stream_app.cli.options import record_read, settings_for
from stream_app.contracts.events import ConsentPurpose, ConsentStatus

if TYPE_CHECKING:
    from stream_app.core.session.ports import Message
    from stream_app.settings import Settings

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
    """Erase sessions permanently, with scores, alerts and ratings. Prints the removed rows."""
    from stream_app import bootstrap
    from stream_app.worker.upkeep import requested_erasure as erasing

    if receipt:
        if speaker or not session:
            raise typer.BadParameter("--receipt needs --session: speakers of erased ones are gone")
        with bootstrap.opened(settings_for(), privacy=True) as store:
            for line in erasing.stored_receipts(store, session):
                typer.echo(line)
        return
    if not (session or speaker):
        raise typer.BadParameter("use --session or --speaker")
    settings = settings_for()
    with bootstrap.opened(settings, privacy=True) as store:
        erasure = erasing.Erasure(store, settings, bootstrap.sweep_archive)
        plan = erasure.plan(session or (), speaker or ())
        moved = f"; {plan.archived} are archived" if plan.archived else ""
        typer.echo(
            f"{len(plan.sessions)} sessions to erase; {plan.extent.sessions} of them are stored, "
            f"with {plan.extent.turns} turns{moved}"
        )
        if not yes:
            typer.confirm("This cannot be undone. Erase them?", abort=True)
        done = erasure.carry_out(plan)
    for line in erasing.receipt_lines(done.removed, done.lines):
        typer.echo(line)


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
    import asyncio
    from datetime import UTC, datetime
    from uuid import uuid4

    import msgspec

    from stream_app import bootstrap
    from stream_app.contracts.events import Consent, decode
    from stream_app.core.session.ports import Message
    from stream_app.errors import ContractError, RapportError
    from stream_app.store.accounts import audit
    from stream_app.store.accounts.audit import AuditAction

    given = Consent(
        session_id=session,
        status=status,
        occurred_at=datetime.now(UTC),
        version=version,
        source=source,
        speaker_id=speaker,
        consent_id=str(uuid4()),
        purposes=purpose or msgspec.UNSET,
    )
    event = msgspec.json.encode(given)
    try:
        decode(event)
    except ContractError as problem:
        raise RapportError(problem.detail) from None
    settings = settings_for()
    with bootstrap.opened(settings) as store:
        action = AuditAction.RECORD_CONSENT
        audit.record(store, audit.COMMAND_LINE, action, session, status.value)
    asyncio.run(_send(settings, Message(settings.turns_topic, session.encode(), event)))
    typer.echo(f"consent {status.value} sent to {settings.turns_topic}")


async def _send(settings: "Settings", message: "Message") -> None:
    from stream_app.worker.kafka.publishing import producer, publish

    async with producer(settings) as client:
        await publish(client, [message])


@consent_commands.command("list")
def list_consents(session: SessionId) -> None:
    """Print the stored consent records of a session, oldest first."""
    from stream_app import bootstrap
    from stream_app.errors import RapportError
    from stream_app.store.accounts import audit
    from stream_app.store.accounts.audit import AuditAction
    from stream_app.store.sessions import consents
    from stream_app.store.sessions.scope import ALL_SESSIONS

    with bootstrap.opened(settings_for()) as store:
        found = consents.of_session(store, ALL_SESSIONS, session)
        if found is None:
            raise RapportError("no such session is stored")
        detail = "rapport consent list"
        audit.record(store, audit.COMMAND_LINE, AuditAction.READ_RECORDS, session, detail)
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
    from datetime import UTC, datetime

    from stream_app import bootstrap
    from stream_app.store.accounts import audit
    from stream_app.store.lifecycle import holds

    with bootstrap.opened(settings_for()) as store:
        holds.add(store, session, reason, audit.COMMAND_LINE, datetime.now(UTC))
    typer.echo("on legal hold")


@hold_commands.command("remove")
def remove_hold(session: SessionId) -> None:
    """End a hold; the session then expires as usual and can be erased."""
    from stream_app import bootstrap
    from stream_app.store.accounts import audit
    from stream_app.store.lifecycle import holds

    with bootstrap.opened(settings_for()) as store:
        holds.remove(store, session, audit.COMMAND_LINE)
    typer.echo("no longer on legal hold")


@hold_commands.command("list")
def list_holds() -> None:
    """Print the sessions on legal hold, oldest hold first."""
    from stream_app import bootstrap
    from stream_app.store.accounts.audit import AuditAction
    from stream_app.store.lifecycle import holds

    settings = settings_for()
    record_read(settings, AuditAction.READ_RECORDS, "hold list")
    with bootstrap.opened(settings) as store:
        for hold in holds.find(store):
            typer.echo(f"{hold.session_id}  since {hold.at.isoformat()}  {hold.reason}")


trail = typer.Typer(no_args_is_help=True, help="Check the audit trail. See docs/audit.md.")


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
    from stream_app import bootstrap
    from stream_app.errors import RapportError
    from stream_app.store.database import audit_chain

    known = audit_chain.parse_head(head) if head is not None else None
    with bootstrap.opened(settings_for()) as store:
        found = audit_chain.verify(store, known)
    if found.faults:
        raise RapportError("\n".join(["the audit trail was tampered with", *found.faults]))
    unnamed = f"; {found.unnamed} erased or replaced names" if found.unnamed else ""
    typer.echo(f"{found.entries} entries, chain intact{unnamed}")
    typer.echo(f"head {found.head}")
