"""Writes half a year of synthetic sessions for the demo.

A training in the middle raises the levels, and later another model begins to score. Everything is
marked: the models are called synthetic, and so are the sessions.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from stream_app.analytics.questions import marked_days
from stream_app.analytics.questions.frames import DAYS_A_MONTH
from stream_app.analytics.questions.marked_days import TRAINING, MarkedDay
from stream_app.analytics.rollups import rollups
from stream_app.demo import simulated_store
from stream_app.demo.simulator import World, simulate
from stream_app.recordings.event_files import DEMO_TEAM, sample_counsellor
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.lifecycle import retention
from stream_app.store.stream.repository import Store

MONTHS: Final = 6
DAYS: Final = 184
"""Length of the history; no session lies in the future."""
PREFIX: Final = "synthetic"
"""Prefix of synthetic session ids."""
LINKED: Final = "counsellor-0001"
"""A counsellor of ``DEMO_TEAM`` who becomes the demo's counsellor."""


def write(store: Store, days: Path | None) -> int:
    """Write the history; returns the number of turns. ``days``: the file of marked days."""
    world = _world()
    platform = simulate(world)
    sessions = platform.frames.sessions
    sessions["counsellor"] = sessions["counsellor"].replace(
        {LINKED: sample_counsellor(DEMO_TEAM, 0)}
    )
    _add_rater(store)
    turns = simulated_store.write(platform, store, PREFIX)
    rollups.rebuild(store)
    # so that the first purge expects months of texts to have expired
    retention.claim_daily_run(store, datetime.now(UTC) - 2 * retention.INTERVAL)
    if days is not None:
        _mark(days, world)
    return turns


def _mark(file: Path, world: World) -> None:
    """Add the training to the file of marked days, if it has no day."""
    if world.training is None or marked_days.read(file):
        return
    day = (world.begins + timedelta(days=world.training * DAYS_A_MONTH)).date()
    marked_days.write(file, [MarkedDay(day, TRAINING, "Reflective listening")])


def _world() -> World:
    begins = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return World(
        begins=begins - timedelta(days=DAYS),
        counsellors=24,
        months=MONTHS,
        joining_months=1,
        sessions_a_month=12,
        turns=3,
        training=3,
        training_jump=0.25,
        new_model=4.7,
        new_model_shift=0.1,
    )


def _add_rater(store: Store) -> None:
    """A disabled account of the ratings, so that they count as a supervisor's."""
    people = People(store)
    people.add(Person(simulated_store.SOMEBODY, PersonRole.SUPERVISOR), None)
    people.disable(simulated_store.SOMEBODY)
