"""Feedback to the counsellor after a session, composed from the scores.

For each EPITOME mechanism (Sharma et al. 2020, appendix D): the turns in which it was found, in
which words, which answers to an emotional message lack it, and how it typically sounds. Which turns
are quoted, and which are named in a suggestion, is decided turn by turn in ``judgements``; no turn
is both. The sentences are this project's own (``sentences``). The same turns always give the same
feedback.

Levels 1 and 2 count the same, and no sentence calls an expression brief or specific: questions for
the form reach level 2 of explorations more often than "What do you miss most?".

Late turns are left out, because they were scored with incomplete context.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from stream_app.contracts.events import Domain
from stream_app.contracts.scores import MECHANISMS, SessionStatus
from stream_app.core.measures.heads import title_of
from stream_app.errors import RapportError
from stream_app.findings.feedback import sentences
from stream_app.findings.feedback.judgements import (
    EXPLORATIONS,
    INTERPRETATIONS,
    CounsellorTurn,
    Finding,
    TurnRef,
    finding,
    missed,
)

MIN_TURNS: Final = 3
"""Fewest scored turns for a strength or a suggestion."""
MAX_QUOTES: Final = 2
MAX_QUOTE: Final = 160
MAX_TURNS_NAMED: Final = 3
_SENTENCE_END: Final = re.compile(r"[.!?…。！？]+[\"'”’)\]]*(?=\s)")


class TooEarly(RapportError):
    """The session is still open; feedback is available once it is closed or idle."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Quoted words of a turn; ``[start, end)`` in characters of its text."""

    turn: TurnRef
    start: int
    end: int
    words: str


@dataclass(frozen=True, slots=True)
class MechanismFeedback:
    """Feedback on one mechanism; ``found`` and ``missing`` are empty if there is nothing to say.

    ``judged``: turns with the mechanism (``present``), and answers to an emotional message that
    lack it, the first of which are ``turns``. ``unsure``: the other scored turns, of which nothing
    is said.
    """

    mechanism: str
    title: str
    judged: int
    present: int
    unsure: int
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

    Private to the counsellor and their supervisor. ``mechanisms``: those of which the model is sure
    in at least one turn.
    """

    session_id: str
    counsellor: str
    judged_turns: int
    mechanisms: list[MechanismFeedback]
    points: Points
    notes: list[str]


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
    scored = _scored(turns)
    late = sum(turn.late for turn in turns)
    notes = [sentences.late(late)] if late else []
    if withheld:
        notes.append(sentences.withheld(withheld))
    if any(turn.text is None for turn in turns):
        notes.append(sentences.ERASED)
    return Feedback(
        session_id=session_id,
        counsellor=counsellor,
        judged_turns=len(scored),
        mechanisms=[
            part for name in MECHANISMS if (part := _mechanism(name, scored, domain)).judged
        ],
        points=choose_points(turns),
        notes=notes,
    )


def choose_points(turns: Sequence[CounsellorTurn]) -> Points:
    """Choose one strength and one suggestion from the turns of one or more sessions.

    - Strength: the mechanism that was found in most turns (ties: the order of ``MECHANISMS``),
      exemplified by the turn that is most probably a good answer (ties: the earliest).
    - Suggestion: the answer to an emotional message with the largest product of the message's
      opportunity and the probability of a lapse (ties: the earliest).
    """
    scored = _scored(turns)
    if len(scored) < MIN_TURNS:
        return Points(None, None, [sentences.too_few(MIN_TURNS)])
    if all(turn.answer is None for turn in scored):
        return Points(None, None, [sentences.NO_ANSWERS])
    strength, suggestion = _strength(scored), _suggestion(scored)
    notes = []
    if strength is None:
        notes.append(sentences.NO_STRENGTH)
    if suggestion is None:
        notes.append(sentences.NO_SUGGESTION)
    return Points(strength, suggestion, notes)


def _scored(turns: Sequence[CounsellorTurn]) -> list[CounsellorTurn]:
    """The turns with a score in time, in order."""
    ordered = sorted(turns, key=lambda turn: (turn.session_id, turn.seq))
    return [turn for turn in ordered if turn.levels and not turn.late]


def _strength(scored: list[CounsellorTurn]) -> Point | None:
    found = {name: showing(name, scored) for name in MECHANISMS}
    name = max(MECHANISMS, key=lambda name: len(found[name]))
    if not found[name]:
        return None
    best = found[name][0]
    text = sentences.strength(name, len(found[name]))
    return Point(name, text, best.ref, quote_turn(best, name))


def _suggestion(scored: list[CounsellorTurn]) -> Point | None:
    misses = [(turn, how) for turn in scored if (how := missed(turn)) is not None]
    if not misses:
        return None
    worst, how = max(misses, key=lambda miss: (miss[0].asked or 0.0) * (miss[0].lapse or 0.0))
    quote = None if worst.text is None else _beginning(worst.ref, worst.text)
    return Point(INTERPRETATIONS, sentences.suggestion(how), worst.ref, quote)


def showing(name: str, turns: Sequence[CounsellorTurn]) -> list[CounsellorTurn]:
    """The turns that show a mechanism, the most probably good answer first."""
    found = [turn for turn in turns if finding(turn, name) is Finding.PRESENT]
    return sorted(found, key=lambda turn: (-(turn.answer or 0.0), turn.session_id, turn.seq))


def _mechanism(name: str, scored: list[CounsellorTurn], domain: Domain | None) -> MechanismFeedback:
    shown = showing(name, scored)
    lacking = [
        turn
        for turn in scored
        if missed(turn) is not None and finding(turn, name) is Finding.ABSENT
    ]
    quotes = [quote for turn in shown if (quote := quote_turn(turn, name)) is not None]
    judged = len(shown) + len(lacking)
    return MechanismFeedback(
        mechanism=name,
        title=title_of(name),
        judged=judged,
        present=len(shown),
        unsure=len(scored) - judged,
        found=sentences.found(name, len(shown)),
        quotes=quotes[:MAX_QUOTES],
        missing=sentences.missing(name, len(lacking)),
        turns=[turn.ref for turn in lacking[:MAX_TURNS_NAMED]],
        typical=sentences.typical(name, domain),
    )


def quote_turn(turn: CounsellorTurn, mechanism: str) -> Quote | None:
    """Quote the words of a turn that show a mechanism, otherwise its first sentences."""
    text, level = turn.text, turn.levels.get(mechanism)
    if text is None:
        return None
    rationale = level.rationale if level is not None and turn.known(mechanism) else []
    spans = [(max(start, 0), min(end, len(text))) for start, end in rationale]
    spans = [(start, end) for start, end in spans if text[start:end].strip()]
    if not spans:
        return _beginning(turn.ref, text)
    if mechanism == EXPLORATIONS:  # the question mostly ends the turn
        return _cut(turn.ref, text, *spans[-1])
    return _cut(turn.ref, text, *max(spans, key=lambda span: (span[1] - span[0], -span[0])))


def _beginning(turn: TurnRef, text: str) -> Quote | None:
    start = len(text) - len(text.lstrip())
    return _cut(turn, text, start, len(text.rstrip()))


def _cut(turn: TurnRef, text: str, start: int, end: int) -> Quote | None:
    """Quote a span, as many whole sentences of it as there is room for, otherwise words."""
    if end - start > MAX_QUOTE:
        ends = [found.end() for found in _SENTENCE_END.finditer(text, start, start + MAX_QUOTE)]
        cut = ends[-1] if ends else text.rfind(" ", start + 1, start + MAX_QUOTE)
        end = cut if cut > start and text[start:cut].strip() else start + MAX_QUOTE
    if not text[start:end].strip():
        return None
    return Quote(turn, start, end, text[start:end])
