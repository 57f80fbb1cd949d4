"""Sessions as cards: participants, status, measures, and history of the risk."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Final

import sqlalchemy as sa
from pydantic import Field

from stream_app.contracts.events import OutcomeKind, Role
from stream_app.contracts.scores import AlertState, MechanismSummary, SessionScore, SessionStatus
from stream_app.store.database.any_of import IDS, any_of
from stream_app.store.database.described import described_by
from stream_app.store.database.pages import Key, Page, decode_cursor, encode_cursor, rows_after
from stream_app.store.database.tables import (
    UtcDateTime,
    alerts,
    outcomes,
    session_scores,
    session_speakers,
    sessions,
    turn_scores,
)
from stream_app.store.keys import session_keys
from stream_app.store.sessions import bundle_info
from stream_app.store.sessions.miti import Miti, miti_of
from stream_app.store.sessions.scope import SCOPES, Scope
from stream_app.store.stream.repository import Store

NO_RISK_YET: Final = -1.0
"""Sorts sessions without a risk after those with one."""
NO_INDEX_YET: Final = 1e9
"""Sorts sessions without an index after those with one."""
LOW_RATING: Final = 2
"""Highest rating, of 1 to 5, that counts as low."""


class Order(Enum):
    """``risk``: highest first. ``index``: lowest first. ``activity`` and ``start``: newest first.

    ``id``: by session_id; the only order that is stable while paging.
    """

    RISK = "risk"
    INDEX = "index"
    ACTIVITY = "activity"
    START = "start"
    ID = "id"


class Judged(Enum):
    """Filter by outcome events: of a kind, a rating of at most ``LOW_RATING``, or none at all."""

    LIKE = "like"
    REPLY = "reply"
    FOLLOW = "follow"
    RATING = "rating"
    LOW = "low-rating"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Conditions, combined with AND; None = any.

    ``search``: a part of the session's id. ``alerted``: whether an alert has fired; ``rule``: an
    alert of this rule has. ``risk_from``: a risk of at least this much.
    """

    status: SessionStatus | None = None
    team: str | None = None
    domain: str | None = None
    channel: str | None = None
    counsellor: str | None = None
    started_from: datetime | None = None
    started_before: datetime | None = None
    search: str | None = None
    alerted: bool | None = None
    rule: str | None = None
    risk_from: float | None = None
    judged: Judged | None = None
    index_to: float | None = None
    of_bundles: frozenset[str] | None = None
    not_of_bundles: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
@described_by(MechanismSummary)
class Mechanism:
    """One EPITOME mechanism over all counsellor turns; levels 0-2."""

    mean: float
    recent_mean: float
    share: float


@dataclass(frozen=True, slots=True)
@described_by(SessionScore)
class SessionCard:
    """One session, with the scores of the most recently active bundle.

    ``risk_by_turn``: (seq, risk in [0, 1]) after each counsellor turn. ``at_risk_since``: since
    when the risk has been at or above the bundle's threshold; None below it. ``firing``: rules with
    a firing alert. ``counsellors``: pseudonyms.
    """

    session_id: Annotated[str, Field(description="As in its events")]
    bundle: Annotated[str, Field(description="The bundle that scored it last")]
    status: SessionStatus
    domain: str | None
    channel: str | None
    team: str | None
    lang: str | None
    counsellors: Annotated[list[str], Field(description="Pseudonyms; empty for analysts")]
    started_at: datetime | None
    last_activity_at: datetime | None
    ended_at: datetime | None
    end_reason: Annotated[
        str | None,
        Field(description="From the event, redacted; only for who may read transcripts"),
    ]
    turns: int
    counsellor_turns: int
    late_turns: int
    withheld_turns: int
    unscored_turns: int
    low_empathy_risk: float | None
    empathy_index: float | None
    empathy_interval: tuple[float, float] | None
    empathy_percentile: float | None
    answered_share: float | None
    missed_opportunities: list[int]
    outcome_risks: dict[str, float]
    mechanisms: dict[str, Mechanism]
    empathy_total_mean: float | None
    talk_share: float | None
    reflection_to_question: float | None
    complex_reflection_share: float | None
    open_question_share: float | None
    miti: Miti | None
    risk_by_turn: Annotated[
        list[tuple[int, float]], Field(description="[seq, risk] after each counsellor turn")
    ]
    at_risk_since: Annotated[
        datetime | None, Field(description="Since when the risk has been at the bundle's threshold")
    ]
    firing: Annotated[list[str], Field(description="Rules with a firing alert")]
    consent: Annotated[bool | None, Field(description="The client agreed to the analysis")]


def find(
    store: Store,
    scope: Scope,
    chosen: SessionFilter,
    order: Order = Order.RISK,
    cursor: str | None = None,
    limit: int = 50,
    *,
    curves: bool = True,
) -> Page[SessionCard]:
    """A page of sessions.

    ``curves``: read the risk after each turn as well; else ``risk_by_turn`` and ``at_risk_since``
    are empty.

    Raises:
        BadCursor: the cursor belongs to another list.
    """
    kept = chosen == _usual(chosen)
    query, keys, types = (_kept_list if kept else _list)(scope, chosen, order, limit + 1)
    if cursor is not None:
        query = query.where(rows_after(keys, decode_cursor(order.value, cursor, types)))
    with store.reading() as connection:
        found = connection.execute(query).mappings().all()
        cards = _cards(store, connection, found[:limit], curves=curves)
    if len(found) <= limit:
        return Page(cards, None)
    last = found[limit - 1]
    values = [last[_key(index)] for index in range(len(keys))]
    return Page(cards, encode_cursor(order.value, values))


def _list(
    scope: Scope, chosen: SessionFilter, order: Order, limit: int
) -> tuple[sa.Select[Any], list[tuple[Key, bool]], list[type]]:
    """The statement of a list, and its order's columns with their types in a cursor."""
    newest = newest_scores(scope, chosen)
    keys, types = _order(newest, order)
    labelled = [key.label(_key(index)) for index, (key, _) in enumerate(keys)]
    query = sa.select(newest, *labelled).where(*(key.is_not(None) for key, _ in keys))
    query = query.order_by(*(key.desc() if down else key for key, down in keys))
    return query.limit(limit), keys, types


_kept_list = lru_cache(maxsize=SCOPES)(_list)


def _key(index: int) -> str:
    """The label of a column of the order."""
    return f"key_{index}"


def _order(newest: sa.Subquery, order: Order) -> tuple[list[tuple[Key, bool]], list[type]]:
    """The columns of an order, descending or not, and their types in a cursor."""
    by_id: Key = newest.c.session_id
    match order:
        case Order.RISK:
            risk = sa.func.coalesce(newest.c.low_empathy_risk, NO_RISK_YET)
            return [(risk, True), (by_id, True)], [float, str]
        case Order.INDEX:
            index = sa.func.coalesce(newest.c.empathy_index, NO_INDEX_YET)
            return [(index, False), (by_id, False)], [float, str]
        case Order.ACTIVITY:
            hour, exact = newest.c.activity_hour, newest.c.last_activity_at
            return [(hour, True), (exact, True), (by_id, True)], [int, datetime, str]
        case Order.START:
            return [(newest.c.started_at, True), (by_id, True)], [datetime, str]
        case Order.ID:
            return [(by_id, False)], [str]


def one(store: Store, scope: Scope, session_id: str) -> SessionCard | None:
    """One session; None if it does not exist in ``scope``."""
    cards = of_ids(store, scope, [session_id])
    return cards[0] if cards else None


def of_ids(store: Store, scope: Scope, session_ids: Sequence[str]) -> list[SessionCard]:
    """Select those of these sessions that exist in ``scope``, in no particular order."""
    with store.reading() as connection:
        given = {IDS: session_ids}
        found = connection.execute(_of_ids(scope), given).mappings().all()
        return _cards(store, connection, found)


@lru_cache(maxsize=SCOPES)
def _of_ids(scope: Scope) -> sa.Select[Any]:
    """The statement for sessions by ``session_ids``; building it takes longer than running it."""
    newest = newest_scores(scope, SessionFilter())
    return sa.select(newest).where(any_of(newest.c.session_id, IDS))


def bundle_of(store: Store, scope: Scope, session_id: str) -> str | None:
    """The bundle that scored a session last; None if the session does not exist in ``scope``."""
    with store.reading() as connection:
        return connection.scalar(_bundle_of(scope), {IDS: [session_id]})


@lru_cache(maxsize=SCOPES)
def _bundle_of(scope: Scope) -> sa.Select[str]:
    newest = newest_scores(scope, SessionFilter())
    return sa.select(newest.c.bundle).where(any_of(newest.c.session_id, IDS))


def newest_scores(scope: Scope, chosen: SessionFilter) -> sa.Subquery:
    """Rows of sessions with the scores of the most recently active bundle."""
    return (_kept_scores if chosen == _usual(chosen) else _new_scores)(scope, chosen)


def _usual(chosen: SessionFilter) -> SessionFilter:
    """The conditions that most pages have; statements with others are not kept."""
    return SessionFilter(chosen.status, chosen.team, chosen.domain)


def _new_scores(scope: Scope, chosen: SessionFilter) -> sa.Subquery:
    score, session, other = session_scores, sessions, session_scores.alias("other_bundle")
    newer = sa.exists().where(
        other.c.session_id == score.c.session_id,
        sa.tuple_(_activity(other), other.c.bundle) > sa.tuple_(_activity(score), score.c.bundle),
    )
    attributes = [
        session.c[name]
        for name in ("domain", "channel", "team", "lang", "ended_at", "end_reason", "consent")
    ]
    query = (
        sa.select(score, *attributes)
        .join(session, session.c.session_id == score.c.session_id)
        .where(~newer)
    )
    query = query.where(*scope.conditions(score.c.session_id, session))
    for column, value in (
        (session.c.team, chosen.team),
        (session.c.domain, chosen.domain),
        (session.c.channel, chosen.channel),
    ):
        if value is not None:
            query = query.where(column == value)
    if chosen.counsellor is not None:
        query = query.where(*Scope(speaker=chosen.counsellor).conditions(score.c.session_id))
    if chosen.started_from is not None:
        query = query.where(score.c.started_at >= chosen.started_from)
    if chosen.started_before is not None:
        query = query.where(score.c.started_at < chosen.started_before)
    if chosen.status is not None:
        query = query.where(score.c.status == chosen.status.value)
    query = query.where(*_measured(score, chosen))
    return query.where(*_further(score.c.session_id, chosen)).subquery()


_kept_scores = lru_cache(maxsize=SCOPES)(_new_scores)
"""Building the statement takes longer than running it; a search is not kept."""


def _activity(score: sa.FromClause) -> sa.ColumnElement[datetime]:
    never = sa.literal(datetime(1970, 1, 1, tzinfo=UTC), UtcDateTime())
    return sa.func.coalesce(score.c.last_activity_at, score.c.started_at, never)


def _measured(score: sa.FromClause, chosen: SessionFilter) -> Iterator[sa.ColumnElement[bool]]:
    """Conditions on the measures of a session and on what measured them."""
    if chosen.risk_from is not None:
        yield score.c.low_empathy_risk >= chosen.risk_from
    if chosen.index_to is not None:
        yield score.c.empathy_index <= chosen.index_to
    if chosen.of_bundles is not None:
        yield score.c.bundle.in_(chosen.of_bundles)
    if chosen.not_of_bundles is not None:
        yield score.c.bundle.not_in(chosen.not_of_bundles)


def _further(
    session_id: sa.ColumnElement[str], chosen: SessionFilter
) -> Iterator[sa.ColumnElement[bool]]:
    """Conditions on the id, alerts and outcomes of a session."""
    if chosen.search is not None:
        yield session_id.contains(chosen.search, autoescape=True)
    fired = sa.exists().where(
        alerts.c.session_id == session_id, alerts.c.state == AlertState.FIRING.value
    )
    if chosen.rule is not None:
        yield fired.where(alerts.c.rule == chosen.rule)
    if chosen.alerted is not None:
        yield fired if chosen.alerted else ~fired
    judged = sa.exists().where(outcomes.c.session_id == session_id)
    match chosen.judged:
        case None:
            pass
        case Judged.NONE:
            yield ~judged
        case Judged.LOW:
            rated = outcomes.c.kind == OutcomeKind.RATING.value
            yield judged.where(rated, outcomes.c.value <= LOW_RATING)
        case kind:
            yield judged.where(outcomes.c.kind == kind.value)


def _cards(
    store: Store,
    connection: sa.Connection,
    found: Sequence[sa.RowMapping],
    *,
    curves: bool = True,
) -> list[SessionCard]:
    ids = [row["session_id"] for row in found]
    if not ids:
        return []
    by_session, firing = _counsellors_and_firing(connection, ids)
    risks = _risks(connection, ids) if curves else {}
    info = bundle_info.of(store, connection, {row["bundle"] for row in found})
    reasons = _end_reasons(store, connection, found)
    cards = []
    names = [field.name for field in fields(SessionCard) if field.name in found[0]]
    for row in found:
        key = (row["session_id"], row["bundle"])
        points = risks.get(key, [])
        cards.append(
            SessionCard(
                **{
                    **{name: row[name] for name in names},
                    "status": SessionStatus(row["status"]),
                    "end_reason": reasons.get(row["session_id"]),
                    "empathy_interval": _interval(row),
                    "missed_opportunities": row["missed_opportunities"] or [],
                    "outcome_risks": row["outcome_risks"] or {},
                    "miti": miti_of(row["miti"]),
                    "mechanisms": {n: Mechanism(**m) for n, m in row["mechanisms"].items()},
                    "counsellors": by_session.get(row["session_id"], []),
                    "risk_by_turn": [(seq, risk) for seq, risk, _ in points],
                    "at_risk_since": _at_risk_since(
                        points, info.get(row["bundle"], bundle_info.UNKNOWN).enter
                    ),
                    "firing": firing.get(key, []),
                }
            )
        )
    return cards


def _end_reasons(
    store: Store, connection: sa.Connection, found: Sequence[sa.RowMapping]
) -> dict[str, str | None]:
    stored = {
        row["session_id"]: row["end_reason"] for row in found if row["end_reason"] is not None
    }
    keys = store.keys.load(connection, sorted(stored))
    reasons = {
        session_id: session_keys.unseal_or_none(
            keys.get(session_id),
            reason,
            session_keys.place(sessions.c.end_reason, session_id),
        )
        for session_id, reason in stored.items()
    }
    # earlier releases stored it as it was sent
    return {key: value and store.privacy.redacted(value) for key, value in reasons.items()}


RiskPoint = tuple[int, float, datetime]
_RISKS: Final = (
    sa.select(
        turn_scores.c.session_id,
        turn_scores.c.bundle,
        turn_scores.c.seq,
        turn_scores.c.low_empathy_risk,
        turn_scores.c.occurred_at,
    )
    .where(any_of(turn_scores.c.session_id, IDS), turn_scores.c.low_empathy_risk.is_not(None))
    .order_by(turn_scores.c.session_id, turn_scores.c.seq)
)


def _risks(connection: sa.Connection, ids: list[str]) -> dict[tuple[str, str], list[RiskPoint]]:
    found: dict[tuple[str, str], list[RiskPoint]] = defaultdict(list)
    for session_id, bundle, *point in connection.execute(_RISKS, {IDS: ids}).all():
        seq, risk, at = point
        found[session_id, bundle].append((seq, risk, at))
    return found


_RESOLVED: Final = alerts.alias("resolved")
_FIRING: Final = sa.select(alerts.c.session_id, alerts.c.bundle, alerts.c.rule.label("name")).where(
    any_of(alerts.c.session_id, IDS),
    alerts.c.state == AlertState.FIRING.value,
    ~sa.exists().where(
        _RESOLVED.c.episode_id == alerts.c.episode_id,
        _RESOLVED.c.state == AlertState.RESOLVED.value,
    ),
)
_COUNSELLORS: Final = sa.select(
    session_speakers.c.session_id, sa.literal(None, sa.String()), session_speakers.c.speaker
).where(
    any_of(session_speakers.c.session_id, IDS),
    session_speakers.c.role == Role.COUNSELLOR.value,
)
_COUNSELLORS_AND_FIRING: Final = sa.union_all(_FIRING, _COUNSELLORS).order_by("name")


def _counsellors_and_firing(
    connection: sa.Connection, ids: list[str]
) -> tuple[dict[str, list[str]], dict[tuple[str, str], list[str]]]:
    """Counsellors by session; rules that fire and are not resolved by session and bundle."""
    speakers: dict[str, list[str]] = defaultdict(list)
    firing: dict[tuple[str, str], list[str]] = defaultdict(list)
    for session_id, bundle, name in connection.execute(_COUNSELLORS_AND_FIRING, {IDS: ids}).all():
        if bundle is None:
            speakers[session_id].append(name)
        else:
            firing[session_id, bundle].append(name)
    return speakers, firing


def _interval(row: sa.RowMapping) -> tuple[float, float] | None:
    low, high = row["empathy_low"], row["empathy_high"]
    return None if low is None or high is None else (low, high)


def _at_risk_since(points: list[RiskPoint], enter: float | None) -> datetime | None:
    since = None
    if enter is None:
        return None
    for _, risk, at in points:
        if risk < enter:
            since = None
        elif since is None:
            since = at
    return since
