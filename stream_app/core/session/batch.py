"""The result of a batch: everything to be stored and published."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct, field

from stream_app.contracts.events import Outcome, Questionnaire, Role, Turn
from stream_app.contracts.scores import (
    Alert,
    DeadLetter,
    Expressed,
    SessionScore,
    Stage,
    TurnScore,
    Unscored,
)
from stream_app.core.session.consent import ConsentRecord
from stream_app.core.session.session_state import Versioned


class SetAside(Struct, frozen=True):
    """A dead letter with the original bytes."""

    letter: DeadLetter
    raw: bytes


class StoredTurn(Struct, frozen=True):
    """A turn to be stored; the store redacts its text.

    ``from_first_counsellor``: its speaker may read the session. ``unscored``: why it has no score.
    ``language``: of a turn that is not scored for it, if it is known.
    """

    turn: Turn
    late: bool
    produced_at: datetime | None = None
    from_first_counsellor: bool = False
    unscored: Unscored | None = None
    language: str | None = None


class ShadowScore(Struct, frozen=True):
    """A turn's score by a bundle in the shadow; identified by (session_id, seq, stage, bundle).

    Without rationales.
    """

    session_id: str
    seq: int
    stage: Stage
    bundle: str
    expressed: Expressed
    perceived: dict[str, float]
    client: dict[str, dict[str, float]]
    abstained: list[str]


class Left(Struct, frozen=True):
    """A session that a bundle no longer scores, because it is no longer in force."""

    session_id: str
    bundle: str


class Revised(Struct, frozen=True):
    """A stored turn with its new text, or without one: it is erased.

    ``stale``: scores, by seq and stage, that no longer hold; new ones may replace them.
    """

    session_id: str
    seq: int
    role: Role
    bundle: str
    text: str | None
    stale: Sequence[tuple[int, Stage]] = ()


class BatchResult(Struct):
    """Everything that is to be stored and published after a batch.

    ``left``: provisional scores of these are final, because no model can compute others.
    ``shadow_scores`` are stored apart, after the others, and published nowhere. ``revised``: what
    the only event of the batch, an edit or a deletion, changes.
    """

    turns: list[StoredTurn] = field(default_factory=list)
    turn_scores: list[TurnScore] = field(default_factory=list)
    session_scores: list[SessionScore] = field(default_factory=list)
    sessions: dict[str, Versioned] = field(default_factory=dict)
    alerts: list[Alert] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    consents: list[ConsentRecord] = field(default_factory=list)
    dead_letters: list[SetAside] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    questionnaires: list[Questionnaire] = field(default_factory=list)
    shadow_scores: list[ShadowScore] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    revised: Revised | None = None
