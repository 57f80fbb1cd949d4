"""Scores other wordings of a turn in its session's context; the session does not change.

The context is that of a final score: the turns before and after it (``core.window``), as far as
their text is still known.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Expressed, Level, Stage
from stream_app.core.measures.heads import Dimension
from stream_app.core.measures.window import Neighbour, ScoringRequest, WindowTurn
from stream_app.core.session.ports import Encoding, Scorer

_NOT_NEEDED: Final = frozenset(Dimension) - {Dimension.EXPRESSED}
_ANY_TIME: Final = datetime.fromtimestamp(0, UTC)
"""A score does not depend on the time."""


class SaidTurn(Struct, frozen=True):
    """A turn of the session; ``text`` is None if it was deleted."""

    seq: int
    role: Role
    text: str | None
    late: bool = False


class Context(Struct, frozen=True):
    """The turns around one, with their distances, and how many of them have no text any more."""

    turns: list[tuple[SaidTurn, int]]
    unknown: int


class WordingScore(Struct, frozen=True):
    """The levels of one wording by mechanism; ``abstained``: those too uncertain to be shown.

    ``answer``, ``lapse``: probabilities that it is a good answer to the client in this
    conversation, and that it is a lapse; None if the bundle has no such heads, or no text of the
    client precedes it.
    """

    levels: dict[str, Level]
    abstained: list[str]
    truncated: bool
    answer: float | None = None
    lapse: float | None = None


def context_of(turns: Sequence[SaidTurn], seq: int, before: int, after: int) -> Context:
    """The context of the turn with this seq; ``turns`` in order, at least those around it.

    Late turns are in no window but their own.
    """
    others = [turn for turn in turns if not turn.late and turn.seq != seq]
    earlier = [turn for turn in others if turn.seq < seq]
    earlier = earlier[-before:] if before else []
    later = [turn for turn in others if turn.seq > seq][:after]
    around = [(turn, place - len(earlier)) for place, turn in enumerate(earlier)]
    around += [(turn, place + 1) for place, turn in enumerate(later)]
    known = [(turn, distance) for turn, distance in around if turn.text is not None]
    return Context(known, len(around) - len(known))


def score_wordings(
    scorer: Scorer, context: Context, role: Role, wordings: Sequence[str]
) -> list[WordingScore]:
    """Score each wording of a turn in this context."""
    texts = [turn.text or "" for turn, _ in context.turns]
    roles = [turn.role for turn, _ in context.turns]
    encoded = scorer.encode([*texts, *wordings], roles + [role] * len(wordings))
    neighbours = [
        Neighbour(_window_turn(turn.role, encoding), distance)
        for (turn, distance), encoding in zip(context.turns, encoded, strict=False)
    ]
    own = [_window_turn(role, encoding) for encoding in encoded[len(texts) :]]
    scores = scorer.score(
        [ScoringRequest(turn, Stage.FINAL, neighbours, _NOT_NEEDED) for turn in own]
    )
    answers = any(turn.role is not role for turn, distance in context.turns if distance < 0)
    return [
        WordingScore(
            score.expressed.levels,
            score.abstained,
            turn.truncated,
            _yes(score.expressed, "answer") if answers else None,
            _yes(score.expressed, "lapse") if answers else None,
        )
        for turn, score in zip(own, scores, strict=True)
    ]


def _yes(expressed: Expressed, head: str) -> float | None:
    return (expressed.distribution(head) or {}).get("yes")


def _window_turn(role: Role, encoding: Encoding) -> WindowTurn:
    return WindowTurn(
        seq=0,
        role=role,
        occurred_at=_ANY_TIME,
        digest=0,
        words=0,
        vectors=encoding.vectors,
        rationales=encoding.rationales,
        truncated=encoding.truncated,
        tokens=encoding.tokens,
        parts=encoding.parts,
    )
