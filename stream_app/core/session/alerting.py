"""Evaluates the rules in force for a session: after a turn, at a due time, at its end."""

from collections import Counter
from datetime import datetime

from msgspec import structs

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Alert, AlertState, TurnScore
from stream_app.core.measures.empathy import EmpathyModel
from stream_app.core.measures.watch import Facts
from stream_app.core.rules import alerts
from stream_app.core.rules.alert_reasons import BUNDLE_GONE
from stream_app.core.rules.alerts import AlertStatus, Cause, Moment
from stream_app.core.rules.rules import NO_RULES, RuleSet
from stream_app.core.rules.variables import Reading
from stream_app.core.session.session_state import SessionState


class Alerting:
    """Holds the rules; the session's state has each rule's status.

    ``bundle``: whose sessions it is for. ``failures``: number of failed evaluations of expressions;
    cleared when reported.
    """

    def __init__(self, rules: RuleSet, model: EmpathyModel | None, bundle: str) -> None:
        self._model = model
        self.bundle = bundle
        self.rules = NO_RULES
        self.failures: Counter[str] = Counter()
        self._names: frozenset[str] = frozenset()
        self.adopt(rules)

    def adopt(self, rules: RuleSet) -> None:
        """Replace the rules, for open sessions too."""
        self.rules = rules
        self._names = rules.names

    def observe(self, state: SessionState, score: TurnScore, facts: Facts) -> list[Alert]:
        """Evaluate the rules after the first score of a turn was added to the session."""
        clock = state.watch.reach(score.occurred_at)
        reading = self._reading(state, facts, clock)
        moment = self._moment(state, score.seq, clock, score.role is Role.COUNSELLOR)
        found = self._end_removed(state, moment)
        for rule in self.rules.rules:
            status = state.alerts.get(rule.name) or AlertStatus()
            found += alerts.observe(rule, status, reading, moment)
            if status.episode:
                state.alerts[rule.name] = status
        return found

    def reconsider(self, state: SessionState, seq: int | None, facts: Facts) -> list[Alert]:
        """Evaluate the rules again after a turn was edited or deleted; no turn is counted.

        Rules that count counsellor turns wait for the next one.
        """
        clock = state.watch.clock
        if clock is None:
            return []
        reading = self._reading(state, facts, clock)
        moment = self._moment(state, seq, clock)
        found: list[Alert] = []
        for rule in self.rules.rules:
            status = state.alerts.get(rule.name) or AlertStatus()
            found += alerts.observe(rule, status, reading, moment)
            if status.episode:
                state.alerts[rule.name] = status
        return found

    def fire_overdue(self, state: SessionState, now: datetime, facts: Facts) -> list[Alert]:
        """Fire the timed rules that are due by ``now``; call before adding a score of ``now``."""
        due = [
            (status.due_at, place, rule, status)
            for place, rule in enumerate(self.rules.rules)
            if (status := state.alerts.get(rule.name)) is not None
            and status.due_at is not None
            and status.due_at <= now
        ]
        found = self._end_overdue_removed(state, now)
        for due_at, _, rule, status in sorted(due, key=lambda item: item[:2]):
            clock = state.watch.reach(due_at)
            reading = self._reading(state, facts, due_at)
            moment = self._moment(state, state.watch.last_seq, clock)
            found += alerts.fire_overdue(rule, status, reading, moment)
        return found

    def _end_overdue_removed(self, state: SessionState, now: datetime) -> list[Alert]:
        due = (
            status.due_at
            for name, status in state.alerts.items()
            if name not in self._names and status.due_at is not None and status.due_at <= now
        )
        at = min(due, default=None)
        if at is None:
            return []
        return self._end_removed(state, self._moment(state, None, at))

    def close(
        self, state: SessionState, at: datetime, facts: Facts, cause: Cause = Cause.END
    ) -> list[Alert]:
        """End all alerts because the session has ended or its next turns are withheld."""
        if not any(status.state in _LIVE for status in state.alerts.values()):
            return []
        clock = state.watch.reach(at)
        moment = self._moment(state, None, clock, cause=cause)
        reading = self._reading(state, facts, clock)
        found = self._end_removed(state, moment)
        for rule in self.rules.rules:
            status = state.alerts.get(rule.name)
            if status is not None:
                found += alerts.close(rule, status, reading, moment)
        return found

    def lapse(self, state: SessionState, at: datetime, facts: Facts, cause: Cause) -> list[Alert]:
        """End pending alerts because a turn is not scored; firing ones go on."""
        clock = state.watch.reach(at)
        moment = self._moment(state, None, clock, cause=cause)
        reading = self._reading(state, facts, clock)
        found: list[Alert] = []
        for rule in self.rules.rules:
            status = state.alerts.get(rule.name)
            if status is not None and status.state is AlertState.PENDING:
                found += alerts.close(rule, status, reading, moment)
        return found

    def hand_over(self, state: SessionState, at: datetime, facts: Facts, seq: int) -> list[Alert]:
        """End alerts about a counsellor's empathy, because another one speaks now.

        Call it before the risk is the successor's.
        """
        clock = state.watch.reach(at)
        moment = self._moment(state, seq, clock, cause=Cause.HAND_OVER)
        reading = self._reading(state, facts, clock)
        found: list[Alert] = []
        for rule in self.rules.rules:
            status = state.alerts.get(rule.name)
            if status is not None and rule.about_empathy:
                found += alerts.close(rule, status, reading, moment)
        return found

    def _end_removed(self, state: SessionState, moment: Moment) -> list[Alert]:
        """End the alerts of rules that were removed.

        Episode counts are kept, so that alerts of a rule that returns get new ids.
        """
        found: list[Alert] = []
        for name, status in state.alerts.items():
            if name not in self._names and status.state is not AlertState.INACTIVE:
                found += alerts.abandon(name, status, moment)
        return found

    def _moment(
        self,
        state: SessionState,
        seq: int | None,
        at: datetime,
        counsellor_turn: bool = False,
        cause: Cause = Cause.CONDITION,
    ) -> Moment:
        digest = self.rules.digest
        return Moment(state.session_id, self.bundle, seq, at, counsellor_turn, digest, cause)

    def _reading(self, state: SessionState, facts: Facts, clock: datetime) -> Reading:
        if state.voices.known:  # what was usual for the first counsellor says nothing of the next
            pinned = structs.replace(facts.baselines, counsellor=None)
            facts = structs.replace(facts, baselines=pinned)
        return Reading(
            state.aggregates,
            state.watch,
            facts,
            state.risk,
            self._model,
            clock,
            exchanges=state.own_exchanges,
            own_turns=state.own_turns,
            outcomes=state.outcomes,
            failures=self.failures,
            catalogue=self.rules.catalogue,
        )


def end_with_bundle(state: SessionState, bundle: str) -> list[Alert]:
    """End all alerts of a session whose bundle is no longer in force."""
    at = state.last_activity_at or state.watch.clock
    if at is None:
        return []
    moment = Moment(state.session_id, bundle, None, state.watch.reach(at))
    found: list[Alert] = []
    for name, status in state.alerts.items():
        found += alerts.abandon(name, status, moment, BUNDLE_GONE)
    return found


def end_stored(last: Alert, at: datetime) -> Alert:
    """The end of an alert whose bundle is no longer in force, from its last stored transition.

    It has the id that ``end_with_bundle`` gives it, so that both ways store it once.
    """
    to = AlertState.INACTIVE if last.state is AlertState.PENDING else AlertState.RESOLVED
    identity = (last.session_id, last.bundle, last.rule, str(last.episode))
    return structs.replace(
        last,
        alert_id=alerts.ids_of(identity, to)["alert_id"],
        state=to,
        previous=last.state,
        seq=None,
        occurred_at=max(at, last.occurred_at),
        reason=BUNDLE_GONE,
        value=None,
        threshold=None,
        values={},
        protocol=None,
    )


_LIVE = (AlertState.PENDING, AlertState.FIRING)
