"""Blind rating: shows a turn of a calibration sample with its context, but without scores."""

from dataclasses import dataclass
from typing import Final

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.sessions import transcripts
from stream_app.store.sessions.scored_turns import InvalidJudgement, NotFound
from stream_app.store.sessions.transcripts import TurnRead
from stream_app.store.stream.repository import Store
from stream_app.store.work import calibration_samples
from stream_app.store.work.calibration_samples import CalibrationSample, SampleRatings, SampleTurn
from stream_app.store.work.ratings import Judgement

PRECEDING_TURNS: Final = 6
ASIDES: Final = 20
"""Turns of bots and supervisors, which raters do not see: how many more are read."""
"""Preceding turns shown to the rater, counted by ``seq``."""


@dataclass(frozen=True, slots=True)
class SampleTurnView:
    """A turn to rate: ``turns`` ends with it, ``yours`` has the rater's levels so far, by head."""

    sample: CalibrationSample
    work: SampleRatings
    place: int
    turns: list[TurnRead]
    yours: dict[str, int]


def read_turn(store: Store, person: Person, sample_id: str, place: int) -> SampleTurnView:
    """Read a turn of a sample; the read is audited.

    Raises:
        NotFound: the sample or place does not exist, or the turn was erased.
    """
    sample = calibration_samples.one(store, person.scope, sample_id)
    done = calibration_samples.collect_ratings(store, sample)
    sampled = _turn_at(done, place)
    audit.record(
        store,
        person.name,
        AuditAction.READ_TRANSCRIPT,
        sampled.session_id,
        f"sample, turn {sampled.seq}",
    )
    turns = transcripts.read(
        store,
        person.scope,
        sampled.session_id,
        after_seq=sampled.seq - 1 - PRECEDING_TURNS - ASIDES,
        limit=PRECEDING_TURNS + ASIDES + 1,
    )
    said = [each for each in turns if each.seq <= sampled.seq and each.role.is_scored]
    turns = said[-PRECEDING_TURNS - 1 :]
    if not turns or turns[-1].seq != sampled.seq:
        raise NotFound("this turn has been erased")
    yours = done.values.get(person.name, {}).get(place, {})
    return SampleTurnView(sample, done, place, turns, yours)


def rate_turn(
    store: Store, person: Person, sample_id: str, place: int, values: dict[str, int]
) -> None:
    """Rate the mechanisms of a turn.

    Raises:
        NotFound: the sample or place does not exist.
        StateConflict: this person has already rated every turn, so their ratings are final.
        InvalidJudgement: ``values`` does not have exactly one level for each mechanism.
    """
    if set(values) != set(MECHANISMS):
        raise InvalidJudgement("each of the three mechanisms needs a level")
    sample = calibration_samples.one(store, person.scope, sample_id)
    sampled = _turn_at(calibration_samples.collect_ratings(store, sample), place)
    given = [Judgement(sampled.session_id, sampled.seq, name, values[name]) for name in MECHANISMS]
    calibration_samples.rate(store, person, sample_id, given)


def _turn_at(done: SampleRatings, place: int) -> SampleTurn:
    if not 1 <= place <= len(done.turns):
        raise NotFound("no such turn in the sample")
    return done.turns[place - 1]
