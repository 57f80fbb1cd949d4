"""Feedback on each counsellor turn: the words that express a mechanism, and what is missing.

A mechanism is missing where the client's turn was an empathic opportunity (``core.exchanges``) and
every counsellor turn of the exchange passes over it and lacks the mechanism (``judgements``). Where
the model cannot tell, nothing is called missing, and no turn is called empty.

For a missing mechanism there are two ways in which it typically sounds: the counsellor's own
clearest words in earlier sessions, otherwise general phrasings (``phrasings``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from stream_app.contracts.events import Domain
from stream_app.contracts.scores import MECHANISMS, Span
from stream_app.core.measures.exchanges import Opportunity
from stream_app.core.measures.heads import title_of
from stream_app.findings.feedback.judgements import (
    CounsellorTurn,
    Finding,
    TurnRef,
    finding,
    missed,
)
from stream_app.findings.feedback.phrasings import phrasings

WAYS: Final = 2
"""Ways in which a missing mechanism is shown to sound."""


@dataclass(frozen=True, slots=True)
class OwnWords:
    """Words of the counsellor in an earlier session, ``words`` of the turn said ``at`` a time."""

    turn: TurnRef
    at: datetime
    words: str


@dataclass(frozen=True, slots=True)
class Way:
    """One way a mechanism sounds; ``own`` if the counsellor said it in an earlier session."""

    words: str
    own: OwnWords | None = None


@dataclass(frozen=True, slots=True)
class MissingMechanism:
    """A mechanism that the answer to an empathic opportunity lacks."""

    mechanism: str
    title: str
    ways: list[Way]


@dataclass(frozen=True, slots=True)
class TurnFeedback:
    """Feedback on one counsellor turn.

    ``shown``: text spans by mechanism that the turn expresses, an empty list where no words stand
    out. ``answers``: seq of the client turn that was the opportunity, at the last turn of its
    answer; None elsewhere. ``unsure``: mechanisms of which the model cannot tell.
    """

    turn: TurnRef
    text: str | None
    shown: dict[str, list[Span]]
    missing: list[MissingMechanism]
    answers: int | None = None
    unsure: tuple[str, ...] = ()
    scored: bool = True


def missing_mechanisms(
    turns: Sequence[CounsellorTurn], opportunities: Sequence[Opportunity]
) -> dict[int, list[str]]:
    """The mechanisms that answers lack, by the seq of the answer's last turn.

    Answers that lack nothing are included with an empty list. ``turns``: of all counsellors.
    """
    by_seq = {turn.seq: turn for turn in turns}
    found = {}
    for opportunity in opportunities:
        answer = [by_seq[seq] for seq in opportunity.answers if seq in by_seq]
        if len(answer) == len(opportunity.answers):
            found[opportunity.answers[-1]] = [
                name for name in MECHANISMS if all(_lacks(turn, name) for turn in answer)
            ]
    return found


def compose(
    turns: Sequence[CounsellorTurn],
    opportunities: Sequence[Opportunity],
    missing: Mapping[int, Sequence[str]],
    own: Mapping[str, Sequence[OwnWords]],
    domain: Domain | None = None,
) -> list[TurnFeedback]:
    """Compose the feedback on one counsellor's turns, in order.

    ``missing``: of ``missing_mechanisms``. ``own``: own words by mechanism, the clearest first;
    consecutive suggestions use different ones.
    """
    asked = {each.answers[-1]: each.seq for each in opportunities}
    used = dict.fromkeys(MECHANISMS, 0)
    found = []
    for turn in sorted(turns, key=lambda turn: turn.seq):
        lacking = []
        for name in missing.get(turn.seq, ()):
            ways = _ways(name, own.get(name, ()), domain, used[name])
            lacking.append(MissingMechanism(name, title_of(name), ways))
            used[name] += 1
        found.append(
            TurnFeedback(
                turn=TurnRef(turn.session_id, turn.seq),
                text=turn.text,
                shown=_shown(turn),
                missing=lacking,
                answers=asked.get(turn.seq) if turn.seq in missing else None,
                unsure=tuple(name for name in MECHANISMS if finding(turn, name) is Finding.UNSURE),
                scored=bool(turn.levels) and not turn.late,
            )
        )
    return found


def _shown(turn: CounsellorTurn) -> dict[str, list[Span]]:
    found = [name for name in MECHANISMS if finding(turn, name) is Finding.PRESENT]
    return {name: turn.levels[name].rationale if name in turn.levels else [] for name in found}


def _lacks(turn: CounsellorTurn, mechanism: str) -> bool:
    return missed(turn) is not None and finding(turn, mechanism) is Finding.ABSENT


def _ways(mechanism: str, own: Sequence[OwnWords], domain: Domain | None, place: int) -> list[Way]:
    """Two ways, own words first; ``place`` chooses which of several."""
    mine = [Way(each.words, each) for each in own]
    general = [Way(words) for words in phrasings(mechanism, domain)]
    return [*_from(place * WAYS, mine), *_from(place * WAYS, general)][:WAYS]


def _from(place: int, ways: list[Way]) -> list[Way]:
    """Start at a place and go round."""
    start = place % len(ways) if ways else 0
    return ways[start:] + ways[:start]
