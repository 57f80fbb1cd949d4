"""Draws sessions for review and assigns them to supervisors."""

import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from stream_app.core.rules.scorecards import Scorecards
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import People, PersonError
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions.scored_turns import NotFound
from stream_app.store.stream.repository import Store
from stream_app.store.work import reviews
from stream_app.store.work.reviews import NewReview, Origin
from stream_app.work import review_sampling
from stream_app.work.review_sampling import Drawn

_WORDS: Final = {Origin.RANDOM: "drawn at random", Origin.RISK: "drawn by risk"}


class Plan(Struct, frozen=True):
    """What to draw; see ``review_sampling.draw``.

    ``days``: from sessions of the last days. ``due``: days until the reviews are due. ``to``: the
    reviewers; without any, the team's supervisors. ``scorecard``: a name, or None for the first.
    """

    team: str
    at_random: int
    by_risk: int
    double: float
    due: int
    days: int
    seed: int
    to: Sequence[str] = ()
    scorecard: str | None = None


class Sampled(Struct, frozen=True):
    """Numbers of drawn sessions, and of reviews by person; ``found``: drawn from so many."""

    found: int
    at_random: int
    by_risk: int
    double: int
    by_person: dict[str, int]


def sample(store: Store, cards: Scorecards, plan: Plan, now: datetime) -> Sampled:
    """Draw sessions and assign their reviews, all or none; audited for each session.

    Raises:
        PersonError: nobody can review, or double review lacks a second person.
        NotFound: there is no such scorecard.
    """
    name = plan.scorecard or next(iter(cards))
    if name not in cards:
        raise NotFound(f"no scorecard {name} in RAPPORT_SCORECARDS: {', '.join(cards)}")
    reviewers = _reviewers(People(store), plan)
    risks = reviews.candidates(store, plan.team, now - timedelta(days=plan.days))
    drawn = review_sampling.draw(
        risks,
        reviewers,
        at_random=plan.at_random,
        by_risk=plan.by_risk,
        double=plan.double,
        seed=plan.seed,
    )
    due_at = now + timedelta(days=plan.due)
    new = []
    for each in drawn:
        pair_id = str(uuid.uuid4()) if len(each.reviewers) > 1 else None
        new += [
            NewReview(
                session_id=each.session_id,
                reviewer=reviewer,
                person=audit.COMMAND_LINE[:100],
                scorecard=cards[name],
                due_at=due_at,
                origin=each.origin,
                pair_id=pair_id,
            )
            for reviewer in each.reviewers
        ]
    reviews.assign(store, new)
    for each in drawn:
        audit.record(
            store,
            audit.COMMAND_LINE,
            AuditAction.ASSIGN,
            each.session_id,
            f"review by {', '.join(each.reviewers)}, {_WORDS[each.origin]}",
        )
    return _counted(len(risks), drawn)


def _counted(found: int, drawn: Sequence[Drawn]) -> Sampled:
    origins = Counter(each.origin for each in drawn)
    return Sampled(
        found,
        origins[Origin.RANDOM],
        origins[Origin.RISK],
        sum(len(each.reviewers) > 1 for each in drawn),
        dict(sorted(Counter(name for each in drawn for name in each.reviewers).items())),
    )


def _reviewers(people: People, plan: Plan) -> list[str]:
    """The named supervisors; else those of the team, else those of all teams."""
    able = {
        each.name: each.team
        for each in people.all()
        if each.role is PersonRole.SUPERVISOR
        and (each.team == plan.team or (each.team is None and each.all_teams))
    }
    for name in plan.to:
        if name not in able:
            raise PersonError(f"{name} is not a supervisor who reads team {plan.team}")
    own = [name for name, team in able.items() if team is not None]
    chosen = list(dict.fromkeys(plan.to)) or own or list(able)
    if not chosen:
        raise PersonError(f"team {plan.team} has no supervisor to review its sessions")
    if plan.double and len(chosen) < 2:
        raise PersonError(f"double review needs a second person besides {chosen[0]}: --to NAME")
    return chosen
