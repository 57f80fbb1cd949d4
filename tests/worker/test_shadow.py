"""A bundle in the shadow: what it stores, and that it never disturbs the one in force."""

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from stream_app.core.measures.window import ScoringRequest
from stream_app.core.pipeline.shadow import SESSIONS_KEPT, TURNS_KEPT, Shadow
from stream_app.core.session.ports import Encoding, HeadScores
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from tests.fakes import FakeScorer
from tests.store.batches import consent, end, outcome, turn
from tests.store.reading import rows
from tests.worker.processors import handle, processor

Open = Callable[..., Store]
LOG = [turn(seq, session_id=name) for seq in range(9) for name in "ab"]
LOG += [end(session_id="a"), outcome(session_id="a")]
KEY = ("session_id", "seq", "stage")


class Tried(FakeScorer):
    """A second bundle that records what it is asked."""

    bundle_id = "tried-1-fp32"

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, texts: list[str], roles: Any = None) -> list[Encoding]:
        self.encoded += texts
        return super().encode([f"otherwise: {text}" for text in texts], roles)


class Broken(Tried):
    """A bundle whose graphs fail."""

    def encode(self, texts: list[str], roles: Any = None) -> list[Encoding]:
        raise RuntimeError("secret words of a turn")

    def score(self, requests: list[ScoringRequest]) -> list[HeadScores]:
        raise MemoryError("secret words of a turn")


class Incomplete(Tried):
    """A bundle that gives fewer scores than there are requests."""

    def score(self, requests: list[ScoringRequest]) -> list[HeadScores]:
        return super().score(requests)[1:]


def stored(store: Store) -> dict[str, Any]:
    """All that the bundle in force leaves, without the columns that depend on the time."""
    names = ("turn_scores", "session_scores", "alerts", "outcomes", "outbox")
    found = {name: rows(store, tables.metadata.tables[name]) for name in names}
    for row in found["outbox"]:
        del row["created_at"]
    return found


def keys(found: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    return {tuple(row[name] for name in KEY) for row in found}


@pytest.mark.parametrize("shares", [True, False], ids=["same encoder", "other encoder"])
@pytest.mark.parametrize("kind", [Tried, Broken, Incomplete])
def test_the_bundle_in_force_leaves_the_same_rows_and_messages(
    open_prepared: Open, kind: type[Tried], shares: bool
) -> None:
    plain, beside = open_prepared("plain"), open_prepared("beside")
    handle(processor(plain), LOG)
    faults: list[Exception] = []
    worker = processor(beside, shadow=Shadow(kind(), faults.append, shares_encoder=shares))
    handle(worker, LOG)
    assert stored(beside) == stored(plain)
    found = rows(beside, tables.shadow_scores)
    if kind is Tried:
        assert not faults
        assert keys(found) == keys(rows(beside, tables.turn_scores))
        assert {row["bundle"] for row in found} == {Tried.bundle_id}
    else:
        assert faults
        assert found == []


def test_a_fault_in_storing_is_counted_and_the_batch_stays_committed(open_prepared: Open) -> None:
    store = open_prepared()
    with store.transaction() as connection:
        connection.execute(sa.text("DROP TABLE shadow_scores"))
    worker = processor(store, shadow=Shadow(Tried(), pytest.fail, shares_encoder=True))
    handle(worker, LOG)
    assert len(rows(store, tables.turn_scores)) > 0
    assert worker.metrics.registry.get_sample_value("rapport_shadow_faults_total") == 1


def test_the_same_encoder_encodes_once_and_another_one_a_second_time(open_prepared: Open) -> None:
    for shares, expected in ((True, 0), (False, 18)):
        tried = Tried()
        worker = processor(
            open_prepared(f"shares {shares}"),
            shadow=Shadow(tried, pytest.fail, shares_encoder=shares),
        )
        handle(worker, LOG)
        assert len(tried.encoded) == expected


def test_after_a_restart_another_encoder_scores_again_once_it_knows_the_window(
    open_prepared: Open,
) -> None:
    """The window's vectors are not stored; turns whose neighbours are unknown are left out."""
    store = open_prepared()
    for part in (LOG[:6], LOG[6:]):
        worker = processor(store, shadow=Shadow(Tried(), pytest.fail, shares_encoder=False))
        handle(worker, part)
    missing = keys(rows(store, tables.turn_scores)) - keys(rows(store, tables.shadow_scores))
    assert missing
    assert keys(rows(store, tables.shadow_scores))
    assert max(seq for _, seq, _ in missing) < 6


def test_withheld_turns_are_not_encoded(open_prepared: Open) -> None:
    tried = Tried()
    worker = processor(open_prepared(), shadow=Shadow(tried, pytest.fail, shares_encoder=False))
    handle(worker, [turn(0, consent=False), turn(1, consent=None)])
    assert tried.encoded == []


def test_withdrawn_sessions_get_no_more_shadow_scores(open_prepared: Open) -> None:
    store = open_prepared()
    worker = processor(store, shadow=Shadow(Tried(), pytest.fail, shares_encoder=True))
    handle(worker, [turn(seq) for seq in range(3)])
    before = rows(store, tables.shadow_scores)
    handle(worker, [consent("withdrawn"), *(turn(seq) for seq in range(3, 9))])
    assert rows(store, tables.shadow_scores) == before


def test_memory_is_bounded(open_prepared: Open) -> None:
    shadow = Shadow(Tried(), pytest.fail, shares_encoder=False)
    worker = processor(open_prepared(), shadow=shadow)
    handle(worker, [turn(seq, session_id="long") for seq in range(TURNS_KEPT + 20)])
    assert len(shadow._encoded["long"]) == TURNS_KEPT
    for first in range(0, SESSIONS_KEPT + 200, 400):
        handle(worker, [turn(0, session_id=f"s{n}") for n in range(first, first + 400)])
    assert len(shadow._encoded) <= SESSIONS_KEPT
    handle(worker, [end(session_id=f"s{SESSIONS_KEPT + 199}")])
    assert f"s{SESSIONS_KEPT + 199}" not in shadow._encoded
