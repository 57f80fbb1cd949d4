"""Analyses print the same figures before and after months were archived."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy as sa

from stream_app.analytics.questions import frames
from stream_app.analytics.questions.frames import Frames
from stream_app.analytics.questions.questions import QUESTIONS, Asked, answer
from stream_app.analytics.questions.result import Analysis
from stream_app.demo import simulated_store
from stream_app.demo.simulator import simulate
from stream_app.store.database import tables
from stream_app.store.lifecycle import archived
from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store, open_store
from tests.analytics import archiving
from tests.analytics.conftest import SMALL
from tests.store import databases

pytestmark = pytest.mark.slow

RARELY_RATED = replace(SMALL, rated=0.004)
HALF = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass
class Kept:
    """A platform's analyses and frames before some of its months were archived."""

    store: Store
    folder: Path
    attributes: dict[str, str]
    analyses: dict[str, Analysis]
    frames: dict[str, Frames]

    def asked(self, name: str) -> Asked:
        declared = self.attributes if name in ("pairs", "fairness") else None
        return Asked(attributes=declared, archive=self.folder, fewest_days=100)


CHOICES = {
    "all": {},
    "north": {"scope": Scope(team="north")},
    "dates": {"since": datetime(2024, 6, 1, tzinfo=UTC), "until": HALF},
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("kept")
    store = open_store(databases.sqlite(folder / "rapport.db"))
    store.load_privacy(redact=False)
    platform = simulate(RARELY_RATED)
    simulated_store.write(platform, store)
    archiving.purge_texts(store)
    declared = {store.privacy.pseudonym(name): it for name, it in platform.attributes.items()}
    known = Kept(store, folder / "archive", declared, {}, {})
    (folder / "archive").mkdir()
    known.analyses |= {name: answer(store, name, known.asked(name)) for name in QUESTIONS}
    known.frames |= {name: frames.read(store, **CHOICES[name], with_heads=True) for name in CHOICES}
    last = max(platform.frames.sessions["started_at"]).date().replace(day=1)
    assert archiving.move(store, folder / "archive", last)
    yield known
    store.close()


def test_most_sessions_were_archived(kept: Kept) -> None:
    with kept.store.reading() as connection:
        left = connection.scalar(sa.select(sa.func.count()).select_from(tables.sessions))
    assert left is not None
    assert archived.count(kept.store) > 3 * left > 0


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_a_question_has_the_same_answer(kept: Kept, name: str) -> None:
    found = answer(kept.store, name, kept.asked(name))
    assert found == kept.analyses[name]
    assert found.estimates


@pytest.mark.parametrize("choice", sorted(CHOICES))
def test_frames_are_the_same(kept: Kept, choice: str) -> None:
    found = frames.read(kept.store, **CHOICES[choice], with_heads=True, archive=kept.folder)
    for name in ("sessions", "turns", "alerts", "outcomes", "ratings"):
        one, other = (
            each.sort_values(list(each.columns[:3]), ignore_index=True)
            for each in (getattr(found, name), getattr(kept.frames[choice], name))
        )
        pd.testing.assert_frame_equal(one, other)
        assert name == "ratings" or len(one)
