"""The ``rapport`` command: parses arguments, calls ``stream_app.commands``, prints errors."""

import asyncio
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from pydantic import SecretStr, ValidationError
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from stream_app import __version__, bootstrap, logs, secret_files, setting_names
from stream_app.contracts.events import ConsentStatus
from stream_app.core.heads import Head
from stream_app.errors import RapportError
from stream_app.inference.bundle import find, load
from stream_app.settings import Settings
from stream_app.store.people import PersonRole, Right

if TYPE_CHECKING:
    from stream_app.analytics.schema import Made

app = typer.Typer(
    name="rapport",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Scores how empathy is expressed in live conversations. "
    "Not a diagnosis, risk assessment or performance rating.",
)
longitudinal = typer.Typer(no_args_is_help=True, help="Roll-ups for reports and dashboards.")
app.add_typer(longitudinal, name="rollups")
database = typer.Typer(no_args_is_help=True, help="Manage the database's schema.")
app.add_typer(database, name="db")
letters = typer.Typer(no_args_is_help=True, help="List and replay dead letters.")
app.add_typer(letters, name="dead-letters")
alert_rules = typer.Typer(
    no_args_is_help=True, help="Check and test alert rules; see docs/rules.md."
)
app.add_typer(alert_rules, name="rules")
usual = typer.Typer(no_args_is_help=True, help="Manage the baselines of channels and counsellors.")
app.add_typer(usual, name="baselines")

key_commands = typer.Typer(
    no_args_is_help=True,
    help="Manage the keys of stored text and pseudonyms; see docs/operations.md.",
)
app.add_typer(key_commands, name="keys")

consent_commands = typer.Typer(
    no_args_is_help=True, help="Record consent that was given or withdrawn elsewhere."
)
app.add_typer(consent_commands, name="consent")
hold_commands = typer.Typer(
    no_args_is_help=True, help="Legal holds: keep sessions from being purged or erased."
)
app.add_typer(hold_commands, name="hold")
trail = typer.Typer(no_args_is_help=True, help="Check the audit trail; see docs/audit.md.")
app.add_typer(trail, name="audit")


@trail.callback()
def _trail() -> None:
    """Keep `verify` a subcommand, although it is the only one."""


accounts = typer.Typer(no_args_is_help=True, help="Manage the accounts of the console and the API.")
app.add_typer(accounts, name="people")
approved = typer.Typer(
    no_args_is_help=True, help="Studies whose accounts may export redacted text."
)
app.add_typer(approved, name="studies")
notifications = typer.Typer(help="Send notifications about alerts.")
app.add_typer(notifications, name="notify")

Speed = Annotated[float, typer.Option(min=0.0, help="Factor on all pauses; 0 = no pauses.")]
Bundle = Annotated[
    Path | None,
    typer.Option(help="Name of a shipped bundle, or a folder; default: RAPPORT_BUNDLE."),
]


def _with_bundle(bundle: Path | None) -> Settings:
    settings = Settings()
    return settings.model_copy(update={"bundle": find(bundle)}) if bundle else settings


def _settings(bundle: Path | None = None, **changes: object) -> Settings:
    settings = _with_bundle(bundle).model_copy(update=changes)
    logs.configure(settings.log_level, settings.log_format)
    return settings


@app.command()
def up(
    speed: Annotated[float, typer.Option(min=0.1, help="Factor on all pauses.")] = 10.0,
    sessions: Annotated[int, typer.Option(min=1, help="Number of concurrent sessions.")] = 12,
    weeks: Annotated[int, typer.Option(min=0, help="Weeks of past sessions to add first.")] = 4,
    seconds: Annotated[
        float | None, typer.Option("--for", min=1.0, help="Stop after this many seconds.")
    ] = None,
    history: Annotated[
        bool, typer.Option(help="Add half a year of synthetic sessions for the analytics page.")
    ] = True,
    bundle: Bundle = None,
) -> None:
    """Run everything on this machine and replay the sample sessions; Ctrl-C stops it."""
    from stream_app.commands import up as command

    settings = _with_bundle(bundle)
    logs.configure("WARNING", settings.log_format)
    command.run(
        settings,
        Console(),
        speed=speed,
        sessions=sessions,
        weeks=weeks,
        seconds=seconds,
        history=history,
    )


@app.command("history", hidden=True)
def write_history() -> None:
    """Write half a year of synthetic sessions; for the demo of `rapport up`."""
    from stream_app.commands import history as command

    settings = _settings()
    typer.echo(f"{command.run(settings)} turns")


@app.command()
def worker(bundle: Bundle = None) -> None:
    """Consume, score and store until stopped."""
    from stream_app.commands import worker as command

    command.run(_settings(bundle))


@app.command()
def web() -> None:
    """Serve the console and the API until stopped."""
    from stream_app.commands import web as command

    command.run(_settings())


@notifications.callback(invoke_without_command=True)
def notify(context: typer.Context) -> None:
    """Send alerts to the targets in RAPPORT_NOTIFICATIONS until stopped."""
    if context.invoked_subcommand is not None:
        return
    from stream_app.commands import notify as command

    command.run(_settings())


@notifications.command("test")
def try_notifications(
    target: Annotated[str | None, typer.Argument(help="Name of a target; default: all.")] = None,
) -> None:
    """Send a test message to the targets, and print whether it was accepted."""
    from stream_app.commands import notify as command

    all_accepted = True
    for name, problem in command.test(_settings(), target):
        typer.echo(f"{name}: {problem or 'accepted'}")
        all_accepted &= problem is None
    raise typer.Exit(0 if all_accepted else 1)


@app.command()
def broker(
    port: Annotated[int, typer.Option(min=0, help="0 = any free port.")] = 9092,
) -> None:
    """Run the embedded Kafka-protocol broker (in memory) until Ctrl-C."""
    import signal

    from stream_app.worker import broker as embedded

    with embedded.running(port) as address:
        typer.echo(f"listening on {address}; all data is lost when it stops")
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


@app.command()
def replay(
    files: Annotated[
        list[Path] | None, typer.Argument(help="JSON lines files or ConvoKit folders.")
    ] = None,
    speed: Speed = 1.0,
) -> None:
    """Send recorded events, bytes unchanged, to the turns topic; by default the sample sessions."""
    from stream_app.commands import event_files
    from stream_app.commands import replay as command

    settings = _settings()
    samples = event_files.sample_sessions()
    if files:
        events = [event for path in files for event in event_files.timed_events(path)]
    elif speed:  # these events have the time of sending
        events = list(
            command.interleaved_samples(samples, len(samples), len(samples), speed, "sample")
        )
        speed = 1.0
    else:
        events = command.recently_ended_samples(samples, "sample")
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("sent", total=len(events))
        sent = asyncio.run(command.send(settings, events, speed, lambda _: progress.advance(task)))
    typer.echo(f"{sent} events sent to {settings.turns_topic}", err=True)


@app.command()
def score(
    source: Annotated[Path, typer.Argument(help="JSON lines file or ConvoKit folder.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Default, and `-`: standard output.")
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, help="Events per batch; does not affect scores.")
    ] = 256,
    alerts: Annotated[bool, typer.Option(help="Also write alert transitions.")] = False,
    assume_consent: Annotated[
        bool, typer.Option(help="Score turns without `consent`: it was given elsewhere.")
    ] = False,
    bundle: Bundle = None,
) -> None:
    """Score a file without Kafka and without a database; same scores as a worker.

    Exit status 0: at least one event is valid; dead letters are printed. 1: no event is valid, or
    a file cannot be read or written. 2: wrong options or settings. 130: Ctrl-C.
    """
    from stream_app.commands import event_files
    from stream_app.commands import score as command

    settings = _settings(bundle)
    if assume_consent:
        settings = settings.model_copy(update={"require_consent": False})
    pipeline = bootstrap.pipeline(settings, bootstrap.scorer(settings))
    events = command.with_progress([source], _progress_console())
    with command.open_output(out, source) as stream:
        summary = command.run(pipeline, events, stream, batch, alerts, settings.plausible_times)
        for letter in summary.dead_letters:
            typer.echo(
                f"line {letter.offset + 1}: dead letter ({letter.reason}): {letter.detail}",
                err=True,
            )
        if not summary.valid:
            raise event_files.NoEvents(source, len(summary.dead_letters))
    counts = ", ".join(f"{name} {n}" for name, n in sorted(summary.counts.items()))
    typer.echo(f"{summary.sessions} sessions; {counts}", err=True)
    if summary.counts["withheld"]:
        typer.echo(
            f"{summary.counts['withheld']} events were withheld: their session does not have "
            '`"consent": true`. If consent was given elsewhere, use --assume-consent '
            "(worker: RAPPORT_REQUIRE_CONSENT=false).",
            err=True,
        )


def _progress_console() -> Console | None:
    return Console(stderr=True) if sys.stderr.isatty() else None


@app.command()
def watch(
    from_start: Annotated[
        bool, typer.Option(help="Start with the messages already in the topics.")
    ] = False,
) -> None:
    """Show live sessions, newest scores and alerts in the terminal."""
    from stream_app.commands import watch as command

    try:
        asyncio.run(command.show(_settings(), Console(), from_start))
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)


@app.command()
def bench(
    turns: Annotated[int, typer.Option(min=100, help="Number of turns.")] = 3000,
    bundle: Bundle = None,
) -> None:
    """Measure throughput, compared with the bare ONNX sessions, and latency to the commit."""
    from stream_app.commands import bench as command

    settings = _with_bundle(bundle)
    logs.configure("WARNING", settings.log_format)
    command.run(settings, Console(), turns)


@app.command()
def erase(
    session: Annotated[list[str] | None, typer.Option(help="Id of a session; repeatable.")] = None,
    speaker: Annotated[
        list[str] | None,
        typer.Option(help="speaker_id as in events: all sessions of that person; repeatable."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Erase sessions permanently, with scores, alerts and ratings; print the removed rows."""
    from stream_app.commands import erase as command

    if not (session or speaker):
        raise typer.BadParameter("use --session or --speaker")
    with command.open_erasure(_settings()) as erasure:
        plan = erasure.plan(session or (), speaker or ())
        moved = f"; {plan.archived} are archived" if plan.archived else ""
        typer.echo(
            f"{len(plan.sessions)} sessions to erase; {plan.extent.sessions} of them are stored, "
            f"with {plan.extent.turns} turns{moved}"
        )
        if not yes:
            typer.confirm("This cannot be undone. Erase them?", abort=True)
        receipt = erasure.carry_out(plan)
    for name, rows in receipt.removed.most_common():
        typer.echo(f"{rows:8}  {name}")
    total = sum(receipt.removed.values())
    typer.echo(f"{total:8}  rows removed; later events of these sessions are ignored")
    for title, lines in (("Done", receipt.done), ("Not reached", receipt.not_reached)):
        typer.echo(f"{title}:")
        for line in lines:
            typer.echo(f"  - {line}")


DAY = ["%Y-%m-%d"]
ANALYSES = (
    "over-time",
    "associations",
    "pairs",
    "expressed-perceived",
    "service-levels",
    "drift",
    "fairness",
)
EXPORTS = ("sessions", "turns", "convokit", "ratings", "disputes", "alerts", "rollups")
"""Both are named here because importing them takes a second."""


@app.command()
def analyse(
    question: Annotated[str, typer.Argument(help=f"One of: {', '.join(ANALYSES)}.")],
    since: Annotated[
        datetime | None, typer.Option("--from", formats=DAY, help="Sessions from this day on.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option("--to", formats=DAY, help="Sessions before this day.")
    ] = None,
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    measure: Annotated[
        list[str] | None, typer.Option(help="Only these measures; may be given several times.")
    ] = None,
    fewest_turns: Annotated[int, typer.Option(min=1, help="Minimum activity, in turns.")] = 10,
    fewest_days: Annotated[int, typer.Option(min=0, help="Minimum stay of a counsellor.")] = 365,
    calendar: Annotated[bool, typer.Option(help="Curves by calendar week.")] = False,
    at: Annotated[
        datetime | None,
        typer.Option(
            formats=DAY,
            help="service-levels: date of a change; drift: begin of the current period.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option(help="Exit with status 1 if there is a warning (drift).")
    ] = False,
    curves: Annotated[bool, typer.Option(help="Print the points of the curves, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Answer a question about the whole platform, with intervals; see docs/analyses.md."""
    from stream_app.analytics import extra

    extra.require()
    from stream_app.analytics.questions import QUESTIONS, Asked
    from stream_app.commands import analyse as command
    from stream_app.store.queries.scope import Scope

    if question not in QUESTIONS:
        raise typer.BadParameter(f"known questions: {', '.join(QUESTIONS)}")
    known = QUESTIONS[question].measures
    if not set(measure or ()) <= set(known):
        raise typer.BadParameter(f"{question} has the measures {', '.join(known) or '(none)'}")
    asked = Asked(
        scope=Scope(team=team),
        since=_in_utc(since),
        until=_in_utc(until),
        measures=tuple(measure or ()),
        fewest_turns=fewest_turns,
        fewest_days=fewest_days,
        calendar=calendar,
        at=_in_utc(at),
    )
    found = command.run(_settings(), question, asked)
    if as_json:
        typer.echo(command.as_json(found))
    else:
        command.show(found, Console(), curves=curves)
    raise typer.Exit(1 if check and found.warnings else 0)


@app.command()
def report(
    since: Annotated[datetime, typer.Option("--from", formats=DAY, help="First day.")],
    until: Annotated[datetime, typer.Option("--to", formats=DAY, help="Last day.")],
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write.", dir_okay=False)
    ] = Path("rapport-report.html"),
    fewest_days: Annotated[int, typer.Option(min=0, help="Minimum stay of a counsellor.")] = 365,
) -> None:
    """Write one printable HTML file with curves, tables and analyses; see docs/analyses.md."""
    from stream_app.analytics import extra

    extra.require()
    from stream_app.commands import report as command
    from stream_app.web.report import Wanted

    if until < since:
        raise typer.BadParameter("--to is before --from")
    wanted = Wanted(team, since.date(), until.date(), fewest_days)
    size = command.run(_settings(), wanted, output)
    typer.echo(f"{output}: {size // 1024} KiB")


@app.command()
def export(
    out: Annotated[Path, typer.Option("-o", "--out", help="A new file.")],
    table: Annotated[
        str | None, typer.Argument(help=f"One of: {', '.join(EXPORTS)}.", show_default=False)
    ] = None,
    speaker: Annotated[
        str | None,
        typer.Option(help="Instead of a table, everything stored about this speaker_id (zip)."),
    ] = None,
    form: Annotated[
        Literal["csv", "parquet", "jsonl"], typer.Option("--format", help="Of tables.")
    ] = "csv",
    since: Annotated[
        datetime | None, typer.Option("--from", formats=DAY, help="Sessions from this day on.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option("--to", formats=DAY, help="Sessions before this day.")
    ] = None,
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only this domain.")] = None,
    rollup: Annotated[
        str, typer.Option(help="Which roll-up: day, week, month or cohort_month, or …_measure.")
    ] = "week_measure",
    study: Annotated[str | None, typer.Option(help="Export text for this approved study.")] = None,
    account: Annotated[str | None, typer.Option(help="With --study: its account.")] = None,
) -> None:
    """Write a table (docs/api.md, Exports), or what is stored about a person, for their access."""
    if (table is None) == (speaker is None):
        raise typer.BadParameter("name either a table or --speaker")
    if speaker is not None:
        if any((since, until, team, domain, study, account)):
            raise typer.BadParameter("--speaker takes no other option than --out")
        _export_person(speaker, out)
        return
    from stream_app.commands import export as command
    from stream_app.store.queries.sessions import SessionFilter
    from stream_app.web.exports.formats import Format
    from stream_app.web.exports.rollups import RollUp

    if table is None or table not in command.TABLES:
        raise typer.BadParameter(f"known tables: {', '.join(command.TABLES)}")
    if rollup not in {each.value for each in RollUp}:
        raise typer.BadParameter(f"known roll-ups: {', '.join(each.value for each in RollUp)}")
    if (study is None) != (account is None):
        raise typer.BadParameter("--study and --account belong together")
    if out.exists():
        raise typer.BadParameter(f"{out} exists")
    chosen = SessionFilter(
        team=team, domain=domain, started_from=_in_utc(since), started_before=_in_utc(until)
    )
    whose = command.ForStudy(study, account) if study and account else None
    wanted = command.Wanted(table, chosen, Format(form), RollUp(rollup), whose)
    size = command.run(_settings(), wanted, out)
    typer.echo(f"{out}: {size:,} bytes")


def _export_person(speaker: str, out: Path) -> None:
    from stream_app.commands import subject_access as command

    for name, rows in command.export(_settings(), speaker, out).most_common():
        typer.echo(f"{rows:8}  {name}")
    typer.echo(f"{out} has text: give it to this person only")


def _in_utc(day: datetime | None) -> datetime | None:
    return None if day is None else day.replace(tzinfo=UTC)


@app.command()
def archive(
    before: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m"], help="Move months before this one, for example 2026-03."),
    ] = None,
) -> None:
    """Move finished months to Parquet files in RAPPORT_ARCHIVE; see docs/archive.md."""
    from stream_app.analytics import extra

    extra.require()
    from stream_app.commands import archive as command

    command.run(_settings(), None if before is None else before.date(), typer.echo)


@app.command()
def config() -> None:
    """Print the settings in force; secrets are masked."""
    settings = Settings()
    for name, info in Settings.model_fields.items():
        line = f"RAPPORT_{name.upper()}={_shown(name, getattr(settings, name))}"
        typer.echo(f"{line:60} # {info.description}" if info.description else line)
    for name, variable in secret_files.variables(Settings).items():
        line = f"{variable}={os.environ.get(variable, '')}"
        typer.echo(f"{line:60} # File that holds RAPPORT_{name.upper()}")


@app.command()
def bundle(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Name of a shipped bundle, or a folder; default: RAPPORT_BUNDLE."),
    ] = None,
) -> None:
    """Check a model bundle, and print its id and the digest for RAPPORT_BUNDLE_DIGEST."""
    found = load(_with_bundle(folder).bundle)
    typer.echo(found.manifest.bundle_id)
    typer.echo(f"RAPPORT_BUNDLE_DIGEST={found.digest}")


@app.command()
def doctor() -> None:
    """Check configuration and connections, and suggest how to fix problems."""
    from stream_app.commands.doctor import run_checks

    settings = Settings()
    logs.configure("ERROR", settings.log_format)
    console = Console(soft_wrap=True)
    healthy = True
    for finding in run_checks(settings):
        mark = "[green]ok[/]" if finding.healthy else "[bold red]problem[/]"
        console.print(f"{mark:24} {finding.name:9} {escape(finding.detail)}", highlight=False)
        healthy &= finding.healthy
    raise typer.Exit(0 if healthy else 1)


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
) -> None:
    """Send a consent record of a session to the turns topic; a worker applies it."""
    from stream_app.commands import consent as command

    settings = _settings()
    command.record(settings, session, status, version, source, speaker)
    typer.echo(f"consent {status.value} sent to {settings.turns_topic}")


@consent_commands.command("list")
def list_consents(session: SessionId) -> None:
    """Print the stored consent records of a session, oldest first."""
    from stream_app.commands import consent as command

    found = command.of_session(_settings(), session)
    for one in found.records:
        place = one.source or "" if one.seq is None else f"turn {one.seq}"
        effect = "" if one.effective else "  without effect"
        typer.echo(
            f"{one.occurred_at.isoformat()}  {one.status.value:9}  "
            f"{one.version or '-':12}  {place}{effect}"
        )
    if found.hidden:
        typer.echo("consent was withdrawn: text and scores cannot be read")


@hold_commands.command("add")
def add_hold(
    session: SessionId,
    reason: Annotated[str, typer.Option(help="Why, for example the number of the case.")],
) -> None:
    """Keep a session from being purged or erased until the hold is removed."""
    from stream_app.commands import hold as command

    command.add(_settings(), session, reason)
    typer.echo("on legal hold")


@hold_commands.command("remove")
def remove_hold(session: SessionId) -> None:
    """End a hold; the session then expires as usual and can be erased."""
    from stream_app.commands import hold as command

    command.remove(_settings(), session)
    typer.echo("no longer on legal hold")


@hold_commands.command("list")
def list_holds() -> None:
    """Print the sessions on legal hold, oldest hold first."""
    from stream_app.commands import hold as command

    for hold in command.find(_settings()):
        typer.echo(f"{hold.session_id}  since {hold.at.isoformat()}  {hold.reason}")


Reasons = Annotated[
    list[str] | None,
    typer.Option("--reason", help="Only dead letters with this reason; repeatable."),
]


@letters.command("count")
def count_letters() -> None:
    """Print the number of dead letters by reason."""
    from stream_app.commands import dead_letters as command

    found = asyncio.run(command.read(_settings()))
    for reason, count in command.count_by_reason(found):
        typer.echo(f"{count:8}  {reason}")
    typer.echo(f"{len(found):8}  in total")


@letters.command("list")
def list_letters(reason: Reasons = None) -> None:
    """Print a line per dead letter: topic:partition:offset, reason, size, problem; never text."""
    from stream_app.commands import dead_letters as command

    found = asyncio.run(command.read(_settings()))
    for item in command.select(found, reason or ()):
        letter = item.letter
        cut = "" if item.complete else "  (truncated)"
        typer.echo(
            f"{letter.dead_letter_id}  {letter.reason}  {letter.size} bytes  {letter.detail}{cut}"
        )


@letters.command("replay")
def replay_letters(
    ids: Annotated[
        list[str] | None, typer.Argument(help="topic:partition:offset, as `list` shows it.")
    ] = None,
    reason: Reasons = None,
    everything: Annotated[bool, typer.Option("--all", help="Replay all.")] = False,
) -> None:
    """Send dead letters to the turns topic again, after the problem has been fixed."""
    from stream_app.commands import dead_letters as command

    if not (ids or reason or everything):
        raise typer.BadParameter("name dead letters, or use --reason or --all")
    settings = _settings()
    found = command.select(asyncio.run(command.read(settings)), reason or (), ids or ())
    sent = asyncio.run(command.resend(settings, found))
    cut = sum(not item.complete for item in found)
    typer.echo(f"{sent} sent to {settings.turns_topic}; {cut} not sent because they are truncated")


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
    from stream_app.commands import people as command

    if role in (PersonRole.INGEST, PersonRole.STUDY):
        command.add(_settings(), name, role, team, speaker, None, all_teams=all_teams)
        what = "send events" if role is PersonRole.INGEST else "export for a study"
        typer.echo(f"{name} may {what}: `rapport people token {name} --label …`")
        if role is PersonRole.STUDY:
            typer.echo(f"first admit it: `rapport studies admit STUDY {name} --until DATE`")
        return
    password = (
        None if no_password else typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    )
    command.add(_settings(), name, role, team, speaker, password, all_teams=all_teams)
    typer.echo(f"{name} may sign in as {role.value}")


@accounts.command("list")
def list_people() -> None:
    """List all accounts."""
    from stream_app.commands import people as command

    for person in command.list_accounts(_settings()):
        teams = "all teams" if person.all_teams else person.team or ""
        typer.echo(f"{person.name:30} {person.role.value:11} {teams}")


@accounts.command("team")
def change_team(
    name: Name,
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    all_teams: Annotated[bool, typer.Option("--all-teams", help="All teams.")] = False,
) -> None:
    """Change which teams a supervisor reads, at once."""
    from stream_app.commands import people as command

    command.change_teams(_settings(), name, team, all_teams=all_teams)
    typer.echo(f"{name} reads {'all teams' if all_teams else team}")


@accounts.command("password")
def change_password(name: Name) -> None:
    """Change the password of an account."""
    from stream_app.commands import people as command

    password = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    command.change_password(_settings(), name, password)
    typer.echo(f"{name} has a new password")


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
    from stream_app.commands import people as command
    from stream_app.store.people import IngestScope

    sends = IngestScope(team, domain, channel)
    typer.echo(command.new_token(_settings(), name, label, days, sends, may or ()))


@accounts.command("revoke")
def revoke_token(
    name: Name, label: Annotated[str, typer.Option(help="Label of the token.")]
) -> None:
    """Revoke a person's tokens with this label."""
    from stream_app.commands import people as command

    command.revoke(_settings(), name, label)
    typer.echo(f"the tokens {label} of {name} are revoked")


@accounts.command("disable")
def disable_person(name: Name) -> None:
    """Disable an account and its tokens; the person's data is kept."""
    from stream_app.commands import people as command

    command.disable(_settings(), name)
    typer.echo(f"{name} can no longer sign in")


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
    from stream_app.commands import studies as command

    made = command.admit(_settings(), study, account, until.replace(tzinfo=UTC))
    typer.echo(f"{account} may export text for {study} before {made.until:%Y-%m-%d}")


@approved.command("end")
def end_study(study: Study) -> None:
    """Refuse further exports of a study to all its accounts."""
    from stream_app.commands import studies as command

    typer.echo(f"{study} has ended for {command.end(_settings(), study)} account(s)")


@approved.command("list")
def list_studies() -> None:
    """List all studies with their accounts and ends."""
    from stream_app.commands import studies as command

    for each in command.every(_settings()):
        typer.echo(f"{each.study_id:30} {each.person:30} until {each.until:%Y-%m-%d}")


@alert_rules.command("check")
def check_rules(
    file: Annotated[Path, typer.Argument(help="File of rules.")],
    bundle: Bundle = None,
) -> None:
    """Check a file of rules; print its rules, or all errors with their lines."""
    from stream_app.commands import rules as command
    from stream_app.worker.rule_loading import load_rules

    command.show(load_rules(file, _heads(bundle)), Console())


@alert_rules.command("variables")
def list_variables(bundle: Bundle = None) -> None:
    """Print the rule variables of a bundle as a Markdown table."""
    from stream_app.commands import rules as command
    from stream_app.core.head_variables import catalogue

    typer.echo(command.variables(catalogue(_heads(bundle))))


def _heads(bundle: Path | None) -> Sequence[Head]:
    """The heads in the bundle's manifest, without loading the model."""
    return bootstrap.bundle(_settings(bundle)).manifest.heads


@alert_rules.command("test")
def try_rules(
    file: Annotated[Path, typer.Argument(help="File of rules.")],
    sources: Annotated[list[Path], typer.Argument(help="JSON lines files or ConvoKit folders.")],
    low: Annotated[float, typer.Option(min=1, max=5, help="A rating up to this is low.")] = 2.0,
    good: Annotated[float, typer.Option(min=1, max=5, help="A rating from this on is good.")] = 4.0,
    live: Annotated[
        bool, typer.Option(help="Also fire time rules of sessions without an end.")
    ] = False,
    assume_consent: Annotated[
        bool, typer.Option(help="Score turns without `consent`: it was given elsewhere.")
    ] = False,
) -> None:
    """Backtest rules on recorded sessions: alerts, detections and false alarms."""
    from stream_app.commands import rule_backtest
    from stream_app.commands import rules as command
    from stream_app.commands.score import with_progress

    changes: dict[str, object] = {"rules": file}
    if assume_consent:
        changes["require_consent"] = False
    settings = _settings(None, **changes)
    pipeline = bootstrap.pipeline(settings, bootstrap.scorer(settings))
    shown = with_progress(sources, _progress_console())
    within = settings.idle_after if live else None
    backtest = rule_backtest.run(pipeline, shown, within, settings.plausible_times)
    alerting = pipeline.environment.alerting
    command.report(backtest, alerting.rules, Console(), low, good)
    for rule in alerting.rules.rules:
        failed = sum(n for source, n in alerting.failures.items() if rule.uses(source))
        if failed:
            typer.echo(f"{rule.name} failed to evaluate {failed} times", err=True)
    if backtest.withheld or backtest.dead_lettered:
        typer.echo(
            f"{backtest.withheld} events were withheld without consent (--assume-consent), "
            f"{backtest.dead_lettered} dead-lettered (`rapport score` prints why)",
            err=True,
        )


@usual.command("refresh")
def refresh_baselines(
    days: Annotated[int, typer.Option(min=1, help="Use the sessions of this many days.")] = 90,
    sessions: Annotated[
        int, typer.Option(min=2, help="Minimum number of sessions of a baseline.")
    ] = 20,
) -> None:
    """Recompute the baselines from the ended sessions in the database."""
    from stream_app.store import baselines as command

    settings = _settings()
    bundle = bootstrap.bundle(settings).manifest.bundle_id
    store = bootstrap.store(settings)
    found = command.refresh(store, bundle, datetime.now(UTC), days, sessions)
    typer.echo(
        f"{found.sessions} ended sessions; baselines of {found.channels} channels and "
        f"{found.counsellors} counsellors. New sessions use them."
    )


@database.command()
def upgrade() -> None:
    """Create the tables, or upgrade them to this release's schema, and the reporting views."""
    from stream_app.analytics import schema as reporting
    from stream_app.store import schema

    settings = _settings()
    store = bootstrap.store(settings)
    before, newest = schema.revisions(store)
    made = reporting.upgrade(store, settings.database_read_role, settings.bundle)
    typer.echo(f"schema {before or 'none'} → {newest}")
    _tell_of_views(made)


@database.command("views")
def make_views() -> None:
    """Recreate the reporting views, after the first use of a bundle with other heads."""
    from stream_app.analytics import schema as reporting

    settings = _settings()
    store = bootstrap.store(settings)
    _tell_of_views(reporting.create_views(store, settings.database_read_role, settings.bundle))


@longitudinal.command("update")
def update_rollups() -> None:
    """Take up the sessions that ended or changed; workers do so every ten minutes."""
    from stream_app.analytics import rollups

    typer.echo(f"{sum(rollups.update(bootstrap.store(_settings())))} changes taken up")


@longitudinal.command("rebuild")
def rebuild_rollups() -> None:
    """Recompute the roll-ups from all sessions."""
    from stream_app.analytics import rollups

    typer.echo(f"{rollups.rebuild(bootstrap.store(_settings()))} sessions rolled up")


def _tell_of_views(made: "Made") -> None:
    typer.echo(f"{made.views} reporting views")
    for role in made.lacking_roles:
        typer.echo(
            f'no role {role}: this account may not create roles. Run CREATE ROLE "{role}" NOLOGIN '
            "as an administrator, then `rapport db views`",
            err=True,
        )


@key_commands.command("new")
def new_key(
    file: Annotated[
        Path | None, typer.Argument(help="Put it first into this file; without one, print it.")
    ] = None,
) -> None:
    """Make a key. In a file of master keys the first one encrypts, the others only decrypt."""
    from stream_app.commands import keys as command

    made = command.new(file)
    typer.echo(made if file is None else f"key {made} is the first in {file}")


@key_commands.command("rotate")
def rotate_keys(
    destroy: Annotated[
        bool,
        typer.Option(
            "--destroy-old", help="Then remove the old keys: older backups become unreadable."
        ),
    ] = False,
) -> None:
    """Encrypt the keys of all sessions with the first master key; may be interrupted."""
    from stream_app.commands import keys as command

    settings = _settings()
    done = 0
    for done in command.rotate(settings):
        typer.echo(f"{done} keys", err=True)
    typer.echo(f"{done} keys of sessions are encrypted with the first master key now")
    if destroy:
        gone = command.destroy_old(settings)
        typer.echo(f"destroyed: {', '.join(gone) or 'no key, there was one only'}")


@key_commands.command("encrypt")
def encrypt_stored() -> None:
    """Encrypt what a release before 0.2 stored in plain; workers may go on."""
    from collections import Counter

    from stream_app.commands import keys as command

    done: Counter[str] = Counter()
    for piece in command.encrypt(_settings()):
        done += piece
    for name, count in done.most_common():
        typer.echo(f"{count:8}  {name}")
    typer.echo(f"{done.total():8}  values encrypted")


@key_commands.command("move")
def move_key() -> None:
    """Move the pseudonym key out of the database to RAPPORT_PSEUDONYM_KEY_FILE."""
    from stream_app.commands import keys as command

    typer.echo(f"the pseudonym key is in {command.move(_settings())} now: back it up")


@key_commands.command("rotate-pseudonyms")
def rotate_pseudonyms() -> None:
    """Give every speaker a new pseudonym. Stop workers and consoles before."""
    from stream_app.commands import keys as command

    count = command.rotate_pseudonyms(_settings())
    typer.echo(f"{count} pseudonyms replaced; start workers and consoles again")


@trail.command("verify")
def verify_trail(
    head: Annotated[
        str | None,
        typer.Option(help="ID:HASH that an earlier check printed: detects a shortened trail."),
    ] = None,
) -> None:
    """Check that no entry of the audit trail was changed, removed, inserted or moved."""
    from stream_app.commands import audit as command

    found = command.verify(_settings(), head)
    typer.echo(command.summary(found))
    typer.echo(f"head {found.head}")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rapport {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  # its callback ends the command
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Parse the options before the command."""
    if context.invoked_subcommand != "doctor":  # it reports these as a problem
        for warning in setting_names.warnings(os.environ):
            typer.echo(f"rapport: {warning}", err=True)


def _shown(name: str, value: object) -> str:
    match value:
        case SecretStr() if name in ("database_url", "database_read_url"):
            from stream_app.store.connection import masked_url

            return masked_url(value.get_secret_value())
        case SecretStr():
            return "********"
        case None:
            return ""
        case _:
            return str(getattr(value, "value", value))


def main() -> None:
    """Run the command; print a RapportError as one line instead of a traceback."""
    try:
        app()
    except ValidationError as problem:
        for error in problem.errors():
            name = "_".join(str(part) for part in error["loc"]).upper()
            typer.echo(f"RAPPORT_{name}: {error['msg']}", err=True)
        raise SystemExit(2) from None
    except RapportError as problem:
        typer.echo(f"rapport: {problem}", err=True)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
