"""Shows live sessions, newest scores and alerts in the terminal, without text."""

from collections import deque
from contextlib import AbstractAsyncContextManager

from aiokafka import AIOKafkaConsumer
from msgspec import Struct
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from stream_app.contracts import scores
from stream_app.contracts.events import Role
from stream_app.contracts.scores import (
    MECHANISMS,
    Alert,
    AlertState,
    Output,
    SessionScore,
    SessionStatus,
    TurnScore,
)
from stream_app.core.measures.heads import STRATEGY, badge_of, in_words
from stream_app.settings import Settings
from stream_app.worker.kafka.refusal import started
from stream_app.worker.kafka.topics import client_options

ROWS = 12
NEWEST = 8
BARS = "▁▂▃▄▅▆▇█"


class Card(Struct):
    """One live session."""

    score: SessionScore
    risks: list[float]


class Wall:
    """The terminal's view of live sessions, updated by messages."""

    def __init__(self) -> None:
        self.cards: dict[str, Card] = {}
        self.newest: deque[TurnScore] = deque(maxlen=NEWEST)
        self.alerts: deque[Alert] = deque(maxlen=NEWEST)
        self.turn_scores = 0
        self.fired = 0

    def take(self, message: Output) -> None:
        """Update the view with a message."""
        match message:
            case TurnScore():
                self.turn_scores += 1
                if message.role is Role.COUNSELLOR:
                    self.newest.append(message)
            case SessionScore():
                card = self.cards.setdefault(message.session_id, Card(message, []))
                card.score = message
                card.risks += [risk for _, risk in message.risk_by_turn]
            case Alert(state=AlertState.FIRING | AlertState.RESOLVED):
                self.fired += message.state is AlertState.FIRING
                self.alerts.append(message)
            case _:
                pass  # a pending condition is no alert

    def forget(self, session_id: str) -> None:
        """Drop an erased session."""
        self.cards.pop(session_id, None)
        for score in [score for score in self.newest if score.session_id == session_id]:
            self.newest.remove(score)
        for alert in [alert for alert in self.alerts if alert.session_id == session_id]:
            self.alerts.remove(alert)

    def render(self) -> RenderableType:
        """Render the wall, with the highest risk first."""
        return Group(self._sessions(), self._newest(), self._alerts())

    def _sessions(self) -> Table:
        live = [c for c in self.cards.values() if c.score.status is SessionStatus.OPEN]
        table = Table(
            title=f"{len(live)} live sessions · {len(self.cards) - len(live)} ended · "
            f"{self.turn_scores} turn scores · {self.fired} alerts",
            title_justify="left",
            expand=True,
        )
        badges = map(badge_of, MECHANISMS)
        for name in ("session", "turns", *badges, "risk", "since the start"):
            table.add_column(name, justify="left" if name.startswith("s") else "right")
        worst = sorted(live, key=lambda c: -(c.score.low_empathy_risk or 0.0))
        for card in worst[:ROWS]:
            table.add_row(
                Text(card.score.session_id),
                str(card.score.turns),
                *(_mean(card.score, name) for name in MECHANISMS),
                _risk(card.score.low_empathy_risk),
                sparkline(card.risks),
            )
        if len(worst) > ROWS:
            table.caption = f"and {len(worst) - ROWS} more"
        return table

    def _newest(self) -> Table:
        table = Table(title="newest counsellor turns", title_justify="left", expand=True)
        for name in ("session", "turn", "stage", "levels", "strategy", "confidence"):
            table.add_column(name)
        for score in self.newest:
            table.add_row(*map(Text, turn_cells(score)))
        return table

    def _alerts(self) -> RenderableType:
        if not self.alerts:
            return Text("all quiet", style="green")
        lines = [alert_line(alert) for alert in self.alerts]
        return Text("\n").join(lines)


class Fitted(Struct, frozen=True):
    """A view above lines that stay in sight: it is cut where the terminal is not high enough."""

    view: RenderableType
    below: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        kept = console.render_lines(self.below, options) if self.below.plain else []
        room = max(0, console.height - len(kept) - 1)
        for line in [*console.render_lines(self.view, options)[:room], *kept]:
            yield from line
            yield Segment.line()


def sparkline(values: list[float], width: int = 24) -> str:
    """Format values in [0, 1] as bars.

    >>> sparkline([0.0, 0.5, 1.0])
    '▁▅█'
    """
    return "".join(BARS[round(value * (len(BARS) - 1))] for value in values[-width:])


def turn_cells(score: TurnScore) -> tuple[str, ...]:
    """Format a turn score as table cells."""
    levels = score.expressed.levels
    others = [name for name in levels if name not in MECHANISMS]
    known = [name for name in (*MECHANISMS, *others) if name in levels]
    strategy = score.expressed.distribution(STRATEGY) or {}
    return (
        score.session_id,
        str(score.seq),
        score.stage.value,
        " ".join(f"{badge_of(name)} {levels[name].level}" for name in known),
        in_words(max(strategy, key=strategy.__getitem__)) if strategy else "",
        f"{score.confidence:.2f}",
    )


def alert_line(alert: Alert) -> Text:
    """Format a firing or resolved alert as a line."""
    style = "bold red" if alert.state is AlertState.FIRING else "green"
    where = f"after turn {alert.seq}" if alert.seq is not None else "at the end"
    return Text(
        f"ALERT {alert.state.value:9} {alert.rule} · {alert.session_id} · {_numbers(alert)}{where}",
        style=style,
    )


def _numbers(alert: Alert) -> str:
    value = "" if alert.value is None else f"{alert.value:.2f} "
    return value if alert.threshold is None else f"{value}(threshold {alert.threshold:.2f}) "


def messages(settings: Settings, from_start: bool) -> AbstractAsyncContextManager[AIOKafkaConsumer]:
    """Start a consumer of the score and alert topics, without a consumer group."""
    client = AIOKafkaConsumer(
        settings.turn_score_topic,
        settings.session_score_topic,
        settings.alert_topic,
        **client_options(settings),
        auto_offset_reset="earliest" if from_start else "latest",
        isolation_level="read_committed",
    )
    return started(client, settings)


async def show(
    settings: Settings,
    console: Console,
    below: Text | None = None,
    *,
    from_start: bool = False,
) -> None:
    """Show the wall until cancelled; print plain lines if the output is not a terminal. Audited.

    ``below``: lines that stay in sight in a terminal.

    Raises:
        BrokerUnavailable: no broker answers.
    """
    wall = Wall()
    async with messages(settings, from_start) as client:
        if not console.is_terminal:
            async for record in client:
                if record.value is not None:
                    _print_line(console, scores.decode(record.value))
            return
        below = below or Text()
        with Live(Fitted(wall.render(), below), console=console, refresh_per_second=4) as live:
            async for record in client:
                if record.value is not None:
                    wall.take(scores.decode(record.value))
                else:
                    wall.forget((record.key or b"").decode("utf-8", "replace"))
                live.update(Fitted(wall.render(), below))


def _print_line(console: Console, message: Output) -> None:
    match message:
        case TurnScore(role=Role.COUNSELLOR):
            cells = *turn_cells(message), _risk(message.low_empathy_risk)
            console.print("score", *cells, markup=False)
        case Alert(state=AlertState.FIRING | AlertState.RESOLVED):
            console.print(alert_line(message))
        case SessionScore(status=SessionStatus.CLOSED):
            cells = message.session_id, "risk", _risk(message.low_empathy_risk)
            console.print("ended", *cells, markup=False)
        case _:
            pass


def _mean(score: SessionScore, name: str) -> str:
    mechanism = score.mechanisms.get(name)
    return f"{mechanism.mean:.2f}" if mechanism else "–"


def _risk(risk: float | None) -> str:
    return "–" if risk is None else f"{risk:.2f}"
