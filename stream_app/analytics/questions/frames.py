"""Session-, turn- and alert-level frames that the analyses work on.

They are read from the facts of the database and of the archive (``fact_reader``); only ratings,
which stay in the database with their sessions, are read from tables. A session scored by several
bundles appears once, under the bundle that was introduced last. Speakers are pseudonyms; no text
is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import sqlalchemy as sa

from stream_app.analytics.archive import fact_reader
from stream_app.analytics.archive.fact_reader import Facts
from stream_app.analytics.questions import head_labels
from stream_app.analytics.views.heads import Field, fields
from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, TOTAL, SessionStatus, Stage
from stream_app.core.measures.catalogue import Use, short_names, used
from stream_app.core.session.restrictions import NOTHING, Outputs
from stream_app.store.database.tables import (
    archived_sessions,
    bundles,
    ratings,
    session_scores,
    session_speakers,
    turn_scores,
)
from stream_app.store.sessions.scope import ALL_SESSIONS, Scope
from stream_app.store.sessions.scored_turns import ScoredHead, find_heads
from stream_app.store.stream.repository import Store

DAYS_A_MONTH: Final = 30.4375
RISK: Final = "risk."
OPEN: Final = SessionStatus.OPEN.value
_OUTCOME_RISK: Final = "outcome_risk_"
_NUMBERS: Final = (
    "turns",
    "counsellor_turns",
    "first_answer",
    *short_names(Use.FRAMES),
)
_OF_SESSION: Final = (
    "session_id",
    "bundle",
    "status",
    "started_at",
    "team",
    "domain",
    "channel",
    "lang",
    "counsellor",
    "client",
    "turns",
    "counsellor_turns",
    "first_answer_seconds",
    "first_read_at",
    *(measure.name for measure in used(Use.FRAMES)),
)
"""Columns of ``fact_session`` that analyses need, beside predicted outcomes."""

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
    **{measure.short: measure.meaning for measure in used(Use.FRAMES)},
    "looked_at": "whether somebody read the transcript",
}
"""Columns of ``Frames.sessions``; predicted outcomes are ``risk.NAME``."""
TURN_COLUMNS: Final = {
    "session_id": "identifier",
    "seq": "number of the turn",
    "role": "client or counsellor",
    "bundle": "as of the session",
    "occurred_at": "UTC",
    "characters": "length of the redacted text; empty in turns of early releases",
    **dict.fromkeys(MECHANISMS, "level 0-2; empty: client turn, or the model abstained"),
    TOTAL: "sum of the levels, 0-6; empty if one of them is",
    "confidence": "0-1",
}
"""Columns of ``Frames.turns``; with those of ``head_labels``."""
ALERT_COLUMNS: Final = {
    "episode_id": "identifier",
    "rule": "name",
    "severity": "info, warning, critical",
    "session_id": "identifier",
    "bundle": "identifier",
    "fired_at": "UTC",
    "acknowledged_at": "first acknowledgement, UTC, or empty",
    "verdict": "the last judgement, or empty",
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
    archive: Path | None = None,
    restricted: Outputs = NOTHING,
) -> Frames:
    """Ended sessions that began within [since, until), with what belongs to them.

    ``with_heads``: all heads of the turns and not only levels, which takes several times as long.
    ``archive``: the folder of archived months. ``restricted``: outputs that are left out, although
    an archived month may have them.

    Raises:
        ArchiveError: archived sessions are meant, and their files are not there.
    """
    within = _within(scope, since, until)
    ids = sa.select(session_scores.c.session_id).where(*within)
    with fact_reader.opened(store, archive) as facts:
        facts.choose_archived(_archived_within(scope, since, until))
        found = _sessions(facts, ids, scope, restricted)
        heads = _heads(facts, restricted) if with_heads else []
        said = _turns(facts, ids, heads) if with_turns else _empty(TURN_COLUMNS)
        raised = _alerts(facts, ids)
        judged = _outcomes(facts, ids)
        rated = _ratings(facts.connection, ids)
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


def _archived_within(
    scope: Scope, since: datetime | None, until: datetime | None
) -> sa.ColumnElement[bool]:
    """Select archived sessions as ``_within`` selects stored ones."""
    index = archived_sessions.c
    found = [sa.true(), *_archived_scope(scope)]
    if since is not None:
        found.append(index.started_at >= since)
    if until is not None:
        found.append(index.started_at < until)
    return sa.and_(*found)


def _archived_scope(scope: Scope) -> list[sa.ColumnElement[bool]]:
    """The team of an archived session is in the index; its speakers are still in the database."""
    found = Scope(speaker=scope.speaker).conditions(archived_sessions.c.session_id)
    return found if scope.team is None else [*found, archived_sessions.c.team == scope.team]


def _bundle_order(connection: sa.Connection) -> dict[str, int]:
    query = sa.select(bundles.c.bundle).order_by(bundles.c.first_used_at, bundles.c.bundle)
    return {name: place for place, name in enumerate(connection.scalars(query))}


def _sessions(facts: Facts, ids: sa.Select[Any], scope: Scope, restricted: Outputs) -> pd.DataFrame:
    risks = [
        column.name
        for column in facts.views["fact_session"].columns
        if column.name.startswith(_OUTCOME_RISK) and not restricted
    ]
    names = [*_OF_SESSION, *risks]
    facts.load("fact_session", _chosen(ids) & (sa.column("status") != OPEN), names)
    frame = _text_as_objects(
        facts.query(
            f"SELECT * FROM fact_session WHERE status <> '{OPEN}' AND counsellor_turns > 0 "
            "AND started_at IS NOT NULL"
        )
    )
    frame["order"] = frame["bundle"].map(_bundle_order(facts.connection)).fillna(-1)
    frame = frame.sort_values(["session_id", "order", "bundle"], ignore_index=True)
    frame = frame.drop_duplicates("session_id", keep="last").reset_index(drop=True)
    renamed = {measure.name: measure.short for measure in used(Use.FRAMES)}
    frame = frame.rename(columns={**renamed, "first_answer_seconds": "first_answer"})
    known = [name for name in risks if frame[name].notna().any()]
    frame = frame.rename(columns={name: RISK + name.removeprefix(_OUTCOME_RISK) for name in known})
    frame[list(_NUMBERS)] = frame[list(_NUMBERS)].astype(float)
    frame = frame.dropna(subset=["counsellor"]).reset_index(drop=True)
    frame["started_at"] = pd.to_datetime(frame["started_at"], utc=True)
    frame = with_joining(frame, _joined(facts.connection, scope))
    frame["looked_at"] = frame["first_read_at"].notna()
    extra = [name for name in frame.columns if name.startswith(RISK)]
    return frame[[*SESSION_COLUMNS, *extra]]


def _chosen(ids: sa.Select[Any]) -> sa.ColumnElement[bool]:
    return sa.column("session_id").in_(ids)


def _text_as_objects(frame: pd.DataFrame) -> pd.DataFrame:
    """Texts as objects, missing ones as None."""
    for name in frame.select_dtypes(["object", "string"]).columns:
        column = frame[name].astype(object)
        frame[name] = column.where(column.notna(), None)
    return frame


def _joined(connection: sa.Connection, scope: Scope) -> dict[str, datetime]:
    """First stored session of each counsellor, regardless of the chosen dates."""
    found: dict[str, datetime] = {}
    for table, conditions in (
        (session_scores, scope.conditions(session_speakers.c.session_id)),
        (archived_sessions, _archived_scope(scope)),
    ):
        query = (
            sa.select(session_speakers.c.speaker, sa.func.min(table.c.started_at))
            .join(table, table.c.session_id == session_speakers.c.session_id)
            .where(session_speakers.c.role == Role.COUNSELLOR.value, *conditions)
            .group_by(session_speakers.c.speaker)
        )
        for speaker, first in connection.execute(query):
            if first is not None:
                found[speaker] = min(first, found.get(speaker, first))
    return found


def _heads(facts: Facts, restricted: Outputs) -> list[Field]:
    dropped = {dimension.value for dimension in restricted}
    known = fields(facts.manifests(), facts.dialect)
    return [field for field in known if field.dimension not in dropped]


def _turns(facts: Facts, ids: sa.Select[Any], heads: Sequence[Field]) -> pd.DataFrame:
    plain = [*TURN_COLUMNS, "stage", "late", *(["intents"] if heads else [])]
    facts.load("fact_turn", _chosen(ids), [*plain, *head_labels.needed(heads)])
    frame = facts.query(
        f"SELECT * FROM fact_turn WHERE stage = '{Stage.FINAL.value}' AND NOT late "
        "ORDER BY session_id, seq"
    )
    numbers = ["characters", "confidence", *MECHANISMS, TOTAL]
    frame[numbers] = frame[numbers].astype(float)
    frame["occurred_at"] = pd.to_datetime(frame["occurred_at"], utc=True)
    found = _text_as_objects(frame[list(TURN_COLUMNS)].copy())
    if not heads:
        return found
    labels = head_labels.of(frame, heads, head_labels.other_labels(facts.manifests()))
    return found.join(labels).join(head_labels.of_intents(frame))


def _alerts(facts: Facts, ids: sa.Select[Any]) -> pd.DataFrame:
    names = [name for name in ALERT_COLUMNS if name != "verdict"]
    facts.load("fact_alert", _chosen(ids), [*names, "judgement"])
    frame = facts.query(
        "SELECT * RENAME (judgement AS verdict) FROM fact_alert WHERE fired_at IS NOT NULL "
        "ORDER BY fired_at, episode_id"
    )
    for name in ("fired_at", "acknowledged_at"):
        frame[name] = pd.to_datetime(frame[name], utc=True)
    return _text_as_objects(frame[list(ALERT_COLUMNS)])


def _outcomes(facts: Facts, ids: sa.Select[Any]) -> pd.DataFrame:
    of_archived = sa.select(archived_sessions.c.session_id)
    chosen = _chosen(ids) | _chosen(of_archived)
    facts.load("fact_outcome", chosen, list(OUTCOME_COLUMNS))
    frame = facts.query(
        "SELECT * FROM fact_outcome SEMI JOIN fact_session USING (session_id) "
        "ORDER BY session_id, kind, seq"
    )
    frame[["seq", "value"]] = frame[["seq", "value"]].astype(float)
    return _text_as_objects(frame[list(OUTCOME_COLUMNS)])


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


def _empty(columns: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(dtype=object) for name in columns})
