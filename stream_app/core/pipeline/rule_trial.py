"""Compares the alerts that a draft of the rules would have raised with those of the rules in force.

Two alerts of one rule and session correspond if their times, from pending to the end, overlap. A
draft's alert has the answer that people gave to the real alert that it corresponds to. ::

    in force   ──[══════]──────[═══]───     corresponding: 1
    draft      ────[══]────[═]─────────     only the draft: 1, only in force: 1
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct, field

from stream_app.contracts.scores import Alert, AlertState


class Span(Struct, frozen=True):
    """An alert from its pending to its end; ``ended_at`` None: the session has no end."""

    session_id: str
    rule: str
    begun_at: datetime
    ended_at: datetime | None

    def overlaps(self, other: "Span") -> bool:
        """Whether the two have a moment in common."""
        return (self.ended_at is None or other.begun_at <= self.ended_at) and (
            other.ended_at is None or self.begun_at <= other.ended_at
        )


class Answered(Struct, frozen=True):
    """An alert that was raised, and whether people judged it to be justified."""

    span: Span
    justified: bool


class RuleComparison(Struct, frozen=True):
    """One rule's alerts in the sessions tried.

    ``sessions``: with an alert of the draft. ``alerts``: of the draft; ``both``: of them those that
    the rules in force raise, too. ``justified``, ``judged``: of the draft's alerts those with an
    answer. ``missed``, ``avoided``: alerts judged justified, or false alarms, that the draft does
    not raise.
    """

    rule: str
    in_draft: bool
    in_force: bool
    sessions: int
    alerts: int
    both: int
    only_draft: int
    only_in_force: int
    justified: int
    judged: int
    missed: int
    avoided: int


class _Counts(Struct):
    sessions: int = 0
    alerts: int = 0
    both: int = 0
    in_force: int = 0
    justified: int = 0
    judged: int = 0
    missed: int = 0
    avoided: int = 0


class Comparison(Struct):
    """Counts by rule, over the sessions added so far."""

    _counts: dict[str, _Counts] = field(default_factory=lambda: defaultdict(_Counts))

    def add(
        self, draft: Sequence[Alert], in_force: Sequence[Alert], answered: Sequence[Answered]
    ) -> None:
        """Add one session: the transitions under both sets of rules, and the answered alerts."""
        drafts, now = _by_rule(spans(draft)), _by_rule(spans(in_force))
        answers = defaultdict(list)
        for answer in answered:
            answers[answer.span.rule].append(answer)
        for rule in drafts.keys() | now.keys() | answers.keys():
            counts, own = self._counts[rule], drafts.get(rule, [])
            counts.alerts += len(own)
            counts.sessions += bool(own)
            counts.in_force += len(now.get(rule, []))
            counts.both += len(pairs(own, now.get(rule, [])))
            self._count_answers(counts, own, answers.get(rule, []))

    def _count_answers(self, counts: _Counts, own: list[Span], answers: list[Answered]) -> None:
        found = {place for _, place in pairs(own, [answer.span for answer in answers])}
        for place, answer in enumerate(answers):
            if place in found:
                counts.judged += 1
                counts.justified += answer.justified
            elif answer.justified:
                counts.missed += 1
            else:
                counts.avoided += 1

    def of_rules(self, draft: Sequence[str], in_force: Sequence[str]) -> list[RuleComparison]:
        """The comparison of each rule in the order of the draft, then the removed ones."""
        return [
            RuleComparison(
                rule=rule,
                in_draft=rule in draft,
                in_force=rule in in_force,
                sessions=counts.sessions,
                alerts=counts.alerts,
                both=counts.both,
                only_draft=counts.alerts - counts.both,
                only_in_force=counts.in_force - counts.both,
                justified=counts.justified,
                judged=counts.judged,
                missed=counts.missed,
                avoided=counts.avoided,
            )
            for rule in dict.fromkeys((*draft, *in_force))
            for counts in [self._counts.get(rule, _Counts())]
        ]


def spans(alerts: Iterable[Alert]) -> list[Span]:
    """The alerts that fired, of one session's transitions, in the order of their beginning."""
    begun: dict[str, tuple[str, str, datetime]] = {}
    fired: dict[str, datetime | None] = {}
    for alert in alerts:
        name = alert.episode_id
        match alert.state:
            case AlertState.PENDING:
                begun[name] = alert.session_id, alert.rule, alert.occurred_at
            case AlertState.FIRING:
                begun.setdefault(name, (alert.session_id, alert.rule, alert.occurred_at))
                fired[name] = None
            case AlertState.RESOLVED:
                fired[name] = alert.occurred_at
            case AlertState.INACTIVE:
                pass
    return sorted((Span(*begun[name], end) for name, end in fired.items()), key=_beginning)


def pairs(some: Sequence[Span], others: Sequence[Span]) -> list[tuple[int, int]]:
    """Places of corresponding alerts, each in one pair; earlier ones first."""
    found: list[tuple[int, int]] = []
    free = sorted(range(len(others)), key=lambda place: others[place].begun_at)
    for place in sorted(range(len(some)), key=lambda place: some[place].begun_at):
        match = next((other for other in free if some[place].overlaps(others[other])), None)
        if match is not None:
            free.remove(match)
            found.append((place, match))
    return found


def _by_rule(found: Iterable[Span]) -> dict[str, list[Span]]:
    by_rule: defaultdict[str, list[Span]] = defaultdict(list)
    for span in found:
        by_rule[span.rule].append(span)
    return by_rule


def _beginning(span: Span) -> datetime:
    return span.begun_at
