"""Statements about one turn that its scores support and a counsellor may read.

A turn is quoted as an example only where it shows something (warmth, understanding, an open
question) and the reader takes it for a good answer to this client (``answer``, ``lapse``:
docs/answers.md). It is named in a suggestion only where the client's words call for an emotional
answer, the reader takes it for a lapse, and it shows none of the three. No turn is both. Between
the two, and where a head abstained, nothing is said: abstention is no absence.

The bounds were set on the sample sessions by reading every line that they select
(``tests/web/feedback/test_sample_quotes.py``), so that each would be accepted by a person.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from stream_app.contracts.scores import Level
from stream_app.core.measures.heads import STRATEGY

EMOTIONAL_REACTIONS: Final = "emotional_reactions"
INTERPRETATIONS: Final = "interpretations"
EXPLORATIONS: Final = "explorations"

CALLS_FOR_EMPATHY: Final = 0.55
"""Opportunity of a client turn from which its answer may be the subject of a suggestion."""
OPEN_QUESTION: Final = 0.5
CLOSED_QUESTION: Final = 0.5
MAYBE_OPEN: Final = 0.3
"""A turn that may contain an open question is never the subject of a suggestion."""
REFLECTS: Final = 0.85
"""Probability of a simple or complex reflection; the head is often unsure only which of the two."""
NO_REFLECTION: Final = 0.7
RESTATES: Final = 0.6
AFFIRMS: Final = 0.5
SPEAKS_OF_ITSELF: Final = 0.2
"""A story of one's own counts as an interpretation in EPITOME, but shows no understanding here."""
INPUT: Final = 0.5


class Fit(Enum):
    """Whether a turn answers what was said before it."""

    FITS = "fits"
    UNSURE = "unsure"
    MISSES = "misses"


class Finding(Enum):
    """Whether a turn shows a mechanism."""

    PRESENT = "present"
    ABSENT = "absent"
    UNSURE = "unsure"


class Answer(Enum):
    """How a turn answers a client who calls for empathy; named in suggestions."""

    CLOSED_QUESTION = "closed question"
    INPUT = "advice or information"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of ``answer`` and ``lapse``."""

    answer: float
    lapse: float

    def fits(self, answer: float, lapse: float) -> bool:
        """Whether an answer is at least as good as the bounds."""
        return answer >= self.answer and lapse <= self.lapse

    def misses(self, answer: float, lapse: float) -> bool:
        """Whether an answer is at most as good as the bounds."""
        return answer <= self.answer and lapse >= self.lapse


FITS: Final = Bounds(0.5, 0.4)
REFLECTION_FITS: Final = Bounds(0.45, 0.4)
"""A reflection repeats what this client said, so a lower probability suffices."""
MISSES: Final = Bounds(0.3, 0.57)
MISSES_CLEARLY: Final = Bounds(0.2, 0.71)
"""Suffices without a closed question, and although a head abstained."""


@dataclass(frozen=True, slots=True)
class TurnRef:
    """Reference to a turn."""

    session_id: str
    seq: int


@dataclass(frozen=True, slots=True)
class CounsellorTurn:
    """A counsellor turn with its best score under one bundle.

    ``text``: redacted; None if it was erased or not loaded. ``levels``: by mechanism; ``heads``:
    the distributions of the other heads. ``asked``: the largest opportunity of the client turns
    since the previous counsellor turn; None if there is none, or it is unknown.
    """

    session_id: str
    seq: int
    text: str | None
    levels: Mapping[str, Level]
    heads: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    abstained: Sequence[str] = ()
    late: bool = False
    asked: float | None = None

    @property
    def ref(self) -> TurnRef:
        """Its reference."""
        return TurnRef(self.session_id, self.seq)

    @property
    def answer(self) -> float | None:
        """Probability that it is a good answer; None if its bundle has no such head."""
        return self.heads["answer"].get("yes") if "answer" in self.heads else None

    @property
    def lapse(self) -> float | None:
        """Probability that it is a lapse; None if its bundle has no such head."""
        return self.heads["lapse"].get("yes") if "lapse" in self.heads else None

    def known(self, mechanism: str) -> int | None:
        """The level of a mechanism; None if the head abstained or there is none."""
        level = self.levels.get(mechanism)
        return level.level if level is not None and mechanism not in self.abstained else None

    def probability(self, head: str, *labels: str) -> float:
        """Sum of these labels' probabilities, although the head may have abstained."""
        found = self.heads.get(head, {})
        return sum(found.get(label, 0.0) for label in labels)


def fit(answer: float | None, lapse: float | None) -> Fit:
    """Whether an answer fits what was said before it, by the reader alone."""
    if answer is None or lapse is None:
        return Fit.UNSURE
    if FITS.fits(answer, lapse):
        return Fit.FITS
    return Fit.MISSES if MISSES.misses(answer, lapse) else Fit.UNSURE


def finding(turn: CounsellorTurn, mechanism: str) -> Finding:
    """Whether a turn shows a mechanism in an answer that fits.

    A reflection or restatement shows understanding, an affirmation warmth, and only an open
    question explores.
    """
    answer, lapse = turn.answer, turn.lapse
    if turn.late or answer is None or lapse is None:
        return Finding.UNSURE
    shows, lacks, bounds = _SHOWN[mechanism](turn)
    if shows:
        return Finding.PRESENT if bounds.fits(answer, lapse) else Finding.UNSURE
    return Finding.ABSENT if lacks else Finding.UNSURE


def missed(turn: CounsellorTurn) -> Answer | None:
    """How the turn passes over what its client said; None if it does not, or nobody can tell."""
    answer, lapse = turn.answer, turn.lapse
    if turn.late or not turn.levels or answer is None or lapse is None:
        return None
    if turn.asked is None or turn.asked < CALLS_FOR_EMPATHY or _may_answer(turn):
        return None
    closed = _closed_question(turn)
    certain = closed and all(_lacks(turn, name) for name in (EMOTIONAL_REACTIONS, INTERPRETATIONS))
    if not (certain and MISSES.misses(answer, lapse)) and not MISSES_CLEARLY.misses(answer, lapse):
        return None
    if closed:
        return Answer.CLOSED_QUESTION
    told = turn.probability("input", "advice", "information", "options")
    told = max(told, turn.probability(STRATEGY, "providing_suggestions", "information"))
    return Answer.INPUT if told >= INPUT else Answer.OTHER


_Shown = tuple[bool, bool, Bounds]
"""Whether a turn shows a mechanism, whether it lacks it, and how good an answer it has to be."""


def _warmth(turn: CounsellorTurn) -> _Shown:
    level = turn.known(EMOTIONAL_REACTIONS)
    affirms = STRATEGY not in turn.abstained and (
        turn.probability(STRATEGY, "affirmation_and_reassurance") >= AFFIRMS
    )
    return bool(level) or affirms, level == 0, FITS


def _understanding(turn: CounsellorTurn) -> _Shown:
    level = turn.known(INTERPRETATIONS)
    own_story = turn.probability(STRATEGY, "self_disclosure") >= SPEAKS_OF_ITSELF
    restates = turn.probability(STRATEGY, "restatement_or_paraphrasing", "reflection_of_feelings")
    shows = turn.probability("reflection", "simple", "complex") >= REFLECTS or restates >= RESTATES
    shows = (shows or bool(level)) and not own_story
    lacks = level == 0 and turn.probability("reflection", "none") >= NO_REFLECTION
    return shows, lacks, REFLECTION_FITS


def _exploration(turn: CounsellorTurn) -> _Shown:
    level = turn.known(EXPLORATIONS)
    asks = "question" not in turn.abstained and (
        turn.probability("question", "open") >= OPEN_QUESTION
    )
    lacks = level == 0 or (level is not None and _closed_question(turn))
    return bool(level) and asks, lacks, FITS


_SHOWN: Final = {
    EMOTIONAL_REACTIONS: _warmth,
    INTERPRETATIONS: _understanding,
    EXPLORATIONS: _exploration,
}


def _lacks(turn: CounsellorTurn, mechanism: str) -> bool:
    shows, lacks, _ = _SHOWN[mechanism](turn)
    return lacks and not shows


def _may_answer(turn: CounsellorTurn) -> bool:
    """Whether anything speaks for the turn, whatever the reader makes of it."""
    return (
        bool(turn.known(EMOTIONAL_REACTIONS))
        or bool(turn.known(INTERPRETATIONS))
        or turn.probability("question", "open") >= MAYBE_OPEN
        or any(finding(turn, name) is Finding.PRESENT for name in _SHOWN)
    )


def _closed_question(turn: CounsellorTurn) -> bool:
    return "question" not in turn.abstained and (
        turn.probability("question", "closed") >= CLOSED_QUESTION
    )
