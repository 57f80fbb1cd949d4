"""Tries a draft of the alert rules on ended sessions, from their stored scores."""

import time
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import structs
from pydantic import Field

from stream_app.core.pipeline.recorded_session import (
    BundleModels,
    NotReproducible,
    RecordedSession,
    replay,
)
from stream_app.core.pipeline.rule_trial import Comparison, RuleComparison
from stream_app.core.rules.rules import RuleSet
from stream_app.core.session.environment import Policy
from stream_app.errors import RowRefused
from stream_app.settings import Settings
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.alerts.precision import precision_of
from stream_app.store.sessions import recorded_sessions
from stream_app.store.sessions.scored_turns import StateConflict
from stream_app.store.stream import baselines
from stream_app.work import rule_changes
from stream_app.work.desk import Desk

MAX_SESSIONS: Final = 500
USUAL_SESSIONS: Final = 100
SECONDS: Final = 20.0
"""A trial ends after this time, with the sessions tried so far."""
ENOUGH_ANSWERS: Final = 10


@dataclass(frozen=True, slots=True)
class WouldBePrecision:
    """Share of justified alerts among those of the draft that correspond to an answered alert."""

    precision: Annotated[float, Field(ge=0, le=1)]
    low: Annotated[float, Field(ge=0, le=1, description="Lower end of the 95 % Wilson interval")]
    high: Annotated[float, Field(ge=0, le=1, description="Upper end of the 95 % Wilson interval")]


@dataclass(frozen=True, slots=True)
class RuleTrial:
    """One rule in a trial; alerts that have fired."""

    rule: str
    in_draft: bool
    in_force: bool
    sessions: Annotated[int, Field(description="Sessions with an alert of the draft")]
    alerts: Annotated[int, Field(description="Alerts of the draft")]
    both: Annotated[int, Field(description="Alerts that the rules in force raise, too")]
    only_draft: int
    only_in_force: int
    answered: Annotated[int, Field(description="Alerts of the draft with an answer")]
    justified: Annotated[int, Field(description="Of these, judged justified")]
    missed: Annotated[
        int, Field(description="Alerts judged justified that the draft does not raise")
    ]
    avoided: Annotated[
        int, Field(description="Alerts judged false alarms that the draft does not raise")
    ]
    precision: Annotated[
        WouldBePrecision | None,
        Field(description=f"Null: fewer than {ENOUGH_ANSWERS} answers are not enough"),
    ]
    failures: Annotated[int, Field(description="Failed evaluations of the draft's expressions")]


@dataclass(frozen=True, slots=True)
class Trial:
    """A draft compared with the rules in force, on the same sessions."""

    digest: str
    digest_in_force: str
    sessions: Annotated[int, Field(description="Sessions tried")]
    left_out: Annotated[
        int, Field(description="Sessions without all that a replay needs, for example words")
    ]
    complete: Annotated[bool, Field(description="false: the time was over before the last session")]
    enough_answers: Annotated[int, Field(description="Answers from which on there is a precision")]
    rules: list[RuleTrial]


def try_out(desk: Desk, person: Person, text: str, wanted: int) -> Trial:
    """Try a draft on the last ``wanted`` ended sessions in the person's scope; audited.

    Computes for up to ``SECONDS``: call it in a thread.

    Raises:
        RuleFileError: the draft, or the rules in force, are not valid.
        StateConflict: another trial is running in this process.
    """
    draft = rule_changes.parsed(desk, text)
    now = desk.rules.read()
    in_force = rule_changes.parsed(desk, now.raw.decode("utf-8", "replace"), now.name)
    desk.accesses.record(person.name, AuditAction.READ_STATISTICS, "trial of alert rules")
    if not desk.trial_running.acquire(blocking=False):
        raise StateConflict("another trial is running; try again in a few seconds")
    try:
        return _Run(desk, draft, in_force).over(person, wanted)
    finally:
        desk.trial_running.release()


class _Run:
    def __init__(self, desk: Desk, draft: RuleSet, in_force: RuleSet) -> None:
        self._desk = desk
        self._store = desk.read_store
        self._draft = draft
        self._in_force = in_force
        self._failures: Counter[str] = Counter()
        self._comparison = Comparison()
        self._idle_after = desk.settings.idle_after

    def over(self, person: Person, wanted: int) -> Trial:
        until = time.monotonic() + SECONDS
        models = recorded_sessions.models(self._store)
        books = {bundle: baselines.read(self._store, bundle) for bundle in models}
        tried = left_out = 0
        complete = True
        for session in recorded_sessions.ended(self._store, person.scope, wanted):
            if time.monotonic() > until:
                complete = False
                break
            if session.bundle not in models:
                left_out += 1
                continue
            try:
                recorded = recorded_sessions.read(
                    self._store,
                    session,
                    self._desk.settings.approach_by_group,
                    books[session.bundle],
                )
                self._add(recorded, models[session.bundle])
                tried += 1
            except (NotReproducible, RowRefused):
                left_out += 1
        return Trial(
            digest=self._draft.digest,
            digest_in_force=self._in_force.digest,
            sessions=tried,
            left_out=left_out,
            complete=complete,
            enough_answers=ENOUGH_ANSWERS,
            rules=self._figures(),
        )

    def _add(self, recorded: RecordedSession, models: BundleModels) -> None:
        policy = policy_of(self._desk.settings, models)
        in_force = structs.replace(policy, rules=self._in_force)
        draft = structs.replace(policy, rules=self._draft)
        now, _ = replay(recorded, in_force, models, self._idle_after)
        alerts, failures = replay(recorded, draft, models, self._idle_after)
        answered = recorded_sessions.answered(self._store, recorded.session_id)
        self._comparison.add(alerts, now, answered)
        self._failures.update(failures)

    def _figures(self) -> list[RuleTrial]:
        draft = [rule.name for rule in self._draft.rules]
        in_force = [rule.name for rule in self._in_force.rules]
        failed = {
            rule.name: sum(n for source, n in self._failures.items() if rule.uses(source))
            for rule in self._draft.rules
        }
        return [
            _rule_trial(found, failed.get(found.rule, 0))
            for found in self._comparison.of_rules(draft, in_force)
        ]


def policy_of(settings: Settings, models: BundleModels) -> Policy:
    """The core's policy for sessions that are stored, and so had consent."""
    return Policy(
        settings.window_of(models.window),
        require_consent=False,
        restrictions=settings.restrictions,
    )


def _rule_trial(found: RuleComparison, failures: int) -> RuleTrial:
    precision = None
    if found.judged >= ENOUGH_ANSWERS:
        exact = precision_of(found.rule, found.justified, found.judged)
        precision = WouldBePrecision(exact.share, exact.low, exact.high)
    return RuleTrial(
        rule=found.rule,
        in_draft=found.in_draft,
        in_force=found.in_force,
        sessions=found.sessions,
        alerts=found.alerts,
        both=found.both,
        only_draft=found.only_draft,
        only_in_force=found.only_in_force,
        answered=found.judged,
        justified=found.justified,
        missed=found.missed,
        avoided=found.avoided,
        precision=precision,
        failures=failures,
    )
