"""Feedback to the counsellor after a session, in sentences made from the scores.

The pattern is that of Sharma et al. 2020, appendix D: for each of EPITOME's mechanisms what was
there and in which words, what is missing, and how it typically sounds. The sentences are this
project's own (``words``). What is chosen as the strength and as the suggestion follows
the rule in ``points``; the same turns always give the same feedback.

A head that abstained on a turn is not spoken about for that turn. A late turn is left out: it was
scored without its full place in the conversation.

Interpretations are shown or not shown, nothing in between: a weak one counts as shown, and no
sentence says that it was brief or specific. The model separates none from some there, but hardly
ever finds the weak ones that annotators found (F1 near 0, ``docs/evaluation.md``). Counted as
missing, they would tell counsellors that something was not heard where the model did hear it.
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
"""With fewer judged turns no strength and no suggestion is named."""
MAX_QUOTES: Final = 2
MAX_QUOTE: Final = 160
MAX_TURNS_NAMED: Final = 3
GRADED: Final = frozenset({"emotional_reactions", "explorations"})
"""Mechanisms whose levels 1 and 2 are told apart; for the others any level above 0 is the same."""


class TooEarly(RapportError):
    """The session goes on; feedback comes when it is closed or idle."""


@dataclass(frozen=True, slots=True)
class CounsellorTurn:
    """A counsellor turn with its best score under one bundle.

    ``text``: redacted, None once it was erased or not read. ``levels``: by mechanism.
    ``client_said``: how much the client said since the counsellor turn before it, in characters.
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
    """Which turn is meant."""

    session_id: str
    seq: int


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of a turn: ``[start, end)`` in characters of its text."""

    turn: TurnRef
    start: int
    end: int
    words: str


@dataclass(frozen=True, slots=True)
class MechanismFeedback:
    """One mechanism over the judged turns; ``missing`` is empty where nothing is.

    ``turns``: where it was not heard although the client had said most.
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
    """A strength or a suggestion, and the turn that shows it."""

    mechanism: str
    text: str
    turn: TurnRef
    quote: Quote | None = None


@dataclass(frozen=True, slots=True)
class Points:
    """One strength, one suggestion; ``notes`` say why one is not named."""

    strength: Point | None
    suggestion: Point | None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Feedback:
    """Feedback on one session to one counsellor (a pseudonym).

    Private to them and their own supervisor.
    """

    session_id: str
    counsellor: str
    judged_turns: int
    mechanisms: list[MechanismFeedback]
    points: Points
    notes: list[str]


@dataclass(frozen=True, slots=True)
class _Judged:
    """A turn on which a mechanism's head did not abstain."""

    turn: CounsellorTurn
    level: Level

    @property
    def ref(self) -> TurnRef:
        return TurnRef(self.turn.session_id, self.turn.seq)

    @property
    def place(self) -> tuple[str, int]:
        return self.turn.session_id, self.turn.seq


def of_session(
    session_id: str,
    counsellor: str,
    status: SessionStatus,
    turns: Sequence[CounsellorTurn],
    domain: Domain | None = None,
    withheld: int = 0,
) -> Feedback:
    """Feedback on the turns of one counsellor; ``withheld``: turns without the client's consent.

    Raises:
        TooEarly: the session is still open.
    """
    if status is SessionStatus.OPEN:
        raise TooEarly("feedback comes after the session: it is still open")
    judged = _by_mechanism(turns)
    chosen = points(turns, domain)
    late = sum(turn.late for turn in turns)
    notes = [sentences.late(late)] if late else []
    if withheld:
        notes.append(sentences.withheld(withheld))
    if any(turn.text is None for turn in turns):
        notes.append(sentences.ERASED)
    return Feedback(
        session_id=session_id,
        counsellor=counsellor,
        judged_turns=len({item.place for items in judged.values() for item in items}),
        mechanisms=[_mechanism(name, items, domain) for name, items in judged.items()],
        points=chosen,
        notes=notes,
    )


def points(turns: Sequence[CounsellorTurn], domain: Domain | None = None) -> Points:
    """One strength and one suggestion over the turns of one or more sessions.

    Counted is, for each mechanism, the share of its judged turns with a level above 0.

    - Strength: the mechanism with the largest share above 0 (then the larger share of level 2,
      which only a graded mechanism has, then the order of ``MECHANISMS``); shown by the turn with
      the highest level, of these the one that the model is surest of, of these the first.
    - Suggestion: of the other mechanisms (of all, if only one was judged) the one with the smallest
      share. Under one half it is missing: shown by the turn with level 0 before which the client
      had said most. Otherwise, of the graded mechanisms whose level is 1 in at least half of the
      turns that have it, the one where that is so most often: shown by the turn of level 1 before
      which the client had said most. Otherwise none.

    With fewer than three judged turns of a mechanism it is not chosen.
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


def _by_mechanism(turns: Sequence[CounsellorTurn]) -> dict[str, list[_Judged]]:
    """Judged turns in their order; a mechanism without any is left out."""
    ordered = sorted(turns, key=lambda turn: (turn.session_id, turn.seq))
    found = {
        name: [
            _Judged(turn, turn.levels[name])
            for turn in ordered
            if not turn.late and name in turn.levels and name not in turn.abstained
        ]
        for name in MECHANISMS
    }
    return {name: items for name, items in found.items() if items}


def _strength(judged: dict[str, list[_Judged]]) -> Point | None:
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


def _suggestion(judged: dict[str, list[_Judged]], domain: Domain | None) -> Point | None:
    def rarest(name: str) -> tuple[float, int]:
        return _share(judged[name], 1), MECHANISMS.index(name)

    name = min(judged, key=rarest)
    items = judged[name]
    if _share(items, 1) < 0.5:
        where = _after_most(items, 0)[0]
        text = sentences.missing_suggestion(name, len(items) - _count(items, 1), len(items), domain)
        return Point(name, text, where.ref)

    def brief(name: str) -> float:
        return 1 - _count(judged[name], 2) / _count(judged[name], 1)

    mostly_brief = [name for name in judged if name in GRADED and brief(name) >= 0.5]
    if not mostly_brief:
        return None
    name = max(mostly_brief, key=lambda name: (brief(name), -MECHANISMS.index(name)))
    where = _after_most(judged[name], 1)[0]
    return Point(name, sentences.fuller_suggestion(name, domain), where.ref, _quote(where))


def _mechanism(name: str, items: list[_Judged], domain: Domain | None) -> MechanismFeedback:
    present = _count(items, 1)
    strong = _count(items, 2) if name in GRADED else None
    quotes = [quote for item in _clearest(name, items) if (quote := _quote(item)) is not None]
    absent = _after_most(items, 0)[:MAX_TURNS_NAMED]
    return MechanismFeedback(
        mechanism=name,
        title=title_of(name),
        judged=len(items),
        present=present,
        found=sentences.found(name, present, strong, len(items)),
        quotes=quotes[:MAX_QUOTES],
        missing=sentences.missing(len(items) - present, present, strong),
        turns=[item.ref for item in sorted(absent, key=lambda item: item.place)],
        typical=sentences.typical(name, domain),
    )


def _count(items: list[_Judged], lowest: int) -> int:
    return sum(item.level.level >= lowest for item in items)


def _share(items: list[_Judged], lowest: int) -> float:
    return _count(items, lowest) / len(items)


def _clearest(name: str, items: list[_Judged]) -> list[_Judged]:
    """Turns that have the mechanism: highest level (if graded), then the surest, then the first."""

    def order(item: _Judged) -> tuple[int, float, tuple[str, int]]:
        if name in GRADED:
            return -item.level.level, -max(item.level.probabilities), item.place
        return 0, item.level.probabilities[0], item.place

    return sorted((item for item in items if item.level.level > 0), key=order)


def _after_most(items: list[_Judged], level: int) -> list[_Judged]:
    """Turns of this level, those first before which the client had said most."""
    found = [item for item in items if item.level.level == level]
    return sorted(found, key=lambda item: (-item.turn.client_said, item.place))


def _quote(item: _Judged) -> Quote | None:
    """The longest rationale, as far as the text still has it."""
    text = item.turn.text
    if text is None:
        return None
    spans = [(max(start, 0), min(end, len(text))) for start, end in item.level.rationale]
    spans = [(start, end) for start, end in spans if text[start:end].strip()]
    if not spans:
        return None
    start, end = max(spans, key=lambda span: (span[1] - span[0], -span[0]))
    if end - start > MAX_QUOTE:
        cut = text.rfind(" ", start + 1, start + MAX_QUOTE)
        end = cut if cut > start and text[start:cut].strip() else start + MAX_QUOTE
    if not text[start:end].strip():
        return None
    return Quote(item.ref, start, end, text[start:end])
