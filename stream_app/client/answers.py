"""Answers of the API, as far as the client reads them; unknown fields are ignored.

The OpenAPI document of the service has all fields. A test compares both.
"""

from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct

from stream_app.contracts.events import Role
from stream_app.contracts.scores import SessionStatus, Stage

T = TypeVar("T")


class EventResult(Struct, frozen=True):
    """Result for one event. ``seq``: the turn's number. ``code``: why it was refused."""

    index: int
    accepted: bool
    seq: int | None = None
    partition: int | None = None
    offset: int | None = None
    code: str | None = None
    detail: str | None = None


class BatchAnswer(Struct, frozen=True):
    """The answer to a batch."""

    results: list[EventResult]


class Problem(Struct, frozen=True):
    """Problem details (RFC 9457)."""

    type: str = ""
    detail: str = ""


class Mechanism(Struct, frozen=True):
    """An EPITOME mechanism over a session's counsellor turns; levels 0-2."""

    mean: float
    recent_mean: float
    share: float


class Session(Struct, frozen=True):
    """A session with its aggregates so far."""

    session_id: str
    bundle: str
    status: SessionStatus
    team: str | None
    turns: int
    counsellor_turns: int
    withheld_turns: int
    unscored_turns: int
    low_empathy_risk: float | None
    empathy_index: float | None
    mechanisms: dict[str, Mechanism]
    firing: list[str]
    started_at: datetime | None
    ended_at: datetime | None


class Score(Struct, frozen=True):
    """A turn's score by one bundle; ``expressed`` and so on as in ``docs/events.md``."""

    bundle: str
    stage: Stage
    empathy_total: int | None
    confidence: float
    low_empathy_risk: float | None
    expressed: dict[str, Any]
    perceived: dict[str, float]
    client: dict[str, dict[str, float]]
    abstained: list[str]


class TurnScores(Struct, frozen=True):
    """A turn with its scores; ``text`` only for roles that may read it."""

    session_id: str
    seq: int
    role: Role
    text: str | None
    occurred_at: datetime
    scores: list[Score]


class Page(Struct, Generic[T], frozen=True):
    """A page of a list."""

    items: list[T]
    next_cursor: str | None
