"""What a turn costs in bytes, and the table of it."""

from benchmarks import sizes
from benchmarks.load import workload
from benchmarks.sizes import Sizes, Table, Topic
from servers import postgres
from stream_app.inference.bundles.bundle import DEFAULT_BUNDLE
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
        "outbox": Table(0.01, 0.0, 0.01, 0.0, 0.0),
    },
    log=10_000.0,
    state=2_000.0,
    held=7.0,
    turn=1_600.0,
    archived=100.0,
)


def test_the_table_has_what_stays_and_its_sum() -> None:
    shown = sizes.shown(SIZES)
    assert "| topic `turn-scores` | 2.00 messages | 2,000 |" in shown
    assert "| all rows that stay, with indexes |  | 2,200 |" in shown
    assert "outbox" not in shown


def test_the_document_shows_the_stored_sizes() -> None:
    text = sizes.DOCUMENT.read_text("utf-8")
    found = sizes.load()
    assert found is not None
    assert sizes.document(text, found) == text


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
    assert 500 < found.state < 3000
    assert found.held == 7.0
    assert 2 < found.turn / (2 * 384) < 2.5  # two vectors of 16-bit floats, and the rest
    assert found.turn_in > 200
    stored = sum(found.tables[name].bytes for name in ("turns", "turn_scores"))
    assert found.archived is not None
    assert 0 < found.archived < stored
