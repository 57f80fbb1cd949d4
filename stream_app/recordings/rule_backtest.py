"""Backtests rules: their alerts on recorded sessions, compared with the clients' ratings."""

import statistics
from collections import defaultdict
from collections.abc import Container, Iterator
from datetime import timedelta
from typing import Final

from msgspec import Struct, field

from stream_app.contracts import plausible
from stream_app.contracts.events import Outcome, OutcomeKind, Role
from stream_app.contracts.plausible import PlausibleTimes
from stream_app.contracts.scores import Alert, AlertState, Stage, TurnScore
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.session_state import Versioned
from stream_app.recordings import offline_batches
from stream_app.recordings.past_of_file import EVERY_SESSION, PastOfFile

BATCH: Final = 256


class Firing(Struct, frozen=True):
    """An alert that fired; ``counsellor_turn`` counts from 1, and is 0 before the first."""

    alert: Alert
    counsellor_turn: int


class RuleFigures(Struct, frozen=True):
    """Figures of one rule over all sessions; None where they need ratings and there are none."""

    rule: str
    sessions: int
    alerts: int
    sessions_with_alert: int
    false_alarms_per_100_good: float | None
    detected_per_100_low: float | None
    median_turn_of_detection: float | None


class Backtest(Struct):
    """Alerts, sessions and ratings of a backtest; several ratings of a session are averaged.

    ``valid``: number of events that were not dead-lettered.
    """

    firings: list[Firing] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    ratings: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    withheld: int = 0
    dead_lettered: int = 0
    valid: int = 0
    _turns: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, result: BatchResult) -> None:
        """Add the result of a batch."""
        self.withheld += result.counts["withheld"]
        self.dead_lettered += len(result.dead_letters)
        self.valid += result.counts.total() - result.counts["dead-letter"]
        self.sessions |= {score.session_id for score in result.turn_scores}
        for score in result.turn_scores:
            self._count(score)
        for outcome in result.outcomes:
            self._rate(outcome)
        for alert in result.alerts:
            if alert.state is AlertState.FIRING:
                self.firings.append(Firing(alert, self._turn_of(alert)))

    def rated(self, low: float, good: float) -> tuple[set[str], set[str]]:
        """Scored sessions rated at most ``low``, and those rated at least ``good``."""
        means = {key: statistics.fmean(found) for key, found in self.ratings.items()}
        known = self.sessions & means.keys()
        return (
            {key for key in known if means[key] <= low},
            {key for key in known if means[key] >= good},
        )

    def figures(self, rule: str, low: set[str], good: set[str]) -> RuleFigures:
        """The figures of one rule, given the sessions with a low and with a good rating."""
        own = [firing for firing in self.firings if firing.alert.rule == rule]
        first: dict[str, int] = {}
        for firing in own:
            first.setdefault(firing.alert.session_id, firing.counsellor_turn)
        detected = [turn for session, turn in first.items() if session in low]
        return RuleFigures(
            rule=rule,
            sessions=len(self.sessions),
            alerts=len(own),
            sessions_with_alert=len(first),
            false_alarms_per_100_good=_per_100(len(good & first.keys()), len(good)),
            detected_per_100_low=_per_100(len(detected), len(low)),
            median_turn_of_detection=statistics.median(detected) if detected else None,
        )

    def _count(self, score: TurnScore) -> None:
        if score.role is Role.COUNSELLOR and (score.stage is Stage.PROVISIONAL or score.late):
            self._turns[score.session_id].append(score.seq)

    def _rate(self, outcome: Outcome) -> None:
        if outcome.kind is OutcomeKind.RATING and outcome.seq is None:
            self.ratings[outcome.session_id].append(outcome.value)

    def _turn_of(self, alert: Alert) -> int:
        seqs = self._turns[alert.session_id]
        return sum(seq <= alert.seq for seq in seqs) if alert.seq is not None else len(seqs)


def run(
    pipeline: Pipeline,
    events: Iterator[bytes],
    live: timedelta | None = None,
    times: PlausibleTimes = plausible.DEFAULT,
    revised: Container[str] = EVERY_SESSION,
) -> Backtest:
    """Score the events and collect the rules' alerts.

    Args:
        pipeline: has the rules to backtest.
        events: from ``event_files.raw_events``.
        live: also fire time rules of sessions without an end, as a worker would within this time
            after their last turn.
        times: range of plausible times; other events become dead letters.
        revised: sessions of which turns are edited or deleted, as far as it is known.
    """
    backtest = Backtest()
    states: dict[str, Versioned] = {}
    for result in offline_batches.process(
        pipeline, events, states, BATCH, times, PastOfFile(revised)
    ):
        backtest.add(result)
    if live is not None:
        for key, known in states.items():
            last = known.state.last_activity_at
            if last is not None:
                backtest.add(pipeline.fire_due({key: known}, last + live))
    return backtest


def _per_100(part: int, whole: int) -> float | None:
    return 100.0 * part / whole if whole else None
