"""Feedback to the counsellor after a session, composed from the scores.

Follows Sharma et al. 2020, appendix D: for each EPITOME mechanism, what was expressed and in which
words, what is missing, and a typical example. The sentences are this project's own
(``sentences``). ``choose_points`` defines how the strength and the suggestion are chosen. The same
turns always give the same feedback.

Turns on which a mechanism's head abstained do not count for that mechanism. Late turns are left
out, because they were scored with incomplete context.

Interpretations are either present or absent: levels 1 and 2 count the same, and no sentence calls
an interpretation brief or specific. The model separates none from some, but hardly ever detects
the weak interpretations that annotators marked (F1 near 0, ``docs/evaluation.md``). If level 1
counted as missing, counsellors would be told that the model found nothing when it did.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from stream_app.contracts.events import Domain
from stream_app.contracts.scores import MECHANISMS, Level, SessionStatus
from stream_app.core.heads import title_of
from stream_app.errors import RapportError
from stream_app.web.feedback import sentences

MIN_TURNS: Final = 3
"""A mechanism with fewer scored turns is not chosen as strength or suggestion."""
MAX_QUOTES: Final = 2
MAX_QUOTE: Final = 160
MAX_TURNS_NAMED: Final = 3
GRADED: Final = frozenset({"emotional_reactions", "explorations"})
"""Mechanisms for which levels 1 and 2 differ; for the others any level above 0 counts the same."""


class TooEarly(RapportError):
    """The session is still open; feedback is available once it is closed or idle."""


@dataclass(frozen=True, slots=True)
class CounsellorTurn:
    """A counsellor turn with its best score under one bundle.

    ``text``: redacted; None if it was erased or not loaded. ``levels``: by mechanism.
    ``client_said``: characters of client text since the previous counsellor turn.
    """

    session_id: str
    seq: int
    text: str | None
    levels: dict[str, Level]
    abstained: Sequence[str] = ()
    late: bool = False
    client_said: int = 0


@dataclass(frozen=True, slots=True)
class TurnRef:
    """Reference to a turn."""

    session_id: str
    seq: int


@dataclass(frozen=True, slots=True)
class Quote:
    """Quoted words of a turn; ``[start, end)`` in characters of its text."""

    turn: TurnRef
    start: int
    end: int
    words: str


@dataclass(frozen=True, slots=True)
class MechanismFeedback:
    """Feedback on one mechanism; ``missing`` is empty if nothing is missing.

    ``judged`` counts the turns on which the head did not abstain. ``turns``: turns without the
    mechanism that follow the longest client text.
    """

    mechanism: str
    title: str
    judged: int
    present: int
    found: str
    quotes: list[Quote]
    missing: str
    turns: list[TurnRef]
    typical: str


@dataclass(frozen=True, slots=True)
class Point:
    """A strength or a suggestion, with the turn that exemplifies it."""

    mechanism: str
    text: str
    turn: TurnRef
    quote: Quote | None = None


@dataclass(frozen=True, slots=True)
class Points:
    """One strength and one suggestion; ``notes`` say why either is missing."""

    strength: Point | None
    suggestion: Point | None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Feedback:
    """Feedback to one counsellor (a pseudonym) on one session.

    Private to the counsellor and their supervisor.
    """

    session_id: str
    counsellor: str
    judged_turns: int
    mechanisms: list[MechanismFeedback]
    points: Points
    notes: list[str]


@dataclass(frozen=True, slots=True)
class _ScoredTurn:
    """A turn and its level of one mechanism, on which the head did not abstain."""

    turn: CounsellorTurn
    level: Level

    @property
    def ref(self) -> TurnRef:
        return TurnRef(self.turn.session_id, self.turn.seq)

    @property
    def key(self) -> tuple[str, int]:
        return self.turn.session_id, self.turn.seq


def compose(
    session_id: str,
    counsellor: str,
    status: SessionStatus,
    turns: Sequence[CounsellorTurn],
    domain: Domain | None = None,
    withheld: int = 0,
) -> Feedback:
    """Compose feedback on one counsellor's turns.

    ``withheld`` is the number of turns without the client's consent.

    Raises:
        TooEarly: the session is still open.
    """
    if status is SessionStatus.OPEN:
        raise TooEarly("feedback is available after the session, which is still open")
    judged = _by_mechanism(turns)
    chosen = choose_points(turns, domain)
    late = sum(turn.late for turn in turns)
    notes = [sentences.late(late)] if late else []
    if withheld:
        notes.append(sentences.withheld(withheld))
    if any(turn.text is None for turn in turns):
        notes.append(sentences.ERASED)
    return Feedback(
        session_id=session_id,
        counsellor=counsellor,
        judged_turns=len({item.key for items in judged.values() for item in items}),
        mechanisms=[_mechanism(name, items, domain) for name, items in judged.items()],
        points=chosen,
        notes=notes,
    )


def choose_points(turns: Sequence[CounsellorTurn], domain: Domain | None = None) -> Points:
    """Choose one strength and one suggestion from the turns of one or more sessions.

    The share of a mechanism is the share of its scored turns with a level above 0.

    - Strength: the mechanism with the largest share, if above 0 (ties: the larger share of level 2
      among graded mechanisms, then the order of ``MECHANISMS``). The example is the turn with the
      highest level (ties: the highest probability, then the earliest).
    - Suggestion: among the other mechanisms (or all, if only one was scored), the one with the
      smallest share. Below one half it counts as missing; the example is the turn with level 0
      that follows the longest client text. Otherwise, among graded mechanisms with level 1 in at
      least half of their turns above 0, the one with the largest such share; the example is the
      turn with level 1 that follows the longest client text. Otherwise there is no suggestion.

    A mechanism with fewer than three scored turns is not chosen.
    """
    judged = {
        name: items for name, items in _by_mechanism(turns).items() if len(items) >= MIN_TURNS
    }
    if not judged:
        return Points(None, None, [sentences.too_few(MIN_TURNS)])
    strength = _strength(judged)
    chosen = strength.mechanism if strength else None
    others = {name: items for name, items in judged.items() if name != chosen}
    suggestion = _suggestion(others or judged, domain)
    notes = []
    if strength is None:
        notes.append(sentences.NO_STRENGTH)
    if suggestion is None:
        notes.append(sentences.NO_SUGGESTION)
    return Points(strength, suggestion, notes)


def _by_mechanism(turns: Sequence[CounsellorTurn]) -> dict[str, list[_ScoredTurn]]:
    """Scored turns in order, by mechanism; mechanisms without scored turns are left out."""
    ordered = sorted(turns, key=lambda turn: (turn.session_id, turn.seq))
    found = {
        name: [
            _ScoredTurn(turn, turn.levels[name])
            for turn in ordered
            if not turn.late and name in turn.levels and name not in turn.abstained
        ]
        for name in MECHANISMS
    }
    return {name: items for name, items in found.items() if items}


def _strength(judged: dict[str, list[_ScoredTurn]]) -> Point | None:
    def weight(name: str) -> tuple[float, float, int]:
        items = judged[name]
        full = _share(items, 2) if name in GRADED else 0.0
        return _share(items, 1), full, -MECHANISMS.index(name)

    name = max(judged, key=weight)
    items = judged[name]
    shown = _clearest(name, items)
    if not shown:
        return None
    best = shown[0]
    text = sentences.strength(name, _count(items, 1), len(items))
    return Point(name, text, best.ref, _quote(best))


def _suggestion(judged: dict[str, list[_ScoredTurn]], domain: Domain | None) -> Point | None:
    def rarest(name: str) -> tuple[float, int]:
        return _share(judged[name], 1), MECHANISMS.index(name)

    name = min(judged, key=rarest)
    items = judged[name]
    if _share(items, 1) < 0.5:
        where = _after_longest_client_text(items, 0)[0]
        text = sentences.missing_suggestion(name, len(items) - _count(items, 1), len(items), domain)
        return Point(name, text, where.ref)

    def brief(name: str) -> float:
        return 1 - _count(judged[name], 2) / _count(judged[name], 1)

    mostly_brief = [name for name in judged if name in GRADED and brief(name) >= 0.5]
    if not mostly_brief:
        return None
    name = max(mostly_brief, key=lambda name: (brief(name), -MECHANISMS.index(name)))
    where = _after_longest_client_text(judged[name], 1)[0]
    return Point(name, sentences.fuller_suggestion(name, domain), where.ref, _quote(where))


def _mechanism(name: str, items: list[_ScoredTurn], domain: Domain | None) -> MechanismFeedback:
    present = _count(items, 1)
    strong = _count(items, 2) if name in GRADED else None
    quotes = [quote for item in _clearest(name, items) if (quote := _quote(item)) is not None]
    absent = _after_longest_client_text(items, 0)[:MAX_TURNS_NAMED]
    return MechanismFeedback(
        mechanism=name,
        title=title_of(name),
        judged=len(items),
        present=present,
        found=sentences.found(name, present, strong, len(items)),
        quotes=quotes[:MAX_QUOTES],
        missing=sentences.missing(len(items) - present, present, strong),
        turns=[item.ref for item in sorted(absent, key=lambda item: item.key)],
        typical=sentences.typical(name, domain),
    )


def _count(items: list[_ScoredTurn], lowest: int) -> int:
    return sum(item.level.level >= lowest for item in items)


def _share(items: list[_ScoredTurn], lowest: int) -> float:
    return _count(items, lowest) / len(items)


def _clearest(name: str, items: list[_ScoredTurn]) -> list[_ScoredTurn]:
    """Turns above level 0, ordered by level (if graded), then probability, then time."""
    found = [item for item in items if item.level.level > 0]
    return sorted(found, key=lambda item: (clarity(name, item.level), item.key))


def clarity(mechanism: str, level: Level) -> tuple[int, float]:
    """Sorts expressions of a mechanism, the clearest first."""
    if mechanism in GRADED:
        return -level.level, -max(level.probabilities)
    return 0, level.probabilities[0]


def _after_longest_client_text(items: list[_ScoredTurn], level: int) -> list[_ScoredTurn]:
    """Turns of this level, ordered by the length of the client text before them, longest first."""
    found = [item for item in items if item.level.level == level]
    return sorted(found, key=lambda item: (-item.turn.client_said, item.key))


def _quote(item: _ScoredTurn) -> Quote | None:
    return quote_words(item.ref, item.turn.text, item.level)


def quote_words(turn: TurnRef, text: str | None, level: Level) -> Quote | None:
    """Quote the longest rationale span within the text; None if there is none."""
    if text is None:
        return None
    spans = [(max(start, 0), min(end, len(text))) for start, end in level.rationale]
    spans = [(start, end) for start, end in spans if text[start:end].strip()]
    if not spans:
        return None
    start, end = max(spans, key=lambda span: (span[1] - span[0], -span[0]))
    if end - start > MAX_QUOTE:
        cut = text.rfind(" ", start + 1, start + MAX_QUOTE)
        end = cut if cut > start and text[start:cut].strip() else start + MAX_QUOTE
    if not text[start:end].strip():
        return None
    return Quote(turn, start, end, text[start:end])
