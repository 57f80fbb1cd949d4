"""Loads the feedback on each turn of a session, with the counsellor's own words from earlier ones.

Own words are shown to the counsellor alone. Every session whose text is read is audited.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from stream_app.contracts.events import Approach, Role
from stream_app.contracts.scores import MECHANISMS, Expressed
from stream_app.core.measures.empathy import DomainEmpathy, turn_value
from stream_app.core.measures.exchanges import Heard, opportunities
from stream_app.findings.feedback import loading, turns
from stream_app.findings.feedback.composition import quote_turn, showing
from stream_app.findings.feedback.judgements import CounsellorTurn
from stream_app.findings.feedback.loading import EndedSession
from stream_app.findings.feedback.turns import OwnWords, TurnFeedback
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions import bundle_info, clearest_turns, transcripts
from stream_app.store.sessions.clearest_turns import ClearTurn
from stream_app.store.sessions.scope import Scope
from stream_app.store.sessions.sessions import SessionCard
from stream_app.store.sessions.transcripts import ScoreOfTurn
from stream_app.store.stream.repository import Store

OWN_WORDS: Final = 4
"""Maximum number of own turns read for one mechanism."""


@dataclass(frozen=True, slots=True)
class _Scores:
    """A stored score with its heads decoded, as ``core.empathy`` reads it."""

    role: Role
    expressed: Expressed
    client: dict[str, dict[str, float]]


def turn_feedback(
    store: Store, person: Person, ended: EndedSession, seqs: range
) -> dict[str, list[TurnFeedback]]:
    """Feedback on the counsellor turns of ``seqs``, by counsellor whose feedback may be shown."""
    everyone = [turn for of_one in ended.counsellors.values() for turn in of_one]
    here = _reference(store, ended.card)
    known = here is not None and not loading.is_of_a_group(ended.turns)
    found = opportunities(_heard(ended, here), here.weighing) if here and known else []
    missing = turns.missing_mechanisms(everyone, found)
    chosen = {
        name: [turn for turn in ended.counsellors[name] if turn.seq in seqs] for name in ended.shown
    }
    shown = [missing.get(turn.seq, []) for of_one in chosen.values() for turn in of_one]
    wanted = frozenset(name for names in shown for name in names)
    own = _own_words(store, person, ended.card, wanted)
    return {
        name: turns.compose(of_one, found, missing, own, ended.domain)
        for name, of_one in chosen.items()
        if of_one
    }


def _reference(store: Store, card: SessionCard) -> DomainEmpathy | None:
    """The definition of an opportunity that the session was scored with."""
    model = bundle_info.empathy(store, card.bundle)
    if model is None:
        return None
    interviewing = Approach.MOTIVATIONAL_INTERVIEWING.value if card.miti is not None else None
    return model.of(card.domain, interviewing)


def _heard(ended: EndedSession, here: DomainEmpathy) -> Iterator[Heard]:
    """The scored turns in order; gaps may be withheld turns if the session has any."""
    expected = 0
    unseen = False
    said: Counter[tuple[Role, str]] = Counter()
    for turn in ended.turns:
        words = turn.role, turn.text or f"turn {turn.seq}"  # an expired text repeats nothing
        said[words] += 1
        unseen = unseen or (ended.card.withheld_turns > 0 and turn.seq > expected)
        expected = turn.seq + 1
        unseen = unseen or turn.unscored is not None
        if turn.late or turn.unscored is not None or not turn.role.is_scored:
            continue
        score = turn.score(ended.card.bundle)
        uses = said[words]
        value = turn_value(_decoded(turn.role, score), here, uses) if score is not None else 0
        yield Heard(turn.role, turn.seq, value, unseen)
        unseen = False


def _decoded(role: Role, score: ScoreOfTurn) -> _Scores:
    expressed = Expressed(loading.levels_of(score.expressed))
    expressed.update(loading.heads_of(score.expressed))
    return _Scores(role, expressed, score.client)


def _own_words(
    store: Store, person: Person, card: SessionCard, wanted: Collection[str]
) -> dict[str, list[OwnWords]]:
    """The clearest words of these mechanisms by the counsellor who reads this; reads are audited.

    Empty for other people.
    """
    began, speaker = card.started_at, person.speaker
    if person.role is not PersonRole.COUNSELLOR or speaker is None or began is None:
        return {}
    chosen = {
        name: _clearest(
            name, clearest_turns.before_session(store, person.scope, speaker, name, began)
        )
        for name in MECHANISMS
        if name in wanted
    }
    read = list(dict.fromkeys(turn.session_id for found in chosen.values() for turn in found))
    audit.record_all(
        store, person.name, AuditAction.READ_TRANSCRIPT, read, "own words for feedback"
    )
    return {
        name: [words for turn in found if (words := _quoted(store, person.scope, turn, name))]
        for name, found in chosen.items()
    }


def _clearest(mechanism: str, turns: list[ClearTurn]) -> list[ClearTurn]:
    """The turns that may be quoted as examples, the most probably good answer first."""
    by_ref = {(turn.session_id, turn.seq): turn for turn in turns}
    found = showing(mechanism, [_counsellor_turn(turn, None) for turn in turns])
    return [by_ref[turn.session_id, turn.seq] for turn in found[:OWN_WORDS]]


def _quoted(store: Store, scope: Scope, turn: ClearTurn, mechanism: str) -> OwnWords | None:
    """The turn's words that express the mechanism; None if its text cannot be read."""
    read = transcripts.read(store, scope, turn.session_id, only_seq=turn.seq, limit=1)
    quote = quote_turn(_counsellor_turn(turn, read[0].text), mechanism) if read else None
    return OwnWords(quote.turn, turn.occurred_at, quote.words) if quote is not None else None


def _counsellor_turn(turn: ClearTurn, text: str | None) -> CounsellorTurn:
    return CounsellorTurn(
        session_id=turn.session_id,
        seq=turn.seq,
        text=text,
        levels=loading.levels_of(turn.expressed),
        heads=loading.heads_of(turn.expressed),
        abstained=turn.abstained,
    )
