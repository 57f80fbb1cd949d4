"""Samples of turns that several people rate blind, to see how far they and the model agree.

A sample is drawn so that every combination of levels (or abstentions) is in it about equally often,
as far as there are turns of it; rare levels would hardly come up otherwise. Raters are supervisors
whose scope holds the sample's team. A rater may change ratings until the last turn is rated; then
the sample is closed for them, and the report opens.
"""

import random
import uuid
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, Stage
from stream_app.store import ratings as rating_store
from stream_app.store.judged import NotNow, NotThere
from stream_app.store.people import Person
from stream_app.store.ratings import Judgement, Rating
from stream_app.store.reading.scope import Scope
from stream_app.store.repository import Store
from stream_app.store.tables import ratings, sample_turns, samples, turn_scores, turns

POOL: Final = 20_000
"""Turns that a sample is drawn from: the newest."""
SMALLEST, LARGEST = 5, 300


@dataclass(frozen=True, slots=True)
class NewSample:
    """What to draw: ``size`` counsellor turns scored by ``bundle``; without a team, of any team."""

    title: str
    bundle: str
    team: str | None
    size: int
    seed: int


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of ``size`` turns; ``person`` drew it."""

    sample_id: str
    title: str
    bundle: str
    team: str | None
    seed: int
    person: str
    at: datetime
    size: int


@dataclass(frozen=True, slots=True)
class SampleTurn:
    """A turn at its place; ``erased``: its text is gone, so that it can be rated no more."""

    place: int
    session_id: str
    seq: int
    erased: bool


@dataclass(frozen=True, slots=True)
class Work:
    """What the raters of a sample have done: values by person, place and head."""

    turns: list[SampleTurn]
    values: dict[str, dict[int, dict[str, int]]]

    def rated(self, person: str) -> list[int]:
        """Places that this person has rated in full."""
        done = self.values.get(person, {})
        return sorted(place for place, heads in done.items() if set(heads) >= set(MECHANISMS))

    def left(self, person: str) -> list[int]:
        """Places that this person has yet to rate."""
        done = set(self.rated(person))
        return [turn.place for turn in self.turns if turn.place not in done and not turn.erased]

    @property
    def finished(self) -> list[str]:
        """Who has rated every turn, by name."""
        return sorted(name for name in self.values if self.rated(name) and not self.left(name))


def draw(store: Store, person: Person, new: NewSample) -> Sample:
    """Draw a sample; the same seed over the same turns gives the same sample.

    Raises:
        NotNow: no turn of this team has a final score of this bundle and its text.
    """
    scope = Scope(team=new.team) if new.team is not None else person.scope
    with store.transaction() as connection:
        chosen = _drawn(connection, scope, new)
        if not chosen:
            raise NotNow("there are no turns with final scores of this model to draw from")
        made = Sample(
            sample_id=str(uuid.uuid4()),
            title=new.title,
            bundle=new.bundle,
            team=new.team,
            seed=new.seed,
            person=person.name,
            at=datetime.now(UTC),
            size=len(chosen),
        )
        row = {name: getattr(made, name) for name in Sample.__slots__ if name != "size"}
        connection.execute(sa.insert(samples).values(row))
        connection.execute(
            sa.insert(sample_turns),
            [
                {"sample_id": made.sample_id, "place": place, "session_id": session, "seq": seq}
                for place, (session, seq) in enumerate(chosen, start=1)
            ],
        )
    return made


def find(store: Store, scope: Scope, limit: int = 100) -> list[Sample]:
    """The newest samples of a scope's team; every sample where all may be seen."""
    return _find(store, scope, limit=limit)


def one(store: Store, scope: Scope, sample_id: str) -> Sample:
    """One sample.

    Raises:
        NotThere: there is none that may be seen.
    """
    found = _find(store, scope, samples.c.sample_id == sample_id)
    if not found:
        raise NotThere("there is no such sample")
    return found[0]


def work(store: Store, sample: Sample) -> Work:
    """The turns of a sample and what its raters said. For reports: it is not blind."""
    place = sample_turns
    the_turns = (
        sa.select(place, turns.c.text.is_(None).label("erased"))
        .outerjoin(turns, (turns.c.session_id == place.c.session_id) & (turns.c.seq == place.c.seq))
        .where(place.c.sample_id == sample.sample_id)
        .order_by(place.c.place)
    )
    given = sa.select(ratings).where(ratings.c.sample_id == sample.sample_id)
    with store.reading() as connection:
        found = [
            SampleTurn(row["place"], row["session_id"], row["seq"], bool(row["erased"]))
            for row in connection.execute(the_turns).mappings()
        ]
        places = {(turn.session_id, turn.seq): turn.place for turn in found}
        values: dict[str, dict[int, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
        for row in connection.execute(given).mappings():
            values[row["person"]][places[row["session_id"], row["seq"]]][row["head"]] = row["value"]
    return Work(found, values)


def rate(store: Store, person: Person, sample_id: str, given: list[Judgement]) -> list[Rating]:
    """Rate turns of a sample, blind.

    Raises:
        NotThere: no such sample, or the turn is not in it.
        NotNow: this person has rated all of it.
        DoesNotFit: not a value of the head.
    """
    done = work(store, one(store, person.scope, sample_id))
    known = {(turn.session_id, turn.seq) for turn in done.turns}
    if any((each.session_id, each.seq) not in known for each in given):
        raise NotThere("this turn is not in the sample")
    if person.name in done.finished:
        raise NotNow("you have rated all turns; the sample is closed for you")
    return rating_store.rate(store, person.scope, person.name, given, sample_id)


def said_by_model(store: Store, sample: Sample) -> dict[int, dict[str, int]]:
    """By place, what the sample's bundle said; heads that abstained are left out."""
    place, score = sample_turns, turn_scores
    query = (
        sa.select(place.c.place, score.c.abstained, *(score.c[name] for name in MECHANISMS))
        .join(score, (score.c.session_id == place.c.session_id) & (score.c.seq == place.c.seq))
        .where(
            place.c.sample_id == sample.sample_id,
            score.c.bundle == sample.bundle,
            score.c.stage == Stage.FINAL.value,
        )
    )
    with store.reading() as connection:
        return {
            row["place"]: {
                name: row[name]
                for name in MECHANISMS
                if row[name] is not None and name not in row["abstained"]
            }
            for row in connection.execute(query).mappings()
        }


def _drawn(connection: sa.Connection, scope: Scope, new: NewSample) -> list[tuple[str, int]]:
    score = turn_scores
    levels = [score.c[name] for name in MECHANISMS]
    query = (
        sa.select(score.c.session_id, score.c.seq, score.c.abstained, *levels)
        .join(turns, (turns.c.session_id == score.c.session_id) & (turns.c.seq == score.c.seq))
        .where(
            score.c.bundle == new.bundle,
            score.c.stage == Stage.FINAL.value,
            score.c.role == Role.COUNSELLOR.value,
            score.c.late.is_(False),
            turns.c.text.is_not(None),
            *scope.conditions(score.c.session_id),
        )
        .order_by(score.c.occurred_at.desc(), score.c.session_id, score.c.seq)
        .limit(POOL)
    )
    strata: dict[Any, list[tuple[str, int]]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        said = tuple(None if name in row["abstained"] else row[name] for name in MECHANISMS)
        strata[said].append((row["session_id"], row["seq"]))
    drawing = random.Random(new.seed)  # noqa: S311  # a draw that can be repeated
    queues = [strata[key] for key in sorted(strata, key=str)]
    for queue in queues:
        drawing.shuffle(queue)
    chosen: list[tuple[str, int]] = []
    while len(chosen) < new.size and any(queues):
        waiting = [queue for queue in queues if queue]
        drawing.shuffle(waiting)  # which of the strata come once more often than the others
        chosen += [queue.pop() for queue in waiting[: new.size - len(chosen)]]
    drawing.shuffle(chosen)
    return chosen


def _find(
    store: Store, scope: Scope, *conditions: sa.ColumnElement[bool], limit: int = 1
) -> list[Sample]:
    count = (
        sa.select(sa.func.count())
        .where(sample_turns.c.sample_id == samples.c.sample_id)
        .scalar_subquery()
    )
    query = (
        sa.select(samples, count.label("size"))
        .where(*conditions)
        .order_by(samples.c.at.desc(), samples.c.sample_id)
        .limit(limit)
    )
    if scope.team is not None:
        query = query.where(samples.c.team == scope.team)
    with store.reading() as connection:
        return [
            Sample(**{name: row[name] for name in Sample.__slots__})
            for row in connection.execute(query).mappings()
        ]
