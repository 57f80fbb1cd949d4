"""The plan's calculations with round figures, and the document generated from them."""

from pathlib import Path

import pytest
from msgspec import structs

from benchmarks import capacity, plan, reports, sizes, workload
from benchmarks.capacity import Assumptions, Row, Speeds
from benchmarks.cost import Cost
from benchmarks.operations import EncoderSize
from benchmarks.parts import sessions
from benchmarks.parts.length import Length, OtherBundle
from benchmarks.parts.length import Result as Lengths
from benchmarks.sizes import Sizes, Table, Topic
from servers import postgres
from stream_app.inference.bundle import DEFAULT_BUNDLE
from stream_app.store.stream import windows
from tests.benchmarks.test_tables import report
from tests.conftest import _missing

SIZES = Sizes(
    bundle="bundle-1",
    postgresql="15.1",
    turns=1000,
    tokens=20.0,
    turn_in=300.0,
    topics={"turn-scores": Topic(2.0, 1000.0), "session-scores": Topic(1.0, 500.0)},
    tables={
        "turns": Table(1.0, 0.0, 0.0, 1.0, 200.0),
        "turn_scores": Table(2.0, 0.0, 0.0, 2.0, 1000.0),
        "session_states": Table(0.0, 1.0, 0.0, 0.0, 6_000.0),
        "window_turns": Table(0.0, 1.0, 0.0, 0.0, 2_000.0),
        "outbox": Table(0.01, 0.0, 0.01, 0.0, 0.0),
    },
    log=10_000.0,
    state=2_000.0,
    base=3_000.0,
    held=7.0,
    turn=1_600.0,
    read=5.0,
    live=3000.0,
    archived=100.0,
)
SPEEDS = Speeds(
    tokens=20.0,
    worker=Cost(a=0.0005, b=0.0001),
    nano=("nano-1", Cost(a=0.0005, b=0.000025)),
    accelerator=None,
    memory=(200.0, 40_000.0),
)
SMALL = Assumptions(sessions=100_000, seconds=10.0, busy=0.5)


def rows(a: Assumptions = SMALL, size: Sizes = SIZES, speed: Speeds = SPEEDS) -> dict[str, Row]:
    return {
        f"{section.title}: {row.name}": row
        for section in capacity.plan(a, size, speed)
        for row in section.rows
    }


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("Load: turns", 10_000.0),
        ("Load: tokens", 200_000.0),
        ("Workers: one worker, one core, default bundle", 400.0),
        ("Workers: workers and cores, default bundle", 50),
        ("Workers: one worker, one core, nano-1", 1000.0),
        ("Workers: workers and cores, nano-1", 20),
        ("Workers: accelerators, under this assumption", 3),
        ("Kafka: in", 3.0),
        ("Kafka: out, a turn", 2500.0),
        ("Kafka: out", 25.0),
        ("Kafka: written, with copies", 84.0),
        ("Kafka: kept for 24 h", 7.2576),
        ("Kafka: brokers", 1),
        ("Kafka: partitions of the turns topic, minimum", 50),
        ("Kafka: turns in one partition", 200.0),
        ("PostgreSQL, writing: `turn_scores`", 20_000.0),
        ("PostgreSQL, writing: all tables", 50_200.0),
        ("PostgreSQL, writing: write-ahead log", 100.0),
        ("PostgreSQL, writing: of which session states, minimum", 36.0),
        ("PostgreSQL, writing: primaries", 1),
        ("PostgreSQL, storage: `turns`, a day", 0.1728),
        ("PostgreSQL, storage: all growing tables, a day", 1.9008),
        ("PostgreSQL, storage: a partition of one month", 57.024),
        ("PostgreSQL, storage: 12 months, all in the database", 684.288),
        ("PostgreSQL, storage: 2 months in the database", 114.048),
        ("PostgreSQL, storage: a month in the archive", 2.592),
        ("PostgreSQL, storage: 12 months with the archive", 114.048 + 10 * 2.592),
        ("PostgreSQL, storage: states of open sessions", 2.2),
        ("Memory: sessions of one worker", 2000.0),
        ("Memory: memory of one worker", 200 + 2000 * 40_000 / 2**20),
        ("Console: viewers", 500),
        ("Console: web processes for their streams", 1),
        ("Console: events for one viewer", 60.0),
        ("Console: to one browser", 60.0),
        ("Console: messages that each web process reads", 30_000.0),
        ("Console: cores for them, in each web process", 0.15),
        ("Bottlenecks: one PostgreSQL primary", 10_000.0),
        ("Bottlenecks: one web process, which reads all topics", 66_666.67),
        ("Bottlenecks: deployments, each with its own sessions", 1),
    ],
)
def test_a_sum(name: str, what: float) -> None:
    assert rows()[name].what == pytest.approx(what, rel=1e-6)


def test_without_archived_bytes_the_archive_is_not_planned() -> None:
    found = rows(size=structs.replace(SIZES, archived=None))
    assert found["PostgreSQL, storage: a month in the archive"].what is None
    assert found["PostgreSQL, storage: 12 months with the archive"].what is None
    assert found["PostgreSQL, storage: 2 months in the database"].what == pytest.approx(114.048)


def test_ten_times_the_sessions_need_ten_times_the_deployment() -> None:
    found = rows(structs.replace(SMALL, sessions=1_000_000))
    split = "Bottlenecks: deployments, each with its own sessions"
    assert found[split].what == 10
    assert found["Bottlenecks: sessions in each"].what == 100_000


def test_the_scarcest_resource_comes_first() -> None:
    slow = structs.replace(SIZES, read=500.0)
    names = [name for name in rows(size=slow) if name.startswith("Bottlenecks")]
    assert "web process" in names[0]


def test_missing_measurements_leave_derived_figures_empty() -> None:
    found = rows(speed=Speeds(tokens=20.0))
    for name in (
        "Workers: one worker, one core, default bundle",
        "Workers: workers and cores, default bundle",
        "Workers: workers and cores, a smaller bundle",
        "Kafka: partitions of the turns topic, minimum",
        "Kafka: turns in one partition",
        "Memory: sessions of one worker",
        "Memory: memory of one worker",
    ):
        assert found[name].what is None
    shown = plan.shown(capacity.plan(SMALL, SIZES, Speeds(tokens=20.0)))
    assert "| workers and cores, default bundle | 10,000 / (? × 0.5) | not measured |" in shown


def test_an_accelerator_is_assumed_until_it_is_measured() -> None:
    assert "not measured" in rows()["Workers: one worker, one accelerator"].how
    measured = rows(speed=structs.replace(SPEEDS, accelerator=4000.0))
    assert measured["Workers: one worker, one accelerator"] == Row(
        "one worker, one accelerator", "measured", 4000.0, "turns/s"
    )
    assert measured["Workers: accelerators"].what == 5


def test_speeds_come_from_the_results(tmp_path: Path) -> None:
    def length(tokens: float, *, mixture: bool = False) -> Length:
        bare = 1 / (0.0004 + 0.0001 * tokens)
        return Length(tokens, mixture, [bare], [9000.0], overheads=[100.0])

    by_length = Lengths(
        "whole",
        EncoderSize(20.0, 6),
        [0.7],
        [length(8), length(64), length(23, mixture=True)],
        [
            OtherBundle("half", EncoderSize(10.0, 3), 20.0, [1.0]),
            OtherBundle("nano", EncoderSize(5.0, 2), 20.0, [2000.0, 4000.0, 3000.0]),
        ],
    )
    counts = [sessions.Count(n, [1.0], [1.0], [1.0], n, 200 + n * 0.04) for n in (100, 10_000)]
    assert plan.speeds(tmp_path) == Speeds(tokens=plan.speeds(tmp_path).tokens)
    reports.write(report("length", by_length), tmp_path)
    reports.write(report("sessions", sessions.Result(20_000, counts)), tmp_path)
    found = plan.speeds(tmp_path)
    assert found.worker is not None
    assert found.worker.rate(20) == pytest.approx(400, rel=1e-3)
    name, nano = found.nano or ("", Cost(0.0, 0.0))
    assert name == "nano"
    assert nano.rate(20.0) == pytest.approx(1 / (100e-6 + 1 / 3000.0))
    assert found.memory is not None
    assert found.memory[0] == pytest.approx(200.0)
    assert found.memory[1] == pytest.approx(0.04 * 2**20)
    assert 15 < found.tokens < 30


def test_the_published_plan_follows_from_its_figures() -> None:
    text = plan.DOCUMENT.read_text("utf-8")
    assert plan.document(text, sizes.load(), plan.speeds(reports.RESULTS)) == text
    assert "not measured" not in plan.document(text, None, SPEEDS).split("<!-- plan -->")[0]
    assert "Not measured." in plan.document(text, None, SPEEDS)


def test_turns_for_the_sizes_alternate_between_all_sessions() -> None:
    turns = sizes.said(5, 4)
    assert [turn.session for turn in turns] == [*range(5)] * 4
    assert [turn.seq for turn in turns] == [n for n in range(4) for _ in range(5)]
    assert {turn.role for turn in turns if turn.seq % 2} == {workload.ROLES[1]}


def test_sizes_are_counted_on_a_real_database() -> None:
    if postgres.binaries() is None:
        _missing("PostgreSQL's server (initdb, postgres) is not installed")
    found = sizes.measure(DEFAULT_BUNDLE, sessions=64, each=8)
    assert found.turns == 256
    assert found.tables["turns"].inserted == found.tables["turns"].kept == 1.0
    assert 1.0 <= found.tables["turn_scores"].kept <= 2.0
    assert found.tables["session_states"].kept == 0.0
    assert found.tables["turn_scores"].kept == found.topics["turn-scores"].messages
    states = found.tables["session_states"].updated
    assert states == 0.25  # four turns of each session per batch; its state is written once
    assert found.topics["session-scores"].messages == states
    assert found.log > states * found.state
    assert 0 < found.state < windows.LARGEST_CHANGES * 2 * found.base
    assert found.base > 500
    assert found.live > sum(topic.messages * topic.bytes for topic in found.topics.values())
    assert found.held == 7.0
    assert 1.5 < found.turn / (2 * 384) < 2  # two vectors of 16-bit floats, compressed
    assert found.turn_in > 200
    stored = sum(found.tables[name].bytes for name in ("turns", "turn_scores"))
    assert found.archived is not None
    assert 0 < found.archived < stored
