"""Ended sessions as they are replayed under other rules (``core.recorded_session``); no text."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec
import sqlalchemy as sa
import structlog

from stream_app.contracts.events import Role
from stream_app.contracts.scores import AlertState, SessionStatus, Stage
from stream_app.core.measures.baselines import Baseline, Pinned
from stream_app.core.measures.empathy import EmpathyModel
from stream_app.core.measures.heads import Head
from stream_app.core.measures.outcomes import OutcomeModel
from stream_app.core.pipeline.recorded_session import (
    BundleModels,
    NotReproducible,
    RecordedSession,
    RecordedTurn,
)
from stream_app.core.pipeline.rule_trial import Answered, Span
from stream_app.core.session.approaches import Approaches
from stream_app.core.session.ports import HeadScores
from stream_app.store.database.judgements import JUDGED, JUSTIFIED
from stream_app.store.database.tables import alert_actions, alerts, bundles, turn_scores, turns
from stream_app.store.sessions.scope import Scope
from stream_app.store.sessions.sessions import SessionFilter, newest_scores
from stream_app.store.stream.baselines import CHANNEL, COUNSELLOR
from stream_app.store.stream.past_sessions import expressed_of
from stream_app.store.stream.repository import Store

log = structlog.get_logger(__name__)

_ENDED: Final = (SessionStatus.CLOSED.value, SessionStatus.IDLE.value)
BaselineBook = Mapping[tuple[str, str], Baseline]


@dataclass(frozen=True, slots=True)
class EndedSession:
    """A closed or idle session; ``ended_at`` None: it is idle."""

    session_id: str
    bundle: str
    domain: str | None
    channel: str | None
    team: str | None
    ended_at: datetime | None
    withheld_turns: int
    unscored_turns: int


def ended(store: Store, scope: Scope, limit: int) -> list[EndedSession]:
    """The sessions in ``scope`` that ended last, newest first."""
    newest = newest_scores(scope, SessionFilter())
    query = (
        sa.select(*(newest.c[name] for name in EndedSession.__slots__))
        .where(newest.c.status.in_(_ENDED))
        .order_by(newest.c.last_activity_at.desc(), newest.c.session_id.desc())
        .limit(limit)
    )
    with store.reading() as connection:
        return [EndedSession(**row) for row in connection.execute(query).mappings()]


def models(store: Store) -> dict[str, BundleModels]:
    """What sessions use of each bundle's manifest; without bundles of unreadable manifests."""
    query = sa.select(bundles.c.bundle, bundles.c.manifest)
    with store.reading() as connection:
        manifests = connection.execute(query).all()
    found = {}
    for bundle, manifest in manifests:
        try:
            found[bundle] = _models(manifest)
        except (msgspec.ValidationError, TypeError, AttributeError):  # of another release
            log.warning("manifest.unreadable", bundle=bundle)
    return found


def _models(manifest: dict[str, Any]) -> BundleModels:
    """Synthetic bundles name outcomes without a model: their risks are not computed again."""
    empathy, window = manifest.get("empathy"), manifest.get("window") or {}
    outcomes = {name: model for name, model in (manifest.get("outcomes") or {}).items() if model}
    return BundleModels(
        msgspec.convert(empathy, EmpathyModel) if empathy else None,
        msgspec.convert(outcomes, dict[str, OutcomeModel]),
        msgspec.convert(manifest.get("heads") or [], list[Head]),
        (window.get("before", 3), window.get("after", 3)),
    )


def read(
    store: Store, session: EndedSession, approaches: Approaches, baselines: BaselineBook
) -> RecordedSession:
    """The turns and scores of a session.

    Approach and baselines are those that the session had; after its state has expired, those of
    today's settings and table.

    Raises:
        NotReproducible: its turns are incomplete.
    """
    if session.withheld_turns or session.unscored_turns:
        raise NotReproducible("turns were withheld, or not scored for their language")
    found = sa.select(turns).where(turns.c.session_id == session.session_id).order_by(turns.c.seq)
    scored = sa.select(turn_scores).where(
        turn_scores.c.session_id == session.session_id, turn_scores.c.bundle == session.bundle
    )
    with store.reading() as connection:
        rows = connection.execute(found).mappings().all()
        stored = connection.execute(scored).mappings().all()
    scores = {(row["seq"], Stage(row["stage"])): _heads(row) for row in stored}
    intents = {row["seq"]: row["intents"] for row in stored}
    if not rows or any(row["words"] is None for row in rows):
        raise NotReproducible("the turns' lengths are not known")
    if len({row["speaker"] for row in rows if row["role"] == Role.CLIENT.value}) > 1:
        raise NotReproducible("it is not stored which of several clients a turn answers")
    state = store.load_states([session.session_id], session.bundle).get(session.session_id)
    return RecordedSession(
        session_id=session.session_id,
        bundle=session.bundle,
        domain=session.domain,
        channel=session.channel,
        team=session.team,
        approach=state.state.approach if state else approaches.of(session.domain, session.team),
        baselines=state.state.baselines if state else _pinned(session, rows, baselines),
        ended_at=session.ended_at,
        turns=[
            RecordedTurn(
                seq=row["seq"],
                role=Role(row["role"]),
                occurred_at=row["occurred_at"],
                words=row["words"],
                late=row["late"],
                arrived_at=row["produced_at"] or row["stored_at"],
                intents=intents.get(row["seq"], {}),
                speaker=row["speaker"],
            )
            for row in rows
        ],
        scores=scores,
    )


def _pinned(session: EndedSession, rows: Any, baselines: BaselineBook) -> Pinned:
    first = next((row["speaker"] for row in rows if row["role"] == Role.COUNSELLOR.value), "")
    return Pinned(
        baselines.get((CHANNEL, session.channel or "")), baselines.get((COUNSELLOR, first)), True
    )


def _heads(row: sa.RowMapping) -> HeadScores:
    return HeadScores(
        expressed_of(row), row["perceived"], row["client"], row["confidence"], row["abstained"]
    )


def answered(store: Store, session_id: str) -> list[Answered]:
    """The judged alerts of a session; the last judgement of an alert counts."""
    transitions = sa.select(
        alerts.c.episode_id, alerts.c.rule, alerts.c.state, alerts.c.occurred_at
    ).where(alerts.c.session_id == session_id)
    judged = (
        sa.select(alert_actions.c.episode_id, alert_actions.c.reason)
        .where(alert_actions.c.session_id == session_id, alert_actions.c.reason.in_(JUDGED))
        .order_by(alert_actions.c.at, alert_actions.c.action_id)
    )
    with store.reading() as connection:
        last = {row.episode_id: row.reason for row in connection.execute(judged)}
        if not last:
            return []
        times: dict[str, dict[str, datetime]] = {}
        rules: dict[str, str] = {}
        for row in connection.execute(transitions):
            times.setdefault(row.episode_id, {})[row.state] = row.occurred_at
            rules[row.episode_id] = row.rule
    found = []
    for episode, reason in last.items():
        at = times.get(episode, {})
        fired = at.get(AlertState.FIRING.value)
        if fired is None:
            continue
        begun = at.get(AlertState.PENDING.value, fired)
        span = Span(session_id, rules[episode], begun, at.get(AlertState.RESOLVED.value))
        found.append(Answered(span, reason in JUSTIFIED))
    return found
