"""Columns of the exported session and turn tables, with types and meanings."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from stream_app.analytics.views.columns import Kind
from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.catalogue import Use, used
from stream_app.core.measures.heads import Dimension, Head, HeadKind
from stream_app.core.session.restrictions import NOTHING, Outputs
from stream_app.store.sessions.sessions import SessionCard
from stream_app.store.sessions.transcripts import ScoreOfTurn, TurnRead

Row = dict[str, Any]


class Column(Struct, frozen=True):
    """One column of an exported table."""

    name: str
    kind: Kind
    meaning: str


_TEXT, _INTEGER, _NUMBER = Kind.TEXT, Kind.INTEGER, Kind.NUMBER
_BOOLEAN, _TIME, _JSON = Kind.BOOLEAN, Kind.TIME, Kind.JSON


def columns_of(*rows: tuple[str, Kind, str]) -> list[Column]:
    """Columns from name, kind and meaning."""
    return [Column(*row) for row in rows]


SESSION_ATTRIBUTES: Final = columns_of(
    ("team", _TEXT, "From the events"),
    ("domain", _TEXT, "counselling, peer-support or customer-service"),
    ("channel", _TEXT, "From the events"),
)


def with_session(key: str, meaning: str, *rows: tuple[str, Kind, str]) -> list[Column]:
    """Columns of a table about something in a session: its key, the session, then these."""
    keys = ((key, _TEXT, meaning), ("session_id", _TEXT, "From the events"))
    return [*columns_of(*keys), *SESSION_ATTRIBUTES, *columns_of(*rows)]


SESSIONS: Final = [
    *columns_of(
        ("session_id", _TEXT, "From the events"),
        (
            "bundle",
            _TEXT,
            "The bundle that last scored it; compare only within one bundle",
        ),
        ("status", _TEXT, "open, idle or closed"),
    ),
    *SESSION_ATTRIBUTES,
    *columns_of(
        ("lang", _TEXT, "BCP 47 tag"),
        ("started_at", _TIME, "Time of the first turn, UTC"),
        ("last_activity_at", _TIME, "Time of the last turn, UTC"),
        ("ended_at", _TIME, "Time of the session's end, UTC"),
        ("counsellors", _INTEGER, "Number of counsellors"),
        ("turns", _INTEGER, "Number of scored turns"),
        ("counsellor_turns", _INTEGER, "Of these, counsellor turns"),
        (
            "late_turns",
            _INTEGER,
            "Turns that arrived out of order, too late to be put in order",
        ),
        ("withheld_turns", _INTEGER, "Turns not scored for lack of consent"),
        ("unscored_turns", _INTEGER, "Turns not scored for their language"),
    ),
    *(Column(each.name, _NUMBER, each.meaning) for each in used(Use.EXPORTS) if not each.part),
    *(Column(each.name, _NUMBER, each.meaning) for each in used(Use.EXPORTS) if each.part),
    *columns_of(
        (
            "miti_volleys",
            _INTEGER,
            "Number of volleys; empty unless motivational interviewing",
        ),
        (
            "miti_reflection_to_question",
            _NUMBER,
            "Expected reflections per question",
        ),
        ("miti_complex_reflection_share", _NUMBER, "0-1, of expected reflections"),
        ("miti_open_question_share", _NUMBER, "0-1, of expected questions"),
        ("miti_adherent", _NUMBER, "Expected volleys that seek collaboration"),
        ("miti_non_adherent", _NUMBER, "Expected volleys that persuade"),
        ("miti_counts", _JSON, "Expected number of volleys with a code, by code"),
    ),
]
_END_REASON: Final = Column(
    "end_reason", _TEXT, "From the event, redacted; only with text, for who may read transcripts"
)
_TEXT_COLUMN: Final = Column(
    "text", _TEXT, "Redacted text; only for roles that may read transcripts, and approved studies"
)
_BEFORE_TEXT: Final = columns_of(
    ("session_id", _TEXT, "From the events"),
    ("seq", _INTEGER, "Place in the session, from 0"),
    ("turn_id", _TEXT, "From the event"),
    ("speaker", _TEXT, "Role and number, unique within the session"),
    ("role", _TEXT, "client, counsellor, system or supervisor; the last two have no scores"),
    ("occurred_at", _TIME, "UTC"),
)
_BEFORE_SCORES: Final = columns_of(
    ("late", _BOOLEAN, "Arrived out of order, too late to be put in order"),
    ("unscored", _TEXT, "Why it has no score: language; empty for scored turns"),
    ("bundle", _TEXT, "The bundle that last scored the session"),
    ("stage", _TEXT, "final, or provisional if there is no final score"),
    ("truncated", _BOOLEAN, "The text was longer than the encoder reads"),
)
_TURN_TOTALS: Final = columns_of(
    ("empathy_total", _INTEGER, "0-6, sum of the mechanisms' levels"),
    ("confidence", _NUMBER, "0-1, mean top probability of the heads"),
    ("low_empathy_risk", _NUMBER, "0-1, the session's risk after this counsellor turn"),
)
_JSON_PARTS: Final = columns_of(
    ("abstained", _JSON, "Heads whose confidence is too low to use"),
    ("expressed", _JSON, "All expressed heads, with rationale spans [start, end)"),
    ("client", _JSON, "Heads of the client's turns"),
    ("intents", _JSON, "Scores 0-1 of the intents that the turn has, by name"),
)
_LEVEL: Final = "Level 0-2; empty for client turns and abstentions"
_PROBABILITY: Final = "0-1, probability"
_INTENT: Final = "0-1, score of the intent; empty: the turn does not have it"


def session_columns(*, with_text: bool) -> list[Column]:
    """Columns of the session table."""
    return [*SESSIONS, *([_END_REASON] if with_text else [])]


def turn_columns(
    heads: Iterable[Head],
    *,
    with_text: bool,
    restricted: Outputs = NOTHING,
    intents: Iterable[str] = (),
) -> list[Column]:
    """Columns of the turn table if bundles with these heads have scored.

    Each mechanism, each other level head (``expressed_NAME``) and each perceived head
    (``perceived_NAME``) has a column. ``restricted``: outputs that have none.
    Each of the ``intents`` has a column ``intent_NAME``.
    """
    levels, perceived = [], []
    for head in heads:
        if head.dimension in restricted:
            continue
        if head.dimension is Dimension.PERCEIVED:
            perceived.append(Column(f"perceived_{head.name}", _NUMBER, _PROBABILITY))
        elif _has_column(head):
            levels.append(Column(f"expressed_{head.name}", _INTEGER, _LEVEL))
    return [
        *_BEFORE_TEXT,
        *([_TEXT_COLUMN] if with_text else []),
        *SESSION_ATTRIBUTES,
        *_BEFORE_SCORES,
        *(Column(name, _INTEGER, _LEVEL) for name in MECHANISMS),
        *levels,
        *_TURN_TOTALS,
        *perceived,
        *(Column(f"intent_{name}", _NUMBER, _INTENT) for name in intents),
        *(part for part in _JSON_PARTS if part.name not in {each.value for each in restricted}),
    ]


def _has_column(head: Head) -> bool:
    """Whether the head has levels and is not a mechanism, which always has a column."""
    of_levels = head.dimension is Dimension.EXPRESSED and head.kind is HeadKind.LEVEL
    return of_levels and head.name not in MECHANISMS


def attributes_of(card: SessionCard) -> Row:
    """The session's id and ``SESSION_ATTRIBUTES``."""
    names = ("session_id", *(column.name for column in SESSION_ATTRIBUTES))
    return {name: getattr(card, name) for name in names}


def session_row(card: SessionCard) -> Row:
    """Convert a session to a row of ``session_columns``."""
    columns = session_columns(with_text=True)
    row: Row = {column.name: getattr(card, column.name, None) for column in columns}
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
    """Convert a turn to a row of ``turn_columns``, with scores of the session's latest bundle."""
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
        "unscored": turn.unscored.value if turn.unscored is not None else None,
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
        **{f"intent_{name}": value for name, value in score.intents.items()},
        "intents": score.intents,
    }


def _level(score: ScoreOfTurn, name: str) -> int | None:
    part = score.expressed[name]
    shown = isinstance(part, dict) and name not in score.abstained
    return part.get("level") if shown else None


def speaker_numbering() -> Callable[[TurnRead], str]:
    """Make a function that names the speakers of one session ``client-1``, ``counsellor-1`` etc."""
    names: dict[tuple[str, str], str] = {}

    def name(turn: TurnRead) -> str:
        key = turn.role.value, turn.speaker
        if key not in names:
            same_role = sum(role == key[0] for role, _ in names)
            names[key] = f"{key[0]}-{same_role + 1}"
        return names[key]

    return name


def values_in_order(columns: list[Column], row: Row) -> Iterator[Any]:
    """The row's values in the order of the columns."""
    return (row.get(column.name) for column in columns)
