"""A turn of a sample as a rater sees it: with what was said before, without any judgement."""

from dataclasses import dataclass
from typing import Final

from stream_app.contracts.scores import MECHANISMS
from stream_app.store import audit, samples
from stream_app.store.audit import Audited
from stream_app.store.judged import DoesNotFit, NotThere
from stream_app.store.people import Person
from stream_app.store.ratings import Judgement
from stream_app.store.reading import transcripts
from stream_app.store.reading.transcripts import TurnRead
from stream_app.store.repository import Store
from stream_app.store.samples import Sample, SampleTurn, Work

BEFORE: Final = 6
"""Places before a turn that a rater sees."""


@dataclass(frozen=True, slots=True)
class SampleTurnView:
    """``turns``: some that precede it, then the one to rate. ``yours``: by head."""

    sample: Sample
    work: Work
    place: int
    turns: list[TurnRead]
    yours: dict[str, int]


def read_turn(store: Store, person: Person, sample_id: str, place: int) -> SampleTurnView:
    """Read a turn of a sample; leaves a trace in the audit trail.

    Raises:
        NotThere: no such sample or place, or the turn has been erased.
    """
    sample = samples.one(store, person.scope, sample_id)
    done = samples.work(store, sample)
    at = _at(done, place)
    audit.record(
        store, person.name, Audited.READ_TRANSCRIPT, at.session_id, f"sample, turn {at.seq}"
    )
    turns = transcripts.read(
        store, person.scope, at.session_id, after_seq=at.seq - 1 - BEFORE, limit=BEFORE + 1
    )
    turns = [each for each in turns if each.seq <= at.seq]
    if not turns or turns[-1].seq != at.seq:
        raise NotThere("this turn has been erased")
    yours = done.values.get(person.name, {}).get(place, {})
    return SampleTurnView(sample, done, place, turns, yours)


def rate_turn(
    store: Store, person: Person, sample_id: str, place: int, values: dict[str, int]
) -> None:
    """Rate the mechanisms of a turn.

    Raises:
        NotThere: no such sample or place.
        NotNow: this person has rated every turn.
        DoesNotFit: not one level for each mechanism.
    """
    if set(values) != set(MECHANISMS):
        raise DoesNotFit("each of the three mechanisms needs a level")
    sample = samples.one(store, person.scope, sample_id)
    at = _at(samples.work(store, sample), place)
    given = [Judgement(at.session_id, at.seq, name, values[name]) for name in MECHANISMS]
    samples.rate(store, person, sample_id, given)


def _at(done: Work, place: int) -> SampleTurn:
    if not 1 <= place <= len(done.turns):
        raise NotThere("there is no such turn in the sample")
    return done.turns[place - 1]
