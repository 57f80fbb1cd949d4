"""Conversion of the core's structs to table rows."""

import uuid
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import RowMapping

from stream_app.contracts.events import Outcome, Questionnaire, utc
from stream_app.contracts.scores import MECHANISMS, Alert, SessionScore, SessionStatus, TurnScore
from stream_app.core.session.batch import StoredTurn
from stream_app.core.session.consent import ConsentRecord
from stream_app.core.session.session_state import SessionState, Versioned
from stream_app.plain_text.copies import spoken
from stream_app.store.database import head_columns
from stream_app.store.database.periods import activity_hour, seen_period
from stream_app.store.database.privacy import Privacy

Row = dict[str, Any]
OUTCOME_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:outcome")
QUESTIONNAIRE_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:questionnaire")
CONSENT_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:rapport:consent")


def turn_row(stored: StoredTurn, privacy: Privacy, now: datetime) -> Row:
    """A turn, with redacted text (not yet encrypted) and the speaker's pseudonym."""
    turn = stored.turn
    text = privacy.redacted(turn.text)
    return {
        "session_id": turn.session_id,
        "seq": turn.seq,
        "turn_id": turn.turn_id,
        "speaker": privacy.pseudonym(turn.speaker_id),
        "role": turn.speaker_role.value,
        "text": text,
        "chars": len(text),
        "occurred_at": turn.occurred_at,
        "late": stored.late,
        "produced_at": stored.produced_at,
        "stored_at": now,
        "words": len(spoken(turn.text).text.split()),
        "unscored": stored.unscored.value if stored.unscored is not None else None,
        "language": stored.language,
    }


def speaker_row(turn: Row, *, reads: bool) -> Row:
    """The speaker of a turn's row as a participant; ``reads``: whether to give access."""
    return {name: turn[name] for name in ("session_id", "speaker", "role")} | {"reads": reads}


def turn_score_row(score: TurnScore) -> Row:
    """A turn score: what is queried as columns, the rest as JSON."""
    expressed = score.expressed
    levels = {
        name: level.level if (level := expressed.level(name)) is not None else None
        for name in MECHANISMS
    }
    return {
        "session_id": score.session_id,
        "seq": score.seq,
        "stage": score.stage.value,
        "bundle": score.bundle,
        "role": score.role.value,
        "occurred_at": score.occurred_at,
        "late": score.late,
        "truncated": score.truncated,
        **levels,
        "empathy_total": expressed.total,
        "confidence": score.confidence,
        "low_empathy_risk": score.low_empathy_risk,
        **head_columns.row(expressed, score.perceived, score.client),
        "abstained": score.abstained,
        "intents": score.intents,
    }


def session_score_row(score: SessionScore) -> Row:
    """A session's aggregates; the risk by turn is stored in ``turn_scores``."""
    row = msgspec.structs.asdict(score)
    del row["risk_by_turn"]
    low, high = row.pop("empathy_interval") or (None, None)
    return {
        **row,
        "empathy_low": low,
        "empathy_high": high,
        "status": score.status.value,
        "mechanisms": score.mechanisms,
        "activity_hour": activity_hour(score.last_activity_at),
    }


def session_row(state: SessionState, now: datetime, *, hide_withdrawn: bool) -> Row:
    """A session's attributes, stored at ``now``."""
    attributes = {
        name: getattr(state, name)
        for name in (
            "session_id",
            "domain",
            "channel",
            "team",
            "lang",
            "consent",
            "started_at",
            "last_activity_at",
            "ended_at",
            "end_reason",
        )
    }
    hidden = state.withdrawn and hide_withdrawn
    return {**attributes, "withdrawn": state.withdrawn, "hidden": hidden, "stored_at": now}


def consent_row(record: ConsentRecord, privacy: Privacy, now: datetime) -> Row:
    """A consent record; its id is derived from the session and the record's own id or content."""
    stated = record.consent_id or f"{record.seq}/{record.status.value}/{record.occurred_at}"
    named = record.speaker_id
    return {
        "consent_id": str(uuid.uuid5(CONSENT_NAMESPACE, f"{record.session_id}/{stated}")),
        "session_id": record.session_id,
        "status": record.status.value,
        "effective": record.effective,
        "version": record.version,
        "source": privacy.redacted(record.source) if record.source is not None else None,
        "speaker": privacy.pseudonym(named) if named is not None else None,
        "seq": record.seq,
        "occurred_at": record.occurred_at,
        "stored_at": now,
        "purposes": [purpose.value for purpose in record.purposes] or None,
    }


def state_row(versioned: Versioned, status: SessionStatus, packed: bytes) -> Row:
    """The state with its next version; ``was``: the version that it replaces."""
    state = versioned.state
    return {
        "session_id": state.session_id,
        "bundle": state.bundle,
        "version": versioned.version + 1,
        "was": versioned.version,
        "status": status.value,
        "partition": versioned.partition,
        "last_activity_at": state.last_activity_at,
        "wake_at": versioned.wakes_at,
        "state": packed,
        "seen_at": versioned.seen_at,
        "seen_period": seen_period(versioned.seen_at),
    }


def alert_row(alert: Alert) -> Row:
    """One alert transition."""
    row = msgspec.structs.asdict(alert)
    enums = {name: row[name].value for name in ("state", "previous", "severity")}
    return {**row, **enums}


def stored_alert(row: RowMapping) -> Alert:
    """The alert transition of a row."""
    names = Alert.__struct_fields__
    return msgspec.convert({"type": "alert", **{name: row[name] for name in names}}, Alert)


def questionnaire_row(given: Questionnaire) -> Row:
    """A questionnaire; without an id it gets a UUIDv5 derived from its content."""
    content = f"{given.session_id}/{given.instrument.value}/{utc(given.occurred_at)}"
    return {
        "questionnaire_id": given.questionnaire_id
        or str(uuid.uuid5(QUESTIONNAIRE_NAMESPACE, content)),
        "session_id": given.session_id,
        "instrument": given.instrument.value,
        "items": given.items,
        "occurred_at": utc(given.occurred_at),
    }


def outcome_row(outcome: Outcome) -> Row:
    """An outcome; without an id it gets a UUIDv5 derived from its content."""
    content = f"{outcome.session_id}/{outcome.seq}/{outcome.kind.value}/{utc(outcome.occurred_at)}"
    return {
        "outcome_id": outcome.outcome_id or str(uuid.uuid5(OUTCOME_NAMESPACE, content)),
        "session_id": outcome.session_id,
        "seq": outcome.seq,
        "kind": outcome.kind.value,
        "value": outcome.value,
        "occurred_at": outcome.occurred_at,
    }
