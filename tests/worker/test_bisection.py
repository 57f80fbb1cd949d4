"""A poison pill does not block its partition: only that event is dead-lettered."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs
from structlog.testing import capture_logs

from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.measures.window import ScoringRequest, WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline, Source, receive
from stream_app.core.session.environment import Policy
from stream_app.core.session.ports import Encoding, HeadScores
from stream_app.errors import StaleState, StoreError, StoreUnavailable
from stream_app.store.database import tables
from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store
from stream_app.worker.batches.metrics import WorkerMetrics
from stream_app.worker.batches.processor import BatchProcessor, BatchSettings
from tests.fakes import FakeScorer, delete, edit
from tests.hostile_values import FIELDS, FLOATS, OTHERS, REDACTED, TEXTS, TIMES, WHOLE
from tests.rule_texts import ALL, rule_text, rules_of
from tests.store.batches import end, outcome, prepare, questionnaire, turn
from tests.store.databases import open_store
from tests.store.reading import rows
from tests.worker.processors import TOPICS, processor, records

Open = Callable[..., Store]
SILENCE = rules_of(
    rule_text("silence", when="waiting && waiting_distress >= 0.0", for_="90s", cooldown="24h")
)
POISON = "zanzibar"


class PoisonedScorer(FakeScorer):
    """A scorer that fails on texts with the poison word."""

    def __init__(self, problem: Exception, everything: bool = False) -> None:
        self._problem = problem
        self._everything = everything

    def encode(self, texts: list[str], roles: list[Role] | None = None) -> list[Encoding]:
        if texts and (self._everything or any(POISON in text for text in texts)):
            raise self._problem
        return super().encode(texts, roles)


def choking(store: Store, problem: Exception, everything: bool = False) -> BatchProcessor:
    core = Pipeline(PoisonedScorer(problem, everything), Policy(WindowPolicy(), SILENCE))
    return BatchProcessor(core, store, BatchSettings(TOPICS, 0.0, 100), WorkerMetrics())


def take(worker: BatchProcessor, *values: bytes) -> dict[bytes, str]:
    """Handle one batch as the agent does; return the reasons by dead-lettered bytes."""
    parts = worker.handle_bisecting(worker.prepare(records(values)))
    return {item.raw: item.letter.reason for part in parts for item in part.result.dead_letters}


def sessions_of(store: Store) -> list[tuple[str, int]]:
    return [(row["session_id"], row["seq"]) for row in rows(store, tables.turns)]


def test_a_turn_in_the_year_9999_is_dead_lettered(open_prepared: Open) -> None:
    store = open_prepared()
    last = turn(0, session_id="last", occurred_at="9999-12-31T23:59:30Z")
    found = take(processor(store, rules=SILENCE), turn(0), last, turn(1))
    assert found == {last: "implausible-time"}
    assert sessions_of(store) == [("s", 0), ("s", 1)]


@pytest.mark.parametrize(
    ("appended_at", "occurred_at", "taken"),
    [
        ("2026-03-01T10:00:00Z", "2026-03-01T10:05:00Z", True),
        ("2026-03-01T10:00:00Z", "2026-03-01T10:05:01Z", False),
        ("2026-03-01T10:00:00Z", "2000-01-01T00:00:00Z", True),
        ("2026-03-01T10:00:00Z", "1999-12-31T23:59:59Z", False),
        ("2026-03-01T10:00:00Z", "2000-01-01T00:30:00+01:00", False),
    ],
)
def test_plausible_times_lie_between_the_setting_and_the_brokers_clock(
    open_prepared: Open, appended_at: str, occurred_at: str, taken: bool
) -> None:
    worker = processor(open_prepared())
    value = turn(occurred_at=occurred_at)
    at = datetime.fromisoformat(appended_at)
    [part] = worker.handle_bisecting(
        worker.prepare([receive(Source("t", 0, 0), value, {}, at, at)])
    )
    reasons = [item.letter.reason for item in part.result.dead_letters]
    assert reasons == ([] if taken else ["implausible-time"])


def test_without_an_append_time_the_workers_clock_is_used(open_prepared: Open) -> None:
    store = open_prepared()
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    value = turn(occurred_at=soon)
    assert take(processor(store), value) == {value: "implausible-time"}


@pytest.mark.parametrize(
    "problem", [RuntimeError("no"), RecursionError(), OverflowError(), KeyError(POISON)]
)
def test_only_the_poison_event_is_dead_lettered(open_prepared: Open, problem: Exception) -> None:
    store, undisturbed = open_prepared(), open_prepared("undisturbed")
    good = [turn(seq, session_id=name) for seq in range(9) for name in "ab"]
    bad = turn(4, session_id="c", text=f"It is {POISON}.")
    worse = turn(0, session_id="d", text=POISON)
    found = take(choking(store, problem), *good[:7], bad, *good[7:], worse)
    assert found == {bad: "unprocessable", worse: "unprocessable"}
    take(processor(undisturbed, rules=SILENCE), *good)
    for table in (tables.turn_scores, tables.session_scores, tables.alerts):
        assert rows(store, table) == rows(undisturbed, table)


def test_the_reason_has_the_error_type_and_no_text(open_prepared: Open) -> None:
    worker = choking(open_prepared(), ValueError(f"cannot read {POISON}"))
    with capture_logs() as logs:
        parts = worker.handle_bisecting(worker.prepare(records([turn(text=POISON)])))
    [item] = [item for part in parts for item in part.result.dead_letters]
    assert "ValueError" in item.letter.detail
    assert "event.unprocessable" in [entry["event"] for entry in logs]
    assert POISON not in item.letter.detail + repr(logs)
    counted = worker.metrics.registry.get_sample_value
    assert counted("rapport_dead_letters_total", {"reason": "unprocessable"}) == 1


def test_an_event_whose_row_is_refused_is_dead_lettered(open_prepared: Open) -> None:
    store = open_prepared()
    with store.engine.begin() as connection:
        connection.execute(
            sa.text(
                "CREATE TRIGGER no BEFORE INSERT ON turns WHEN NEW.seq = 3 "
                "BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
        )
    values = [turn(seq) for seq in range(6)]
    assert take(processor(store), *values) == {values[3]: "unprocessable"}
    assert [seq for _, seq in sessions_of(store)] == [0, 1, 2, 4, 5]


@pytest.mark.parametrize(
    "problem",
    [
        StoreUnavailable("away"),
        StoreError("the database refused the work: permission denied"),
        MemoryError(),
        OSError(28, "No space left on device"),
    ],
)
def test_errors_of_the_environment_are_raised_and_dead_letter_nothing(
    open_prepared: Open, problem: Exception
) -> None:
    store = open_prepared()
    worker = processor(store, retry_for=0.0)
    batch = worker.prepare(records([turn(0), turn(1)]))

    def failing(*_: Any, **__: Any) -> None:
        raise problem

    commit, store.commit = store.commit, failing  # type: ignore[method-assign]
    with pytest.raises(type(problem)):
        worker.handle_bisecting(batch)
    store.commit = commit  # type: ignore[method-assign]
    assert [
        item for part in worker.handle_bisecting(batch) for item in part.result.dead_letters
    ] == []
    assert sessions_of(store) == [("s", 0), ("s", 1)]


def test_a_model_that_always_fails_dead_letters_nothing(open_prepared: Open) -> None:
    """As after the loss of an accelerator: the events wait for another worker."""
    worker = choking(open_prepared(), RuntimeError("CUDA error"), everything=True)
    batch = worker.prepare(records([turn(0), turn(1)]))
    with pytest.raises(RuntimeError, match="CUDA"):
        worker.handle_bisecting(batch)


def test_a_missing_table_dead_letters_nothing(open_prepared: Open) -> None:
    store = open_prepared()
    worker = processor(store)
    with store.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE turns RENAME TO away"))
    with pytest.raises(StoreError):
        worker.handle_bisecting(worker.prepare(records([turn(0)])))


def test_a_transient_error_dead_letters_nothing(open_prepared: Open) -> None:
    """The error occurs once; neither the self-test nor the event alone reproduces it."""
    store = open_prepared()
    worker = processor(store)
    batch = worker.prepare(records([turn(0)]))
    commit, problems = store.commit, [RuntimeError("once")]

    def once(*given: Any, **more: Any) -> int | None:
        if problems:
            raise problems.pop()
        return commit(*given, **more)

    store.commit = once  # type: ignore[method-assign]
    assert [
        item for part in worker.handle_bisecting(batch) for item in part.result.dead_letters
    ] == []
    assert sessions_of(store) == [("s", 0)]


def test_the_self_test_leaves_no_rows(open_prepared: Open) -> None:
    store = open_prepared()
    processor(store).self_test.run()
    for table in (tables.turns, tables.sessions, tables.session_states, tables.outbox):
        assert rows(store, table) == []


class FailingOnFinalScores(FakeScorer):
    """A scorer that fails on the final score of one text."""

    def score(self, requests: list[ScoringRequest]) -> list[HeadScores]:
        [bad] = self.encode([POISON])
        for request in requests:
            if request.stage is Stage.FINAL and request.turn.vectors == bad.vectors:
                raise RuntimeError(POISON)
        return super().score(requests)


def test_a_session_that_cannot_be_flushed_does_not_block_others(open_prepared: Open) -> None:
    store = open_prepared()
    core = Pipeline(FailingOnFinalScores(), Policy(WindowPolicy(), SILENCE))
    worker = BatchProcessor(core, store, BatchSettings(TOPICS, 0.0, 100), WorkerMetrics())
    take(worker, turn(text=POISON), turn(session_id="a"), turn(session_id="b"))
    later = datetime.now(UTC) + timedelta(days=1)
    flushed = worker.due.flush_idle(later, [0])
    assert flushed is not None
    assert flushed.result.sessions.keys() == {"a", "b"}
    assert worker.due.flush_idle(later, [0]) is None
    states = {row["session_id"]: row["status"] for row in rows(store, tables.session_states)}
    assert states == {"s": "open", "a": "idle", "b": "idle"}


ANY = st.one_of(
    *(st.sampled_from(values) for values in (TIMES, WHOLE, FLOATS, TEXTS, REDACTED, OTHERS)),
    st.text(max_size=20),
)
MAKERS = {
    "turn": turn,
    "turn_edit": edit,
    "turn_delete": delete,
    "session_end": end,
    "outcome": outcome,
    "questionnaire": questionnaire,
}


@st.composite
def extreme(draw: st.DrawFn) -> bytes:
    """A valid event with one to three fields at their extremes."""
    kind = draw(st.sampled_from(list(FIELDS)))
    event = json.loads(MAKERS[kind](session_id=draw(st.sampled_from("ab"))))
    for name in draw(st.lists(st.sampled_from(FIELDS[kind]), min_size=1, max_size=3)):
        event[name] = draw(ANY)
    return json.dumps(event).encode("utf-8", "surrogatepass")


@pytest.fixture(params=["sqlite", "postgresql"])
def property_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = f"sqlite:///{tmp_path}/property.db"
    if request.param == "postgresql":
        url = request.getfixturevalue("server").new_database()
    store = open_store(url)
    schema.upgrade(store)
    yield prepare(store)
    store.close()


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(values=st.lists(extreme(), min_size=1, max_size=6), data=st.data())
def test_every_event_is_counted_or_dead_lettered_whatever_its_fields(
    property_store: Store, values: list[bytes], data: st.DataObject
) -> None:
    """With every kind of rule, the real processor and a real database."""
    worker = processor(property_store, rules=ALL, cached=data.draw(st.sampled_from([1, 100])))
    good = turn(data.draw(st.integers(0, 9)), session_id="good")
    parts = worker.handle_in_parts(worker.prepare(records([*values, good])))
    counts = sum((part.result.counts for part in parts), start=type(parts[0].result.counts)())
    assert sum(counts.values()) == len(values) + 1
    assert ("good", json.loads(good)["seq"]) in sessions_of(property_store)
    later = datetime.now(UTC) + timedelta(days=1)
    worker.due.flush_idle(later, [0])
    worker.due.fire_due(later, later - timedelta(days=1), [0])


def test_a_batch_that_others_keep_overtaking_is_split_instead_of_crashing(
    open_prepared: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mis-keyed sessions under load: others commit while a long batch is calculated."""
    monkeypatch.setattr(
        "stream_app.worker.batches.retries.sleep_using_event", lambda _: lambda _: None
    )
    store = open_prepared()
    commit = store.commit

    def overtaken(result: Any, *more: Any) -> int | None:
        if len(result.turns) > 2:
            raise StaleState("another worker was faster")
        return commit(result, *more)

    monkeypatch.setattr(store, "commit", overtaken)
    worker = processor(store)
    assert take(worker, *(turn(seq) for seq in range(8)), b"{") == {b"{": "not-json"}
    assert [seq for _, seq in sessions_of(store)] == list(range(8))
    assert worker.metrics.stale_states._value.get() > 0


def test_a_part_of_a_fair_batch_moves_no_position_past_what_waits(open_prepared: Open) -> None:
    """The batch took offsets 0, 1 and 9; the events between them wait."""
    store = open_prepared()
    worker = choking(store, RuntimeError("poison"))
    values = [turn(0), turn(1, text=POISON), turn(0, session_id="quiet")]
    batch = [
        structs.replace(received, source=Source("t", 0, offset), done_to=position)
        for received, offset, position in zip(records(values), (0, 1, 9), (1, 2, 2), strict=True)
    ]
    positions: list[int] = []
    commit = store.commit

    def noted(*given: Any, **more: Any) -> int | None:
        positions.extend(at.next_offset for at in given[2])
        return commit(*given, **more)

    store.commit = noted  # type: ignore[method-assign]
    worker.handle_bisecting(worker.prepare(batch))
    assert positions == [1, 2, 2]
    assert sessions_of(store) == [("quiet", 0), ("s", 0)]
