"""The columns of the two tables that are exported, with their types and what they mean."""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from stream_app.contracts.scores import MECHANISMS
from stream_app.core.heads import Dimension, Head, HeadKind
from stream_app.store.reading.sessions import SessionCard
from stream_app.store.reading.transcripts import ScoreOfTurn, TurnRead

Row = dict[str, Any]


class ColumnKind(Enum):
    """``json``: an object or list; JSON text in CSV and Parquet."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TIME = "time"
    JSON = "json"


class Column(Struct, frozen=True):
    """One column."""

    name: str
    kind: ColumnKind
    meaning: str


def _columns(*rows: tuple[str, ColumnKind, str]) -> list[Column]:
    return [Column(*row) for row in rows]


_FACTS: Final = _columns(
    ("team", ColumnKind.TEXT, "As the events carry it"),
    ("domain", ColumnKind.TEXT, "counselling, peer-support or customer-service"),
    ("channel", ColumnKind.TEXT, "As the events carry it"),
)
SESSIONS: Final = [
    *_columns(
        ("session_id", ColumnKind.TEXT, "As the events carry it"),
        ("bundle", ColumnKind.TEXT, "The bundle that scored it last; compare within one bundle"),
        ("status", ColumnKind.TEXT, "open, idle or closed"),
    ),
    *_FACTS,
    *_columns(
        ("lang", ColumnKind.TEXT, "BCP 47 tag"),
        ("started_at", ColumnKind.TIME, "Time of the first turn, UTC"),
        ("last_activity_at", ColumnKind.TIME, "Time of the last turn, UTC"),
        ("ended_at", ColumnKind.TIME, "Time of the session's end, UTC"),
        ("end_reason", ColumnKind.TEXT, "As the event carries it"),
        ("counsellors", ColumnKind.INTEGER, "How many counsellors spoke"),
        ("turns", ColumnKind.INTEGER, "Turns that were scored"),
        ("counsellor_turns", ColumnKind.INTEGER, "Of them the counsellor's"),
        ("late_turns", ColumnKind.INTEGER, "Turns that came out of order, too late"),
        ("withheld_turns", ColumnKind.INTEGER, "Turns not scored for want of consent"),
        ("low_empathy_risk", ColumnKind.NUMBER, "0-1"),
        ("empathy_index", ColumnKind.NUMBER, "0-1"),
        (
            "empathy_percentile",
            ColumnKind.NUMBER,
            "0-100, share of the reference with a lower index",
        ),
        ("answered_share", ColumnKind.NUMBER, "0-1, of the empathic opportunities"),
        ("empathy_total_mean", ColumnKind.NUMBER, "0-6, mean over counsellor turns"),
        ("talk_share", ColumnKind.NUMBER, "0-1, the counsellor's share of the words"),
        ("reflection_to_question", ColumnKind.NUMBER, "Reflections for each question"),
        ("complex_reflection_share", ColumnKind.NUMBER, "0-1, of reflections"),
        ("open_question_share", ColumnKind.NUMBER, "0-1, of questions"),
    ),
    *[
        Column(f"{mechanism}_{part}", ColumnKind.NUMBER, meaning)
        for mechanism in MECHANISMS
        for part, meaning in (
            ("mean", "0-2, mean level over counsellor turns"),
            ("recent_mean", "0-2, over the last five"),
            ("share", "0-1, share of turns with a level above 0"),
        )
    ],
    *_columns(
        (
            "miti_volleys",
            ColumnKind.INTEGER,
            "Volleys counted; empty unless motivational interviewing",
        ),
        (
            "miti_reflection_to_question",
            ColumnKind.NUMBER,
            "Expected reflections for each question",
        ),
        ("miti_complex_reflection_share", ColumnKind.NUMBER, "0-1, of expected reflections"),
        ("miti_open_question_share", ColumnKind.NUMBER, "0-1, of expected questions"),
        ("miti_adherent", ColumnKind.NUMBER, "Expected volleys that seek collaboration"),
        ("miti_non_adherent", ColumnKind.NUMBER, "Expected volleys that persuade"),
        ("miti_counts", ColumnKind.JSON, "Expected number of volleys with a code, by code"),
    ),
]
_TEXT: Final = Column("text", ColumnKind.TEXT, "Redacted; for roles that may read transcripts")
_BEFORE_TEXT: Final = _columns(
    ("session_id", ColumnKind.TEXT, "As the events carry it"),
    ("seq", ColumnKind.INTEGER, "Place in the session, from 0"),
    ("turn_id", ColumnKind.TEXT, "As the event carries it"),
    ("speaker", ColumnKind.TEXT, "Role and number within the session"),
    ("role", ColumnKind.TEXT, "client or counsellor"),
    ("occurred_at", ColumnKind.TIME, "UTC"),
)
_BEFORE_SCORES: Final = _columns(
    ("late", ColumnKind.BOOLEAN, "It came out of order, too late for its place"),
    ("bundle", ColumnKind.TEXT, "The bundle that scored the session last"),
    ("stage", ColumnKind.TEXT, "final, or provisional where there is no final score"),
    ("truncated", ColumnKind.BOOLEAN, "The text was longer than the encoder reads"),
)
_WHOLE: Final = _columns(
    ("empathy_total", ColumnKind.INTEGER, "0-6, sum of the mechanisms' levels"),
    ("confidence", ColumnKind.NUMBER, "0-1, mean top probability of the heads"),
    ("low_empathy_risk", ColumnKind.NUMBER, "0-1, the session's risk after this counsellor turn"),
)
_PARTS: Final = _columns(
    ("abstained", ColumnKind.JSON, "Heads whose confidence is too low to use"),
    ("expressed", ColumnKind.JSON, "All expressed heads, with rationale spans [start, end)"),
    ("client", ColumnKind.JSON, "Heads of the client's turns"),
)
_LEVEL: Final = "Level 0-2; empty: abstained or client"
_PROBABILITY: Final = "0-1, probability"


def turn_columns(heads: Iterable[Head], *, with_text: bool) -> list[Column]:
    """The table of turns where bundles with these heads have scored.

    Every mechanism has a column, and so have the bundles' other heads of levels
    (``expressed_NAME``) and their perceived heads (``perceived_NAME``).
    """
    levels, perceived = [], []
    for head in heads:
        if head.dimension is Dimension.PERCEIVED:
            perceived.append(Column(f"perceived_{head.name}", ColumnKind.NUMBER, _PROBABILITY))
        elif _has_column(head):
            levels.append(Column(f"expressed_{head.name}", ColumnKind.INTEGER, _LEVEL))
    return [
        *_BEFORE_TEXT,
        *([_TEXT] if with_text else []),
        *_FACTS,
        *_BEFORE_SCORES,
        *(Column(name, ColumnKind.INTEGER, _LEVEL) for name in MECHANISMS),
        *levels,
        *_WHOLE,
        *perceived,
        *_PARTS,
    ]


def _has_column(head: Head) -> bool:
    """Tests for a head of levels beside the mechanisms."""
    of_levels = head.dimension is Dimension.EXPRESSED and head.kind is HeadKind.LEVEL
    return of_levels and head.name not in MECHANISMS


def session_row(card: SessionCard) -> Row:
    """A session as a row of ``SESSIONS``."""
    row: Row = {column.name: getattr(card, column.name, None) for column in SESSIONS}
    row["status"] = card.status.value
    row["counsellors"] = len(card.counsellors)
    for name, mechanism in card.mechanisms.items():
        for part in ("mean", "recent_mean", "share"):
            row[f"{name}_{part}"] = getattr(mechanism, part)
    return row | _miti(card)


def _miti(card: SessionCard) -> Row:
    if (found := card.miti) is None:
        return {}
    return {
        "miti_volleys": found.volleys,
        **{f"miti_{name}": measure.value for name, measure in found.measures.items()},
        "miti_adherent": found.mi_adherent,
        "miti_non_adherent": found.mi_non_adherent,
        "miti_counts": found.counts,
    }


def turn_row(card: SessionCard, turn: TurnRead, speaker: str) -> Row:
    """A turn as a row of ``turn_columns``, under the bundle that scored its session last."""
    score = turn.score(card.bundle)
    row: Row = {
        "session_id": turn.session_id,
        "seq": turn.seq,
        "turn_id": turn.turn_id,
        "speaker": speaker,
        "role": turn.role.value,
        "occurred_at": turn.occurred_at,
        "text": turn.text,
        "team": card.team,
        "domain": card.domain,
        "channel": card.channel,
        "late": turn.late,
        "bundle": card.bundle if score else None,
    }
    if score is None:
        return row
    levels = {name: _level(score, name) for name in score.expressed}
    known = [levels.get(name) for name in MECHANISMS]
    risks = (each.low_empathy_risk for each in turn.scores if each.bundle == card.bundle)
    return {
        **row,
        **{f"expressed_{name}": level for name, level in levels.items()},
        **dict(zip(MECHANISMS, known, strict=True)),
        **{f"perceived_{name}": p for name, p in score.perceived.items()},
        "stage": score.stage.value,
        "truncated": score.truncated,
        "empathy_total": score.empathy_total if None not in known else None,
        "confidence": score.confidence,
        "low_empathy_risk": next((risk for risk in risks if risk is not None), None),
        "abstained": score.abstained,
        "expressed": score.expressed,
        "client": score.client,
    }


def _level(score: ScoreOfTurn, name: str) -> int | None:
    part = score.expressed[name]
    shown = isinstance(part, dict) and name not in score.abstained
    return part.get("level") if shown else None


def numbered() -> Callable[[TurnRead], str]:
    """Names speakers of one session by role and number: ``client-1``, ``counsellor-1``."""
    names: dict[tuple[str, str], str] = {}

    def name(turn: TurnRead) -> str:
        key = turn.role.value, turn.speaker
        if key not in names:
            same_role = sum(role == key[0] for role, _ in names)
            names[key] = f"{key[0]}-{same_role + 1}"
        return names[key]

    return name


def in_order(columns: list[Column], row: Row) -> Iterator[Any]:
    """The row's values, column by column."""
    return (row.get(column.name) for column in columns)
