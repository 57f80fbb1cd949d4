"""Analyses, reports, exports and drift."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from stream_app.cli.options import DAY, in_utc, record_read, settings_for

commands = typer.Typer()
DRIFT_RULE: Final = "rapport-drift"
"""The name of the rule in notifications about drift."""


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


@commands.command()
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
    fewest_days: Annotated[int, typer.Option(min=0, help="Minimum stay of a counsellor.")] = 182,
    calendar: Annotated[bool, typer.Option(help="Curves by calendar week.")] = False,
    at: Annotated[
        datetime | None,
        typer.Option(
            formats=DAY,
            help="service-levels: date of a change; drift: begin of the current period.",
        ),
    ] = None,
    trained: Annotated[
        str | None,
        typer.Option(
            help="service-levels: the team that --at concerns; the others are the comparison."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option(help="Exit with status 1 if there is a warning (drift).")
    ] = False,
    curves: Annotated[bool, typer.Option(help="Print the points of the curves, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    form: Annotated[
        Literal["table", "json", "csv", "md"],
        typer.Option(
            "--format",
            help="json: everything; csv: estimates and curves; md: estimates as Markdown.",
        ),
    ] = "table",
) -> None:
    """Answer a question about the whole platform, with intervals. See docs/analyses.md."""
    from rich.console import Console

    from stream_app import extras

    extras.require_analytics()
    from stream_app.analytics.questions.questions import QUESTIONS, Asked
    from stream_app.cli import analyses
    from stream_app.findings.analysis_files import FileFormat, encoded
    from stream_app.store.sessions.scope import Scope

    if as_json and form not in ("table", "json"):
        raise typer.BadParameter(f"--json and --format {form} exclude each other")
    if question not in QUESTIONS:
        raise typer.BadParameter(f"known questions: {', '.join(QUESTIONS)}")
    known = QUESTIONS[question].measures
    if not set(measure or ()) <= set(known):
        raise typer.BadParameter(f"{question} has the measures {', '.join(known) or '(none)'}")
    if trained is not None and (team is not None or at is None):
        raise typer.BadParameter("--trained needs --at, and all teams")
    asked = Asked(
        scope=Scope(team=team),
        since=in_utc(since),
        until=in_utc(until),
        measures=tuple(measure or ()),
        fewest_turns=fewest_turns,
        fewest_days=fewest_days,
        calendar=calendar,
        at=in_utc(at),
        trained=trained,
    )
    found = analyses.answer(settings_for(), question, asked)
    if form == "table" and not as_json:
        analyses.show(found, Console(), curves=curves)
    else:
        typer.echo(encoded(found, FileFormat("json" if as_json else form)), nl=form != "csv")
    raise typer.Exit(1 if check and found.warnings else 0)


@commands.command()
def report(
    since: Annotated[datetime, typer.Option("--from", formats=DAY, help="First day.")],
    until: Annotated[datetime, typer.Option("--to", formats=DAY, help="Last day.")],
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write.", dir_okay=False)
    ] = Path("rapport-report.html"),
    fewest_days: Annotated[int, typer.Option(min=0, help="Minimum stay of a counsellor.")] = 182,
    at: Annotated[
        datetime | None,
        typer.Option(
            formats=DAY, help="Date of a change; default: the last training of RAPPORT_MARKED_DAYS."
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="All curves and tables instead of two pages.")
    ] = False,
) -> None:
    """Write a report of two printed pages: what changed, how sure. See docs/analyses.md."""
    from stream_app import extras

    extras.require_analytics()
    from stream_app.cli import analyses
    from stream_app.web.console.analytics import report as every
    from stream_app.web.console.analytics import summary

    if until < since:
        raise typer.BadParameter("--to is before --from")
    first, last = since.date(), until.date()
    if full:
        wanted = every.Wanted(team, first, last, fewest_days)
        size = analyses.write_full_report(settings_for(), wanted, output)
    else:
        day = None if at is None else at.date()
        about = summary.Wanted(team, first, last, day, fewest_days=fewest_days)
        size = analyses.write_report(settings_for(), about, output)
    typer.echo(f"{output}: {size // 1024} KiB")


@commands.command()
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
    """Write a table, or what is stored about a person, to a file. See docs/api.md, Exports."""
    if (table is None) == (speaker is None):
        raise typer.BadParameter("name either a table or --speaker")
    if speaker is not None:
        if any((since, until, team, domain, study, account)):
            raise typer.BadParameter("--speaker takes no other option than --out")
        _export_person(speaker, out)
        return
    from stream_app import bootstrap
    from stream_app.findings.exports import tables
    from stream_app.findings.exports.formats import Format
    from stream_app.findings.exports.rollups import RollUp
    from stream_app.inference import intent_files
    from stream_app.store.sessions.sessions import SessionFilter

    if table is None or table not in tables.TABLES:
        raise typer.BadParameter(f"known tables: {', '.join(tables.TABLES)}")
    if rollup not in {each.value for each in RollUp}:
        raise typer.BadParameter(f"known roll-ups: {', '.join(each.value for each in RollUp)}")
    if (study is None) != (account is None):
        raise typer.BadParameter("--study and --account belong together")
    if out.exists():
        raise typer.BadParameter(f"{out} exists")
    chosen = SessionFilter(
        team=team, domain=domain, started_from=in_utc(since), started_before=in_utc(until)
    )
    whose = tables.ForStudy(study, account) if study and account else None
    wanted = tables.Wanted(table, chosen, Format(form), RollUp(rollup), whose)
    settings = settings_for()
    with bootstrap.opened(settings, privacy=True) as store:
        store.redactor = bootstrap.redactor(settings)
        known = intent_files.load(settings.intents).names
        size = tables.write(store, wanted, out, settings.restrictions.everywhere, known)
    typer.echo(f"{out}: {size:,} bytes")


def _export_person(speaker: str, out: Path) -> None:
    from stream_app import bootstrap
    from stream_app.findings.exports import person

    settings = settings_for()
    with bootstrap.opened(settings, privacy=True) as store:
        counts = person.export(store, settings.archive, speaker, out)
    for name, rows in counts.most_common():
        typer.echo(f"{rows:8}  {name}")
    typer.echo(f"{out} has text: give it to this person only")


drift = typer.Typer(
    no_args_is_help=True, help="Changes of the data or the model, each reported once."
)


@drift.command("check")
def check_drift(
    notify: Annotated[
        str | None, typer.Option(help="Send new changes to this notification target.")
    ] = None,
    fail: Annotated[
        bool, typer.Option("--fail", help="Exit with status 1 if there is a new change.")
    ] = False,
) -> None:
    """Look for changes and record the new ones; run it daily. See docs/analyses.md."""
    from stream_app import extras

    extras.require_analytics()
    from datetime import UTC

    import structlog

    from stream_app import bootstrap
    from stream_app.analytics.questions import drift_watch
    from stream_app.bootstrap import notifier_process
    from stream_app.notifications.notification import notice
    from stream_app.processes import notifier
    from stream_app.store.accounts.audit import AuditAction

    settings = settings_for()
    targets = [] if notify is None else notifier.chosen(settings, notify)
    record_read(settings, AuditAction.READ_STATISTICS, "drift check")
    with bootstrap.opened(settings) as store:
        new = drift_watch.check(store, datetime.now(UTC), settings.archive)
    found = [drift_watch.words(each) for each in new]
    for each, said in zip(new, found, strict=True):
        structlog.get_logger(__name__).warning("drift.changed", change=each.change_id, words=said)
        typer.echo(said)
    for target in targets if new else ():
        message = notice(DRIFT_RULE, "\n".join(found), datetime.now(UTC))
        notifier_process.channel(settings, target).send(message)
    raise typer.Exit(1 if fail and found else 0)


@drift.command("list")
def list_drift(
    every: Annotated[bool, typer.Option("--all", help="Acknowledged ones, too.")] = False,
) -> None:
    """Changes that nobody has acknowledged, newest first."""
    from stream_app import extras

    extras.require_analytics()
    from stream_app import bootstrap
    from stream_app.analytics.questions.drift_watch import words
    from stream_app.store.alerts import drift_changes

    with bootstrap.opened(settings_for()) as store:
        for each in drift_changes.all_of(store, unacknowledged=not every):
            by = f"  acknowledged by {each.person}" if each.person else ""
            typer.echo(f"{each.change_id}  {words(each)}{by}")


@drift.command("acknowledge")
def acknowledge_drift(
    change_id: Annotated[str, typer.Argument(help="As printed by rapport drift list.")],
) -> None:
    """Make a change the baseline: its measure is compared with what came since."""
    from stream_app import extras

    extras.require_analytics()
    from stream_app import bootstrap
    from stream_app.analytics.questions.drift_watch import words
    from stream_app.store.accounts import audit
    from stream_app.store.accounts.audit import AuditAction
    from stream_app.store.alerts import drift_changes

    with bootstrap.opened(settings_for()) as store:
        action = AuditAction.ACKNOWLEDGE_DRIFT
        audit.record(store, audit.COMMAND_LINE, action, detail=change_id)
        changed = drift_changes.acknowledge(store, change_id, audit.COMMAND_LINE)
    typer.echo(f"acknowledged: {words(changed)}")
