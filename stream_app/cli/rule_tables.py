"""Prints rules, backtests and rule variables."""

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stream_app.core.rules.rules import Duration, RuleSet
from stream_app.core.rules.variables import CATALOGUE, OLD_NAMES, Catalogue
from stream_app.recordings.rule_backtest import Backtest


def show(rules: RuleSet, console: Console) -> None:
    """Print the rules of a valid file as a table."""
    table = Table()
    for name in ("rule", "severity", "when", "for", "cool-down"):
        table.add_column(name, overflow="fold")
    for rule in rules.rules:
        cells = (
            rule.name,
            rule.severity.value,
            " ".join(rule.when.source.split()),
            duration_text(rule.lasts),
            duration_text(rule.cooldown),
        )
        table.add_row(*map(escape, cells))
    console.print(table)
    console.print(f"{len(rules.rules)} rules, digest {rules.digest}", highlight=False)


def report(backtest: Backtest, rules: RuleSet, console: Console, low: float, good: float) -> None:
    """Print each alert of the backtest, then a summary of each rule."""
    for firing in backtest.firings:
        alert = firing.alert
        number = "" if alert.value is None else f"  value {alert.value:.3f}"
        console.print(
            f"{alert.session_id}  {alert.rule}  seq {alert.seq}  {alert.occurred_at:%F %T}{number}"
            f"  {alert.reason}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    bad, well = backtest.rated(low, good)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("rule", no_wrap=True)
    for name in (
        "sessions",
        "alerts",
        "with an alert",
        "false, % of good",
        "found, % of low",
        "at turn",
    ):
        table.add_column(name, justify="right", min_width=max(map(len, name.split())))
    for rule in rules.rules:
        found = backtest.figures(rule.name, bad, well)
        table.add_row(
            escape(found.rule),
            str(found.sessions),
            str(found.alerts),
            str(found.sessions_with_alert),
            _figure(found.false_alarms_per_100_good),
            _figure(found.detected_per_100_low),
            _figure(found.median_turn_of_detection),
        )
    console.print(table)
    console.print(
        f"low: {len(bad)} sessions rated {low:g} or less; good: {len(well)} rated {good:g} or "
        "more; at turn: median counsellor turn of the first alert in low sessions",
        highlight=False,
    )


def variables(catalogue: Catalogue = CATALOGUE) -> str:
    """Format a catalogue of variables as the Markdown table of docs/rules.md."""
    lines = ["| variable | type | unit | meaning | absent |", "| --- | --- | --- | --- | --- |"]
    for found in catalogue.values():
        if found.now:
            continue
        old = OLD_NAMES.get(found.name)
        says = f"{found.says}; was `{old}`" if old else found.says
        cells = (f"`{found.name}`", found.kind.value, found.unit, says, found.absent)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def duration_text(duration: Duration) -> str:
    """Format a duration as in a file of rules.

    >>> duration_text(Duration(turns=2))
    '2 turns'
    """
    if duration.time is not None:
        return f"{duration.time.total_seconds():.0f}s"
    return f"{duration.turns} turn{'' if duration.turns == 1 else 's'}"


def _figure(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"
