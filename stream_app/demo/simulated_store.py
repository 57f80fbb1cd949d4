"""Writes a synthetic platform to a database, with the rows that a worker's commit makes.

The structs of the contract go through the row builders of ``store.rows``; only the session states,
which an ended session no longer needs, are left out. Texts are filler of the drawn length.
"""

import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
import numpy as np

from stream_app.analytics.questions.frames import RISK
from stream_app.analytics.questions.head_labels import ABSTAINED, HEAD, PERCEIVED
from stream_app.contracts.events import Domain, Outcome, OutcomeKind, Role, Turn, WireRole
from stream_app.contracts.scores import (
    MECHANISMS,
    TOTAL,
    Alert,
    AlertState,
    Expressed,
    Level,
    MechanismSummary,
    SessionScore,
    SessionStatus,
    Severity,
    Stage,
    TurnScore,
)
from stream_app.core.measures.heads import LEVELS, Dimension, Head, HeadKind
from stream_app.core.session.batch import StoredTurn
from stream_app.core.session.session_state import SessionState
from stream_app.demo.simulator import PERCEIVED_HEADS, STRATEGIES, Platform
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.alerts.alerts import ActionKind
from stream_app.store.database import rows, tables
from stream_app.store.database.rows import Row
from stream_app.store.stream.repository import Store

CHUNK: Final = 500
"""Sessions of one transaction."""
FILLER: Final = "words that stand for a turn of a synthetic session "
SOMEBODY: Final = "(simulated)"
"""Who rated, read and acknowledged."""
NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:simulated")
TALK: Final = ("change", "neutral", "sustain")
SURE: Final = 0.8
"""Probability of a level that nobody rated."""
HEADS: Final = (
    *(
        Head(name, Dimension.EXPRESSED, HeadKind.LEVEL, [Role.COUNSELLOR], list(LEVELS))
        for name in MECHANISMS
    ),
    Head(
        "strategy", Dimension.EXPRESSED, HeadKind.CATEGORICAL, [Role.COUNSELLOR], list(STRATEGIES)
    ),
    *(
        Head(name, Dimension.PERCEIVED, HeadKind.BINARY, [Role.COUNSELLOR], ["no", "yes"])
        for name in PERCEIVED_HEADS
    ),
    Head("talk_type", Dimension.CLIENT, HeadKind.CATEGORICAL, [Role.CLIENT], list(TALK)),
)

Record = Mapping[str, Any]
Parts = Mapping[str, Mapping[str, list[Record]]]


def write(platform: Platform, store: Store, prefix: str = "simulated") -> int:
    """Store a platform; returns the number of turns.

    ``prefix``: of all ids, so that several platforms fit into one database.
    """
    frames = platform.frames
    parts: dict[str, dict[str, list[Record]]] = {}
    for name in ("turns", "alerts", "outcomes", "ratings"):
        by: dict[str, list[Record]] = {}
        for record in getattr(frames, name).to_dict("records"):
            by.setdefault(record["session_id"], []).append(record)
        parts[name] = by
    with store.transaction() as connection:
        store.upsert(connection, tables.bundles, list(_bundles(platform)), keep=True)
    sessions = frames.sessions.to_dict("records")
    written = 0
    for start in range(0, len(sessions), CHUNK):
        made: dict[str, list[Row]] = {}
        for session in sessions[start : start + CHUNK]:
            for name, row in _session(store, session, parts, prefix):
                made.setdefault(name, []).append(row)
        with store.transaction() as connection:
            for name, found in made.items():
                store.upsert(connection, tables.metadata.tables[name], found, keep=True)
        chunk = sessions[start : start + CHUNK]
        read = [f"{prefix}-{each['session_id']}" for each in chunk if each["looked_at"]]
        audit.record_all(store, SOMEBODY, AuditAction.READ_TRANSCRIPT, read)
        written += len(made["turns"])
    return written


def _bundles(platform: Platform) -> Iterator[Row]:
    used = platform.frames.sessions.groupby("bundle")["started_at"].min()
    for bundle, first in used.items():
        yield {
            "bundle": bundle,
            "digest": "0" * 64,
            "manifest": {
                "name": bundle,
                "synthetic": True,
                "heads": msgspec.to_builtins(HEADS),
                "outcomes": {name: {} for name in _risks(platform)},
            },
            "first_used_at": first.to_pydatetime(),
        }


def _risks(platform: Platform) -> list[str]:
    return [name.removeprefix(RISK) for name in platform.frames.sessions if name.startswith(RISK)]


def _session(store: Store, session: Record, parts: Parts, prefix: str) -> Iterator[tuple[str, Row]]:
    """All rows of a session, as table and row."""
    key = session["session_id"]
    name = f"{prefix}-{key}"
    turns = parts["turns"][key]
    ended = turns[-1]["occurred_at"].to_pydatetime()
    began = session["started_at"].to_pydatetime()
    speakers: set[tuple[str, str]] = set()
    rated = {record["seq"]: record for record in parts["ratings"].get(key, ())}
    for turn in turns:
        row = rows.turn_row(_turn(session, turn, name), store.privacy, ended)
        yield "turns", row
        speaker = rows.speaker_row(row, reads=True)
        if (row["speaker"], row["role"]) not in speakers:
            speakers.add((row["speaker"], row["role"]))
            yield "session_speakers", speaker
        yield "turn_scores", rows.turn_score_row(_turn_score(turn, name, rated.get(turn["seq"])))
    state = SessionState(
        session_id=name,
        bundle=session["bundle"],
        closed=True,
        consent=True,
        **{field: session[field] for field in ("domain", "channel", "team", "lang")},
        started_at=began,
        last_activity_at=ended,
        ended_at=ended,
    )
    yield "sessions", rows.session_row(state, ended, hide_withdrawn=True)
    yield "session_scores", rows.session_score_row(_session_score(session, name, ended))
    for alert in parts["alerts"].get(key, ()):
        yield from _alert(alert, name, ended)
    for number, outcome in enumerate(parts["outcomes"].get(key, ())):
        yield "outcomes", rows.outcome_row(_outcome(outcome, name, number, ended))
    for rating in rated.values():
        yield "ratings", _rating(rating, name, ended)


def _turn(session: Record, turn: Record, name: str) -> StoredTurn:
    text = (FILLER * (int(turn["characters"]) // len(FILLER) + 1))[: int(turn["characters"])]
    return StoredTurn(
        Turn(
            session_id=name,
            seq=turn["seq"],
            speaker_id=session[turn["role"]],
            role=WireRole(turn["role"]),
            text=text,
            occurred_at=turn["occurred_at"].to_pydatetime(),
            domain=Domain(session["domain"]),
            lang=session["lang"],
            consent=True,
            channel=session["channel"],
            team=session["team"],
        ),
        late=False,
    )


def _turn_score(turn: Record, name: str, rated: Record | None) -> TurnScore:
    expressed, perceived, client, abstained = Expressed(), {}, {}, []
    if turn["role"] == Role.COUNSELLOR.value:
        for mechanism in MECHANISMS:
            known = rated is not None and rated["head"] == mechanism
            sure = rated["probability"] if rated is not None and known else SURE
            level = int(turn[mechanism])
            expressed[mechanism] = Level(level, _spread(level, sure, len(LEVELS)))
        expressed[TOTAL] = int(turn[TOTAL])
        label = turn[f"{HEAD}strategy"]
        if label == ABSTAINED:
            abstained.append("strategy")
        place = STRATEGIES.index(label) if label in STRATEGIES else 0
        spread = _spread(place, SURE, len(STRATEGIES))
        expressed["strategy"] = dict(zip(STRATEGIES, spread, strict=True))
        perceived = {head: turn[PERCEIVED + head] for head in PERCEIVED_HEADS}
    else:
        spread = _spread(TALK.index(turn[f"{HEAD}talk_type"]), SURE, len(TALK))
        client = {"talk_type": dict(zip(TALK, spread, strict=True))}
    return TurnScore(
        session_id=name,
        seq=turn["seq"],
        stage=Stage.FINAL,
        bundle=turn["bundle"],
        role=Role(turn["role"]),
        occurred_at=turn["occurred_at"].to_pydatetime(),
        late=False,
        truncated=False,
        expressed=expressed,
        perceived=perceived,
        client=client,
        confidence=turn["confidence"],
        abstained=abstained,
    )


def _spread(place: int, probability: float, count: int) -> list[float]:
    rest = (1 - probability) / (count - 1)
    return [probability if index == place else rest for index in range(count)]


def _session_score(session: Record, name: str, ended: datetime) -> SessionScore:
    risks = {key.removeprefix(RISK): float(session[key]) for key in session if key[:5] == RISK}
    return SessionScore(
        session_id=name,
        bundle=session["bundle"],
        status=SessionStatus.CLOSED,
        started_at=session["started_at"].to_pydatetime(),
        last_activity_at=ended,
        turns=int(session["turns"]),
        counsellor_turns=int(session["counsellor_turns"]),
        late_turns=0,
        withheld_turns=0,
        mechanisms={
            each: MechanismSummary(session[each], session[each], min(1.0, session[each]))
            for each in MECHANISMS
        },
        empathy_total_mean=float(np.sum([session[each] for each in MECHANISMS])),
        talk_share=0.5,
        reflection_to_question=session["reflection_to_question"],
        complex_reflection_share=session["complex_reflection_share"],
        open_question_share=session["open_question_share"],
        low_empathy_risk=session["low_empathy_risk"],
        empathy_index=session["empathy_index"],
        empathy_interval=None,
        empathy_percentile=None,
        answered_share=None,
        missed_opportunities=[],
        outcome_risks=risks,
        risk_by_turn=[],
        miti=None,
    )


def _alert(alert: Record, name: str, ended: datetime) -> Iterator[tuple[str, Row]]:
    """The transitions to firing and, at the session's end, resolved; and what somebody answered."""
    episode = str(uuid.uuid5(NAMESPACE, f"{name}/{alert['episode_id']}"))
    fired = alert["fired_at"].to_pydatetime()
    transition = Alert(
        alert_id=str(uuid.uuid5(NAMESPACE, f"{episode}/firing")),
        episode_id=episode,
        rule=alert["rule"],
        severity=Severity(alert["severity"]),
        labels={},
        session_id=name,
        bundle=alert["bundle"],
        state=AlertState.FIRING,
        previous=AlertState.INACTIVE,
        episode=1,
        seq=1,
        occurred_at=fired,
        reason="Synthetic: there is no conversation behind this alert.",
        value=None,
        threshold=None,
        values={},
        turns=[1],
        rules_digest="simulated",
    )
    yield "alerts", rows.alert_row(transition)
    resolved = msgspec.structs.replace(
        transition,
        alert_id=str(uuid.uuid5(NAMESPACE, f"{episode}/resolved")),
        state=AlertState.RESOLVED,
        previous=AlertState.FIRING,
        occurred_at=max(ended, fired),
    )
    yield "alerts", rows.alert_row(resolved)
    action = {
        "action_id": str(uuid.uuid5(NAMESPACE, f"{episode}/acknowledged")),
        "episode_id": episode,
        "session_id": name,
        "kind": ActionKind.ACKNOWLEDGE.value,
        "reason": alert["verdict"],
        "note": None,
        "person": SOMEBODY,
        "at": alert["acknowledged_at"].to_pydatetime(),
    }
    yield "alert_actions", action


def _outcome(outcome: Record, name: str, number: int, ended: datetime) -> Outcome:
    return Outcome(
        session_id=name,
        kind=OutcomeKind(outcome["kind"]),
        occurred_at=ended,
        value=outcome["value"],
        seq=None if np.isnan(outcome["seq"]) else int(outcome["seq"]),
        outcome_id=str(uuid.uuid5(NAMESPACE, f"{name}/outcome/{number}")),
    )


def _rating(rating: Record, name: str, ended: datetime) -> Row:
    return {
        "rating_id": str(uuid.uuid5(NAMESPACE, f"{name}/{rating['seq']}/{rating['head']}")),
        "session_id": name,
        "seq": int(rating["seq"]),
        "head": rating["head"],
        "value": int(rating["value"]),
        "sample_id": None,
        "person": SOMEBODY,
        "at": ended,
    }
