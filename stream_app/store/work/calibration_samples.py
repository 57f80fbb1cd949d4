"""Calibration samples: turns that several people rate blind, to measure agreement with the model.

A sample is stratified: each combination of levels (or abstentions) appears about equally often,
because rare levels would hardly appear in a random sample. Raters are supervisors whose access
scope includes the sample's team. A rater may change ratings until they have rated every turn; then
the sample is closed for them, and they can read the report.
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
from stream_app.store.accounts.people import Person
from stream_app.store.database.tables import ratings, sample_turns, samples, turn_scores, turns
from stream_app.store.sessions.scope import Scope
from stream_app.store.sessions.scored_turns import NotFound, StateConflict
from stream_app.store.stream.repository import Store
from stream_app.store.work import ratings as rating_store
from stream_app.store.work.ratings import Judgement, Rating

POOL_SIZE: Final = 20_000
"""Samples are drawn from this many of the newest turns."""
MIN_SIZE, MAX_SIZE = 5, 300


@dataclass(frozen=True, slots=True)
class NewCalibrationSample:
    """A sample to draw: ``size`` counsellor turns scored by ``bundle``; without a team, of any."""

    title: str
    bundle: str
    team: str | None
    size: int
    seed: int


@dataclass(frozen=True, slots=True)
class CalibrationSample:
    """A drawn sample of ``size`` turns; ``person``: who drew it."""

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
    """A turn and its position; ``erased``: its text was deleted, so it cannot be rated."""

    place: int
    session_id: str
    seq: int
    erased: bool


@dataclass(frozen=True, slots=True)
class SampleRatings:
    """The turns of a sample and its ratings so far: values by person, place and head."""

    turns: list[SampleTurn]
    values: dict[str, dict[int, dict[str, int]]]

    def rated(self, person: str) -> list[int]:
        """Places of the turns that this person has rated completely."""
        done = self.values.get(person, {})
        return sorted(place for place, heads in done.items() if set(heads) >= set(MECHANISMS))

    def unrated(self, person: str) -> list[int]:
        """Places of the turns that this person still has to rate."""
        done = set(self.rated(person))
        return [turn.place for turn in self.turns if turn.place not in done and not turn.erased]

    @property
    def finished(self) -> list[str]:
        """Names of the people who have rated every turn."""
        return sorted(name for name in self.values if self.rated(name) and not self.unrated(name))


def draw(store: Store, person: Person, new: NewCalibrationSample) -> CalibrationSample:
    """Draw a sample; the same seed and turns give the same sample.

    Raises:
        StateConflict: no turn of the team has text and a final score by the bundle.
    """
    scope = Scope(team=new.team) if new.team is not None else person.scope
    with store.transaction() as connection:
        chosen = _draw_turns(connection, scope, new)
        if not chosen:
            raise StateConflict("there are no turns with final scores of this model to draw from")
        sample = CalibrationSample(
            sample_id=str(uuid.uuid4()),
            title=store.privacy.redacted(new.title),
            bundle=new.bundle,
            team=new.team,
            seed=new.seed,
            person=person.name,
            at=datetime.now(UTC),
            size=len(chosen),
        )
        row = {
            name: getattr(sample, name) for name in CalibrationSample.__slots__ if name != "size"
        }
        connection.execute(sa.insert(samples).values(row))
        connection.execute(
            sa.insert(sample_turns),
            [
                {"sample_id": sample.sample_id, "place": place, "session_id": session, "seq": seq}
                for place, (session, seq) in enumerate(chosen, start=1)
            ],
        )
    return sample


def find(store: Store, scope: Scope, limit: int = 100) -> list[CalibrationSample]:
    """The newest samples of the scope's team, or of all teams."""
    return _find(store, scope, limit=limit)


def one(store: Store, scope: Scope, sample_id: str) -> CalibrationSample:
    """One sample.

    Raises:
        NotFound: the sample does not exist, or not in ``scope``.
    """
    found = _find(store, scope, samples.c.sample_id == sample_id)
    if not found:
        raise NotFound("there is no such sample")
    return found[0]


def collect_ratings(store: Store, sample: CalibrationSample) -> SampleRatings:
    """Read the turns of a sample and all of its ratings; for reports, as it is not blind."""
    place = sample_turns
    with_turns = (
        sa.select(place, turns.c.text.is_(None).label("erased"))
        .outerjoin(turns, (turns.c.session_id == place.c.session_id) & (turns.c.seq == place.c.seq))
        .where(place.c.sample_id == sample.sample_id)
        .order_by(place.c.place)
    )
    given = sa.select(ratings).where(ratings.c.sample_id == sample.sample_id)
    with store.reading() as connection:
        found = [
            SampleTurn(row["place"], row["session_id"], row["seq"], bool(row["erased"]))
            for row in connection.execute(with_turns).mappings()
        ]
        places = {(turn.session_id, turn.seq): turn.place for turn in found}
        values: dict[str, dict[int, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
        for row in connection.execute(given).mappings():
            values[row["person"]][places[row["session_id"], row["seq"]]][row["head"]] = row["value"]
    return SampleRatings(found, values)


def rate(store: Store, person: Person, sample_id: str, given: list[Judgement]) -> list[Rating]:
    """Store blind ratings of turns in a sample.

    Raises:
        NotFound: the sample does not exist, or the turn is not in it.
        StateConflict: the person has already rated all turns.
        InvalidJudgement: the head lacks the value.
    """
    done = collect_ratings(store, one(store, person.scope, sample_id))
    known = {(turn.session_id, turn.seq) for turn in done.turns}
    if any((each.session_id, each.seq) not in known for each in given):
        raise NotFound("this turn is not in the sample")
    if person.name in done.finished:
        raise StateConflict("you have rated all turns; the sample is closed for you")
    return rating_store.rate(store, person.scope, person.name, given, sample_id)


def model_levels(store: Store, sample: CalibrationSample) -> dict[int, dict[str, int]]:
    """Levels that the sample's bundle predicted, by place, without abstentions."""
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


def _draw_turns(
    connection: sa.Connection, scope: Scope, new: NewCalibrationSample
) -> list[tuple[str, int]]:
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
        .limit(POOL_SIZE)
    )
    strata: dict[Any, list[tuple[str, int]]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        levels_of_turn = tuple(
            None if name in row["abstained"] else row[name] for name in MECHANISMS
        )
        strata[levels_of_turn].append((row["session_id"], row["seq"]))
    rng = random.Random(new.seed)  # noqa: S311  # reproducible, not secret
    queues = [strata[key] for key in sorted(strata, key=str)]
    for queue in queues:
        rng.shuffle(queue)
    chosen: list[tuple[str, int]] = []
    while len(chosen) < new.size and any(queues):
        waiting = [queue for queue in queues if queue]
        rng.shuffle(waiting)  # which strata contribute one turn more than others
        chosen += [queue.pop() for queue in waiting[: new.size - len(chosen)]]
    rng.shuffle(chosen)
    return chosen


def _find(
    store: Store, scope: Scope, *conditions: sa.ColumnElement[bool], limit: int = 1
) -> list[CalibrationSample]:
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
            CalibrationSample(**{name: row[name] for name in CalibrationSample.__slots__})
            for row in connection.execute(query).mappings()
        ]
