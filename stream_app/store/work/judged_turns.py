"""Exports judgements beside a bundle's scores, the data of ``rapport bundle adapt``; no text.

Only sessions with consent, neither withdrawn nor hidden, whose newest consent names a wording that
covers adaptation. Supervisors' ratings only: counsellors rate their own turns.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from stream_app.contracts.events import ConsentStatus, Role
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.database.tables import (
    consents,
    disputes,
    outcomes,
    people,
    ratings,
    session_scores,
    session_speakers,
    sessions,
    turn_scores,
    turns,
)
from stream_app.store.stream.repository import Store
from stream_app.store.work.disputes import Decision

TurnKey = tuple[str, int]
"""Session id and seq."""
ANY_WORDING: Final = "any"
_UNCOVERED: Final = "of sessions without a consent that covers adaptation"


@dataclass(frozen=True, slots=True)
class JudgedTurn:
    """One turn's judgements for one head.

    ``values``: one per rater. ``blind``: whether any was given without the score in view.
    ``disputed``: ``values`` is what a decided dispute says, and there is no rating.
    """

    session_id: str
    seq: int
    head: str
    values: tuple[int, ...]
    blind: bool
    disputed: bool
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Judged:
    """Judged turns in a fixed order, with the bundle's best score of each.

    ``counsellors``: pseudonym of each session's first counsellor. ``raters``: number of people who
    rated. ``left_out``: number of judgements that were not used, by reason.
    """

    turns: list[JudgedTurn]
    scores: dict[TurnKey, Mapping[str, Any]]
    counsellors: dict[str, str]
    raters: int
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class JudgedSession:
    """A session's outcome of one kind: its last value, and when."""

    session_id: str
    value: float
    at: datetime


def read(store: Store, bundle: str, wordings: Collection[str]) -> Judged:
    """All usable judgements of turns that ``bundle`` has scored.

    Args:
        store: the open store.
        bundle: id of the bundle whose scores are read.
        wordings: versions of the consent's wording that cover adaptation; with ``ANY_WORDING``
            every consent does.
    """
    left_out: Counter[str] = Counter()
    with store.reading() as connection:
        covered = covered_sessions(connection, wordings)
        rated = _ratings(connection, covered, left_out)
        raters = {row["person"] for rows in rated.values() for row in rows}
        contested = _disputes(connection, bundle, covered, left_out)
        scores = _scores(connection, bundle)
        counsellors = first_counsellors(connection)
    found: list[JudgedTurn] = []
    for (session_id, seq, head), rows in sorted(rated.items()):
        if (session_id, seq) not in scores:
            left_out["of turns that this bundle has not scored"] += len(rows)
            continue
        by_person = {row["person"]: row for row in reversed(rows)}  # blind ones take precedence
        chosen = sorted(by_person.values(), key=lambda row: str(row["person"]))
        found.append(
            JudgedTurn(
                session_id,
                seq,
                head,
                tuple(row["value"] for row in chosen),
                any(row["sample_id"] is not None for row in chosen),
                disputed=False,
                last_at=max(row["at"] for row in chosen),
            )
        )
    for (session_id, seq, head), row in sorted(contested.items()):
        if (session_id, seq, head) not in rated and (session_id, seq) in scores:
            upheld = row["decision"] == Decision.UPHELD.value
            value = row["proposed"] if upheld else row["value"]
            found.append(
                JudgedTurn(
                    session_id, seq, head, (value,), False, disputed=True, last_at=row["decided_at"]
                )
            )
    used = {(one.session_id, one.seq) for one in found}
    return Judged(
        found,
        {key: score for key, score in scores.items() if key in used},
        counsellors,
        len(raters),
        left_out,
    )


def covered_sessions(connection: sa.Connection, wordings: Collection[str]) -> set[str]:
    """Sessions with consent to adaptation; a session without a consent record has none."""
    consented = (
        sa.select(sessions.c.session_id)
        .where(sessions.c.consent.is_(sa.true()), ~sessions.c.withdrawn, ~sessions.c.hidden)
        .execution_options(yield_per=10_000)
    )
    found = set(connection.scalars(consented))
    if ANY_WORDING in wordings:
        return found
    records = sa.select(consents.c.session_id, consents.c.status, consents.c.version).where(
        consents.c.effective
    )
    newest: dict[str, bool] = {}
    for row in connection.execute(
        records.order_by(consents.c.occurred_at, consents.c.stored_at, consents.c.consent_id)
    ):
        given = row.status == ConsentStatus.GIVEN.value
        newest[row.session_id] = given and row.version in wordings
    return {session_id for session_id in found if newest.get(session_id)}


def first_counsellors(connection: sa.Connection) -> dict[str, str]:
    """Pseudonym of each session's first counsellor, whose session it counts as."""
    query = sa.select(session_speakers.c.session_id, session_speakers.c.speaker).where(
        session_speakers.c.role == Role.COUNSELLOR.value, session_speakers.c.reads
    )
    ordered = query.order_by(session_speakers.c.session_id, session_speakers.c.speaker.desc())
    return {row.session_id: row.speaker for row in connection.execute(ordered)}


def outcome_values(store: Store, kind: str, wordings: Collection[str]) -> list[JudgedSession]:
    """The last outcome of this kind of every covered session, in a fixed order."""
    query = (
        sa.select(outcomes.c.session_id, outcomes.c.value, outcomes.c.occurred_at)
        .where(outcomes.c.kind == kind)
        .order_by(outcomes.c.session_id, outcomes.c.occurred_at, outcomes.c.outcome_id)
    )
    with store.reading() as connection:
        covered = covered_sessions(connection, wordings)
        found = {
            row.session_id: JudgedSession(row.session_id, row.value, row.occurred_at)
            for row in connection.execute(query)
            if row.session_id in covered
        }
    return list(found.values())


def scored_sessions(store: Store, bundle: str, wordings: Collection[str]) -> set[str]:
    """Covered sessions that the bundle has scored."""
    query = sa.select(session_scores.c.session_id).where(session_scores.c.bundle == bundle)
    with store.reading() as connection:
        return covered_sessions(connection, wordings) & set(connection.scalars(query))


def _ratings(
    connection: sa.Connection, covered: set[str], left_out: Counter[str]
) -> dict[tuple[str, int, str], list[sa.RowMapping]]:
    query = (
        sa.select(ratings, people.c.role)
        .outerjoin(people, people.c.name == ratings.c.person)
        .where(ratings.c.seq.is_not(None))
        .order_by(ratings.c.sample_id.is_(None), ratings.c.at, ratings.c.rating_id)
    )
    found: dict[tuple[str, int, str], list[sa.RowMapping]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        if row["role"] != PersonRole.SUPERVISOR.value:
            left_out["not by a supervisor with an account"] += 1
        elif row["session_id"] not in covered:
            left_out[_UNCOVERED] += 1
        else:
            found[row["session_id"], row["seq"], row["head"]].append(row)
    return found


def _disputes(
    connection: sa.Connection, bundle: str, covered: set[str], left_out: Counter[str]
) -> dict[tuple[str, int, str], sa.RowMapping]:
    """Decided disputes about this bundle's scores that say which value is right."""
    query = sa.select(disputes).where(disputes.c.bundle == bundle, disputes.c.decision.is_not(None))
    found = {}
    for row in connection.execute(query.order_by(disputes.c.decided_at)).mappings():
        upheld = row["decision"] == Decision.UPHELD.value
        if row["session_id"] not in covered:
            left_out[_UNCOVERED] += 1
        elif upheld and row["proposed"] is None:
            left_out["upheld disputes that propose no value"] += 1
        else:
            found[row["session_id"], row["seq"], row["head"]] = row
    return found


def _scores(connection: sa.Connection, bundle: str) -> dict[TurnKey, Mapping[str, Any]]:
    """The bundle's best score of every judged turn: final before provisional."""
    judged = sa.union(
        sa.select(ratings.c.session_id, ratings.c.seq).where(ratings.c.seq.is_not(None)),
        sa.select(disputes.c.session_id, disputes.c.seq),
    ).subquery()
    score = turn_scores
    parts = (score.c.expressed, score.c.perceived, score.c.client, score.c.abstained)
    query = (
        sa.select(score.c.session_id, score.c.seq, score.c.late, *parts)
        .join(judged, (judged.c.session_id == score.c.session_id) & (judged.c.seq == score.c.seq))
        .join(turns, (turns.c.session_id == score.c.session_id) & (turns.c.seq == score.c.seq))
        .where(score.c.bundle == bundle)
        .order_by(score.c.stage.desc())  # final scores overwrite provisional ones
    )
    return {
        (row["session_id"], row["seq"]): dict(row) for row in connection.execute(query).mappings()
    }
