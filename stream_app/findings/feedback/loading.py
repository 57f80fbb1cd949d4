"""Loads turns for feedback: one session with its text, or recent sessions without text."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from stream_app.contracts.events import Domain, Role
from stream_app.contracts.scores import MECHANISMS, Level, SessionStatus
from stream_app.findings.feedback import composition
from stream_app.findings.feedback.composition import Feedback, Points, TooEarly
from stream_app.findings.feedback.judgements import CounsellorTurn
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions import sessions, transcripts, turn_levels
from stream_app.store.sessions.scope import Scope
from stream_app.store.sessions.scored_turns import NotFound
from stream_app.store.sessions.sessions import SessionCard
from stream_app.store.sessions.transcripts import TurnRead
from stream_app.store.sessions.turn_levels import TurnLevels
from stream_app.store.stream.repository import Store

PAGE_TURNS: Final = 1000
RECENT_SESSIONS: Final = 10


@dataclass(frozen=True, slots=True)
class EndedSession:
    """An ended session with its transcript, read for one person.

    ``counsellors``: turns by counsellor. ``shown``: the counsellors whose feedback this person may
    read.
    """

    card: SessionCard
    turns: list[TurnRead]
    counsellors: dict[str, list[CounsellorTurn]]
    shown: list[str]

    @property
    def domain(self) -> Domain | None:
        """The session's domain."""
        return Domain(self.card.domain) if self.card.domain else None


def read_ended(store: Store, person: Person, session_id: str) -> EndedSession:
    """Read the transcript for feedback, which is audited; counsellors get only their own feedback.

    Raises:
        NotFound: the session does not exist, or this person may not see it.
        TooEarly: the session is still open.
    """
    card = sessions.one(store, person.scope, session_id)
    if card is None:
        raise NotFound("no such session")
    if card.status is SessionStatus.OPEN:
        raise TooEarly("feedback is available after the session, which is still open")
    audit.record(store, person.name, AuditAction.READ_TRANSCRIPT, session_id, "feedback")
    return ended_session(card, list(_read(store, person.scope, card)), person)


def ended_session(card: SessionCard, turns: list[TurnRead], person: Person) -> EndedSession:
    """An ended session whose whole transcript was read; the best scores of its bundle suffice."""
    counsellors = _counsellor_turns(turns, card.bundle, gaps=card.withheld_turns > 0)
    own_only = person.role is PersonRole.COUNSELLOR
    shown = [name for name in sorted(counsellors) if not own_only or name == person.speaker]
    return EndedSession(card, turns, counsellors, shown)


def session_feedback(ended: EndedSession) -> list[Feedback]:
    """Feedback for each counsellor whose feedback may be shown."""
    card = ended.card
    return [
        composition.compose(
            card.session_id,
            name,
            card.status,
            ended.counsellors[name],
            ended.domain,
            card.withheld_turns,
        )
        for name in ended.shown
    ]


def recent_points(store: Store, levels: Sequence[TurnLevels]) -> tuple[int, Points]:
    """The number of recent sessions used, and one strength and one suggestion from them."""
    recent = list(dict.fromkeys(turn.session_id for turn in levels))[-RECENT_SESSIONS:]
    chosen = [turn for turn in levels if turn.session_id in recent]
    turns = [
        CounsellorTurn(
            session_id=each.turn.session_id,
            seq=each.turn.seq,
            text=None,
            levels=levels_of(each.expressed),
            heads=heads_of(each.expressed),
            abstained=each.turn.abstained,
            asked=each.asked,
        )
        for each in turn_levels.in_full(store, chosen)
    ]
    return len(recent), composition.choose_points(turns)


def levels_of(expressed: Mapping[str, Any]) -> dict[str, Level]:
    """Levels of the mechanisms in a stored score."""
    return {
        name: msgspec.convert(expressed[name], Level) for name in MECHANISMS if name in expressed
    }


def heads_of(expressed: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Distributions of the other heads in a stored score."""
    return {
        name: part
        for name, part in expressed.items()
        if isinstance(part, dict) and "level" not in part
    }


def is_of_a_group(turns: Iterable[TurnRead]) -> bool:
    """Whether several clients speak; whom an answer is to is not stored."""
    return len({turn.speaker for turn in turns if turn.role is Role.CLIENT}) > 1


def _read(store: Store, scope: Scope, card: SessionCard) -> Iterator[TurnRead]:
    last, more = -1, True
    while more:
        found = transcripts.read(
            store,
            scope,
            card.session_id,
            after_seq=last,
            only_best=card.bundle,
            limit=PAGE_TURNS,
        )
        yield from found
        more = len(found) == PAGE_TURNS
        last = found[-1].seq if found else last


def _counsellor_turns(
    read: Sequence[TurnRead], bundle: str, *, gaps: bool
) -> dict[str, list[CounsellorTurn]]:
    """Group counsellor turns by speaker, without those that were not scored, and without asides.

    ``gaps``: a missing seq may be a withheld turn, so the turn after it answers no known turn.
    """
    group = is_of_a_group(read)
    by_counsellor: dict[str, list[CounsellorTurn]] = defaultdict(list)
    asked: float | None = None
    expected = 0
    for turn in read:
        if turn.unscored is not None or (gaps and turn.seq > expected):
            asked = None
        expected = turn.seq + 1
        if turn.unscored is not None or not turn.role.is_scored:
            continue
        score = turn.score(bundle)
        if turn.role is Role.CLIENT:
            opportunity = turn_levels.opportunity(score.client) if score else None
            asked = max(filter(None, (asked, opportunity)), default=None)
            continue
        by_counsellor[turn.speaker].append(
            CounsellorTurn(
                session_id=turn.session_id,
                seq=turn.seq,
                text=turn.text,
                levels=levels_of(score.expressed) if score else {},
                heads=heads_of(score.expressed) if score else {},
                abstained=score.abstained if score else (),
                late=turn.late,
                asked=None if group else asked,
            )
        )
        asked = None
    return by_counsellor
