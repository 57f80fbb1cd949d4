"""Session-, turn- and alert-level frames that the analyses work on, read from the database.

A session scored by several bundles appears once, under the bundle that was introduced last.
Speakers are pseudonyms; no text is read, only its length.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import numpy as np
import pandas as pd
import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, TOTAL, AlertState, SessionStatus, Stage
from stream_app.store.audit import AuditAction
from stream_app.store.queries.alerts import ActionKind
from stream_app.store.queries.scope import ALL_SESSIONS, Scope
from stream_app.store.repository import Store
from stream_app.store.scored_turns import ScoredHead, find_heads
from stream_app.store.tables import (
    alert_actions,
    alerts,
    audit,
    audit_subjects,
    bundles,
    outcomes,
    ratings,
    session_scores,
    session_speakers,
    sessions,
    turn_scores,
    turns,
)

DAYS_A_MONTH: Final = 30.4375
ABSTAINED: Final = "abstained"
HEAD: Final = "head."
PERCEIVED: Final = "perceived."
RISK: Final = "risk."

SESSION_COLUMNS: Final = {
    "session_id": "identifier",
    "bundle": "the newest bundle that scored it",
    "counsellor": "pseudonym of the counsellor with the most turns",
    "client": "pseudonym of the client with the most turns",
    "team": "as events carried it, or empty",
    "domain": "as events carried it, or empty",
    "channel": "as events carried it, or empty",
    "lang": "BCP 47 tag, or empty",
    "started_at": "first turn, UTC",
    "joined_at": "the counsellor's first stored session, whatever the chosen dates",
    "months": "months from joined_at to started_at",
    "cohort": "year of joined_at",
    "turns": "turns of both sides",
    "counsellor_turns": "turns of the counsellor",
    "first_answer": "seconds from the first client turn to the first counsellor turn after it",
    "empathy_index": "0-1",
    **dict.fromkeys(MECHANISMS, "mean expected level of the session, 0-2"),
    "reflection_to_question": "MITI ratio",
    "complex_reflection_share": "MITI share, 0-1",
    "open_question_share": "MITI share, 0-1",
    "low_empathy_risk": "0-1",
    "looked_at": "whether somebody read the transcript",
}
"""Columns of ``Frames.sessions``; predicted outcomes are ``risk.NAME``."""
TURN_COLUMNS: Final = {
    "session_id": "identifier",
    "seq": "number of the turn",
    "role": "client or counsellor",
    "bundle": "as of the session",
    "occurred_at": "UTC",
    "characters": "length of the text; empty after the text was purged",
    **dict.fromkeys(MECHANISMS, "level 0-2; empty: client turn, or the model abstained"),
    TOTAL: "sum of the levels, 0-6; empty if one of them is",
    "confidence": "0-1",
}
"""Columns of ``Frames.turns``; ``head.NAME``: label or ``abstained``; ``perceived.NAME``: 0-1."""
ALERT_COLUMNS: Final = {
    "episode_id": "identifier",
    "rule": "name",
    "severity": "info, warning, critical",
    "session_id": "identifier",
    "bundle": "identifier",
    "fired_at": "UTC",
    "acknowledged_at": "first acknowledgement, UTC, or empty",
    "verdict": "the last stated reason, or empty",
}
OUTCOME_COLUMNS: Final = {
    "session_id": "identifier",
    "seq": "of the judged turn; empty: the whole session",
    "kind": "like, reply, follow or rating",
    "value": "1 given, 0 withdrawn; 1-5 for ratings",
}
RATING_COLUMNS: Final = {
    "session_id": "identifier",
    "seq": "of the rated turn",
    "head": "rated head",
    "value": "index of the label",
    "model": "what the model predicted, as an index; empty: abstained",
    "probability": "the model's probability of its prediction",
}


@dataclass(frozen=True, slots=True)
class Frames:
    """The data of one analysis; columns as documented above."""

    sessions: pd.DataFrame
    turns: pd.DataFrame
    alerts: pd.DataFrame
    outcomes: pd.DataFrame
    ratings: pd.DataFrame

    def of_sessions(self, chosen: pd.Series) -> "Frames":
        """Only these rows of ``sessions``, and what belongs to them."""
        some = self.sessions[chosen]
        ids = set(some["session_id"])
        rest = {
            name: frame[frame["session_id"].isin(ids)]
            for name in ("turns", "alerts", "outcomes", "ratings")
            for frame in (getattr(self, name),)
        }
        return replace(self, sessions=some, **rest)


def read(
    store: Store,
    scope: Scope = ALL_SESSIONS,
    since: datetime | None = None,
    until: datetime | None = None,
    *,
    with_turns: bool = True,
    with_heads: bool = False,
) -> Frames:
    """Ended sessions that began within [since, until), with what belongs to them.

    ``with_heads``: all heads of the turns and not only levels, which takes several times as long.
    """
    within = _within(scope, since, until)
    with store.reading() as connection:
        order = _bundle_order(connection)
        found = _sessions(connection, within, scope, order)
        ids = sa.select(session_scores.c.session_id).where(*within)
        said = _turns(connection, ids, whole=with_heads) if with_turns else _empty(TURN_COLUMNS)
        raised = _alerts(connection, ids)
        judged = _outcomes(connection, ids)
        rated = _ratings(connection, ids)
    used = found[["session_id", "bundle"]]
    return Frames(
        found,
        said.merge(used, on=["session_id", "bundle"]).reset_index(drop=True),
        raised,
        judged,
        rated.merge(used, on=["session_id", "bundle"]).drop(columns="bundle"),
    )


def with_joining(frame: pd.DataFrame, joined: Mapping[str, Any]) -> pd.DataFrame:
    """Add ``joined_at``, ``months`` and ``cohort``; ``joined``: first session by counsellor."""
    frame["joined_at"] = pd.to_datetime(frame["counsellor"].map(dict(joined)), utc=True)
    days = (frame["started_at"] - frame["joined_at"]).dt.total_seconds() / 86400
    frame["months"] = days / DAYS_A_MONTH
    frame["cohort"] = frame["joined_at"].dt.year
    return frame


def _within(
    scope: Scope, since: datetime | None, until: datetime | None
) -> list[sa.ColumnElement[bool]]:
    score = session_scores
    found = [
        score.c.status != SessionStatus.OPEN.value,
        score.c.started_at.is_not(None),
        score.c.counsellor_turns > 0,
        *scope.conditions(score.c.session_id),
    ]
    if since is not None:
        found.append(score.c.started_at >= since)
    if until is not None:
        found.append(score.c.started_at < until)
    return found


def _bundle_order(connection: sa.Connection) -> dict[str, int]:
    query = sa.select(bundles.c.bundle).order_by(bundles.c.first_used_at, bundles.c.bundle)
    return {name: place for place, name in enumerate(connection.scalars(query))}


def _sessions(
    connection: sa.Connection,
    within: Sequence[sa.ColumnElement[bool]],
    scope: Scope,
    order: Mapping[str, int],
) -> pd.DataFrame:
    score = session_scores
    plain = (
        "turns",
        "counsellor_turns",
        "empathy_index",
        "reflection_to_question",
        "complex_reflection_share",
        "open_question_share",
        "low_empathy_risk",
    )
    query = (
        sa.select(
            score.c.session_id,
            score.c.bundle,
            score.c.started_at,
            score.c.mechanisms,
            score.c.outcome_risks,
            *(score.c[name] for name in plain),
            *(sessions.c[name] for name in ("team", "domain", "channel", "lang")),
        )
        .join(sessions, sessions.c.session_id == score.c.session_id)
        .where(*within)
    )
    frame = _frame(connection, query)
    frame["order"] = frame["bundle"].map(dict(order)).fillna(-1)
    frame = frame.sort_values(["session_id", "order"], ignore_index=True)
    frame = frame.drop_duplicates("session_id", keep="last").reset_index(drop=True)
    for name in MECHANISMS:
        frame[name] = [_mean(found, name) for found in frame["mechanisms"]]
    risks = pd.DataFrame([found or {} for found in frame["outcome_risks"]], index=frame.index)
    frame = frame.join(risks.add_prefix(RISK))
    numbers = [*plain, *MECHANISMS]
    frame[numbers] = frame[numbers].astype(float)
    frame = frame.merge(_people(connection, within), on="session_id", how="left")
    frame = frame.dropna(subset=["counsellor"]).reset_index(drop=True)
    frame["started_at"] = pd.to_datetime(frame["started_at"], utc=True)
    frame = with_joining(frame, _joined(connection, scope))
    read_by = (
        sa.select(audit_subjects.c.value)
        .join(audit, audit.c.subject == audit_subjects.c.subject)
        .where(audit.c.action == AuditAction.READ_TRANSCRIPT.value)
    )
    frame["looked_at"] = frame["session_id"].isin(set(connection.scalars(read_by.distinct())))
    extra = [name for name in frame.columns if name.startswith(RISK)]
    return frame[[*SESSION_COLUMNS, *extra]]


def _mean(mechanisms: Mapping[str, Any], name: str) -> float:
    part = mechanisms.get(name)
    return float(part["mean"]) if part else np.nan


def _people(connection: sa.Connection, within: Sequence[sa.ColumnElement[bool]]) -> pd.DataFrame:
    """Counsellor and client of each session, and the time to the first answer."""
    query = (
        sa.select(
            turns.c.session_id,
            turns.c.role,
            turns.c.speaker,
            sa.func.count().label("count"),
            sa.func.min(turns.c.occurred_at).label("first"),
            sa.func.min(turns.c.seq).label("first_seq"),
        )
        .where(turns.c.session_id.in_(sa.select(session_scores.c.session_id).where(*within)))
        .group_by(turns.c.session_id, turns.c.role, turns.c.speaker)
    )
    frame = _frame(connection, query)
    frame["first"] = pd.to_datetime(frame["first"], utc=True)
    most = frame.sort_values(["session_id", "role", "count", "speaker"])
    most = most.drop_duplicates(["session_id", "role"], keep="last")
    who = most.pivot_table(index="session_id", columns="role", values="speaker", aggfunc="last")
    who = who.reindex(columns=[Role.CLIENT.value, Role.COUNSELLOR.value])
    begun = frame.sort_values(["session_id", "role", "first_seq"]).drop_duplicates(
        ["session_id", "role"], keep="first"
    )
    first = begun.pivot_table(
        index="session_id", columns="role", values=["first", "first_seq"], aggfunc="last"
    )
    answer = pd.Series(np.nan, index=who.index, dtype=float)
    roles = [Role.CLIENT.value, Role.COUNSELLOR.value]
    if all(("first", role) in first.columns for role in roles):
        client, counsellor = (first["first", role] for role in roles)
        took = (counsellor - client).dt.total_seconds()
        answer = took.where(first["first_seq", roles[0]] < first["first_seq", roles[1]])
    who["first_answer"] = answer
    return who.reset_index()


def _joined(connection: sa.Connection, scope: Scope) -> dict[str, datetime]:
    """First stored session of each counsellor, regardless of the chosen dates."""
    query = (
        sa.select(session_speakers.c.speaker, sa.func.min(session_scores.c.started_at))
        .join(session_scores, session_scores.c.session_id == session_speakers.c.session_id)
        .where(
            session_speakers.c.role == Role.COUNSELLOR.value,
            *scope.conditions(session_speakers.c.session_id),
        )
        .group_by(session_speakers.c.speaker)
    )
    return {speaker: first for speaker, first in connection.execute(query) if first is not None}


def _turns(connection: sa.Connection, ids: sa.Select[Any], *, whole: bool) -> pd.DataFrame:
    score = turn_scores
    levels = [*MECHANISMS, TOTAL]
    query = (
        sa.select(
            score.c.session_id,
            score.c.seq,
            score.c.role,
            score.c.bundle,
            score.c.occurred_at,
            sa.func.length(turns.c.text).label("characters"),
            *(score.c[name] for name in levels),
            score.c.confidence,
            score.c.abstained,
            *((score.c.expressed, score.c.perceived, score.c.client) if whole else ()),
        )
        .join(turns, (turns.c.session_id == score.c.session_id) & (turns.c.seq == score.c.seq))
        .where(
            score.c.stage == Stage.FINAL.value,
            score.c.late.is_(False),
            score.c.session_id.in_(ids),
        )
        .order_by(score.c.session_id, score.c.seq)
    )
    frame = _frame(connection, query)
    numbers = ["characters", "confidence", *levels]
    frame[numbers] = frame[numbers].astype(float)
    for name in MECHANISMS:
        frame.loc[[name in gone for gone in frame["abstained"]], name] = np.nan
    frame.loc[frame[list(MECHANISMS)].isna().any(axis=1), TOTAL] = np.nan
    frame["occurred_at"] = pd.to_datetime(frame["occurred_at"], utc=True)
    if not whole:
        return frame[list(TURN_COLUMNS)]
    told = pd.DataFrame(
        [
            _heads(*row)
            for row in zip(
                frame["expressed"],
                frame["perceived"],
                frame["client"],
                frame["abstained"],
                strict=True,
            )
        ],
        index=frame.index,
    )
    return frame[list(TURN_COLUMNS)].join(told)


def _heads(
    expressed: Mapping[str, Any],
    perceived: Mapping[str, float],
    client: Mapping[str, Any],
    abstained: Sequence[str],
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, part in (*expressed.items(), *client.items()):
        if name == TOTAL:
            continue
        if name in abstained:
            found[HEAD + name] = ABSTAINED
        elif "level" in part:
            found[HEAD + name] = str(part["level"])
        else:
            found[HEAD + name] = max(part, key=part.__getitem__)
    for name, probability in perceived.items():
        found[PERCEIVED + name] = np.nan if name in abstained else float(probability)
    return found


def _alerts(connection: sa.Connection, ids: sa.Select[Any]) -> pd.DataFrame:
    columns = ("episode_id", "rule", "severity", "session_id", "bundle")
    fired = (
        sa.select(*(alerts.c[name] for name in columns), alerts.c.occurred_at.label("fired_at"))
        .where(alerts.c.state == AlertState.FIRING.value, alerts.c.session_id.in_(ids))
        .order_by(alerts.c.occurred_at, alerts.c.alert_id)
    )
    acts = (
        sa.select(alert_actions.c.episode_id, alert_actions.c.reason, alert_actions.c.at)
        .where(
            alert_actions.c.session_id.in_(ids),
            alert_actions.c.kind == ActionKind.ACKNOWLEDGE.value,
        )
        .order_by(alert_actions.c.at, alert_actions.c.action_id)
    )
    frame = _frame(connection, fired).drop_duplicates("episode_id", keep="first")
    done = _frame(connection, acts)
    first = done.drop_duplicates("episode_id", keep="first").set_index("episode_id")["at"]
    last = done.dropna(subset=["reason"]).drop_duplicates("episode_id", keep="last")
    frame["fired_at"] = pd.to_datetime(frame["fired_at"], utc=True)
    frame["acknowledged_at"] = pd.to_datetime(frame["episode_id"].map(first), utc=True)
    frame["verdict"] = frame["episode_id"].map(last.set_index("episode_id")["reason"])
    return frame[list(ALERT_COLUMNS)].reset_index(drop=True)


def _outcomes(connection: sa.Connection, ids: sa.Select[Any]) -> pd.DataFrame:
    query = sa.select(*(outcomes.c[name] for name in OUTCOME_COLUMNS)).where(
        outcomes.c.session_id.in_(ids)
    )
    frame = _frame(connection, query)
    frame[["seq", "value"]] = frame[["seq", "value"]].astype(float)
    return frame


def _ratings(connection: sa.Connection, ids: sa.Select[Any]) -> pd.DataFrame:
    """Ratings of turns with the model's prediction; one row per rating and bundle."""
    score = turn_scores
    query = (
        sa.select(
            ratings.c.session_id,
            ratings.c.seq,
            ratings.c.head,
            ratings.c.value,
            score.c.bundle,
            score.c.expressed,
            score.c.perceived,
            score.c.client,
            score.c.abstained,
        )
        .join(score, (score.c.session_id == ratings.c.session_id) & (score.c.seq == ratings.c.seq))
        .where(ratings.c.session_id.in_(ids), score.c.stage == Stage.FINAL.value)
        .order_by(ratings.c.session_id, ratings.c.seq, ratings.c.head, ratings.c.rating_id)
    )
    rows = connection.execute(query).mappings().all()
    known = {name: find_heads(connection, name) for name in {row["bundle"] for row in rows}}
    found = [
        (*(row[name] for name in ("session_id", "seq", "head", "value")), *told, row["bundle"])
        for row in rows
        for told in (_predicted(known[row["bundle"]].get(row["head"]), row),)
    ]
    frame = pd.DataFrame(found, columns=[*RATING_COLUMNS, "bundle"])
    numbers = ["seq", "value", "model", "probability"]
    frame[numbers] = frame[numbers].astype(float)
    return frame


def _predicted(head: ScoredHead | None, score: Mapping[Any, Any]) -> tuple[float, float]:
    """The predicted index and its probability; both empty without a prediction."""
    said = head.model_value(score) if head is not None else None
    if head is None or said is None:
        return np.nan, np.nan
    if head.name in score["perceived"]:
        yes = float(score["perceived"][head.name])
        return float(said), yes if said else 1 - yes
    part = score["expressed"].get(head.name) or score["client"].get(head.name)
    if "level" in part:
        return float(said), float(part["probabilities"][said])
    return float(said), float(part[head.labels[said]])


def _frame(connection: sa.Connection, query: sa.Select[Any]) -> pd.DataFrame:
    result = connection.execute(query)
    names = list(result.keys())
    return pd.DataFrame([tuple(row) for row in result], columns=names, dtype=object)


def _empty(columns: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(dtype=object) for name in columns})
