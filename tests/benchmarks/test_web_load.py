"""The load of the console: who clicks on what, what is written meanwhile, and the tables."""

from collections import Counter

import pytest

from benchmarks.options import Options
from benchmarks.parts import web
from benchmarks.parts.web import Measured, Result, Spread
from benchmarks.web_load import visits
from benchmarks.web_load.stand_in_scorer import StandInScorer
from benchmarks.web_load.visits import WEIGHTS, Visitor
from servers import haproxy, postgres
from stream_app.contracts.events import SCORED_ROLES
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline, Source, receive
from stream_app.core.session.environment import Policy
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.bundle import DEFAULT_BUNDLE
from stream_app.store.accounts.roles import PersonRole
from tests.conftest import _missing
from tests.store.batches import turn

VISITORS = [
    Visitor(role.value, role.value, f"cookie-{role.value}", ["a/b"]) for role in visits.PEOPLE
]


def test_everybody_clicks_at_the_given_rate_however_long_answers_take() -> None:
    planned = visits.plan(VISITORS, 10_000.0, think=10.0, fragments=2.0, seed=1)
    kinds = Counter(visit.kind for visit in planned)
    fragments = sum(kinds[kind] for kind in visits.FRAGMENTS)
    clicks = len(planned) - fragments
    assert clicks == pytest.approx(1000 * len(VISITORS), rel=0.1)
    assert fragments == pytest.approx(20_000, rel=0.1)
    assert [visit.at for visit in planned] == sorted(visit.at for visit in planned)
    assert set(kinds) == {kind for kinds in WEIGHTS.values() for kind in kinds} | set(
        visits.FRAGMENTS
    )


def test_roles_open_only_pages_that_they_may_and_ids_are_quoted() -> None:
    planned = visits.plan(VISITORS, 2000.0, think=10.0, fragments=0.0, seed=2)
    for visit in planned:
        role = PersonRole(visit.cookie.removeprefix("cookie-"))
        assert visit.kind in WEIGHTS[role]
        assert "a/b" not in visit.path


def test_the_stand_in_has_the_bundles_heads_and_the_core_accepts_its_scores() -> None:
    manifest = bundles.load(DEFAULT_BUNDLE).manifest
    scorer = StandInScorer(manifest, manifest.encoder.hidden_size)
    pipeline = Pipeline(scorer, Policy(WindowPolicy()))
    events = [receive(Source("t", 0, seq), turn(seq)) for seq in range(6)]
    result = pipeline.process(events, {})
    assert len(result.turns) == 6
    for role in SCORED_ROLES:
        scored = next(score for score in result.turn_scores if score.role is role)
        heads = {head.name for head in manifest.heads if role in head.roles}
        named = {*scored.expressed, *scored.perceived, *scored.client} - {"empathy_total"}
        assert named <= heads
        assert named


def measured(processes: int, wanted: int, p99: float) -> Measured:
    found = Spread(200, p99 / 4, p99 / 2, p99, p99 * 1.5)
    return Measured(
        processes=processes,
        wanted=wanted,
        written=float(wanted),
        behind=0.0,
        all=found,
        kinds={"wall": [p99] * 150, "audit trail": [p99 / 4]},
        errors={"wall: 503": 1} if p99 > 300 else {},
        delay=found,
        events=10.0,
        resyncs=0,
        streams_opened=50,
        streams_broken=0,
        sender_late=1.0,
        cpu={"web": 0.5, "database": 0.25, "machine": 1.0},
        memory=[300.0] * processes,
        load=1.0,
    )


def test_the_table_says_where_the_aim_is_missed_and_compares_processes() -> None:
    rounds = [
        measured(count, rate, p99)
        for count, by_rate in ((1, {0: 100.0, 1000: 500.0}), (3, {0: 50.0, 1000: 250.0}))
        for rate, p99 in by_rate.items()
    ]
    shown = web.table(Result(200, 50, 12_000, 15.0, 12.0, rounds, {"wall": (160.0, 40.0, 880.0)}))
    assert "1 process: passed at about 500 turns/s" in shown
    assert "3 processes: kept at all measured rates, up to 1000 turns/s (250 ms)" in shown
    assert "| 1000 | 0.50 | 0.50 | 1.00 |" in shown
    assert "| wall | 160.0 | 40.0 | 880.0 |" in shown
    assert "(62)" in shown  # too few requests for a percentile


@pytest.mark.nightly
@pytest.mark.slow
def test_a_minimal_run_through_proxy_processes_database_and_broker() -> None:
    if haproxy.binary() is None or postgres.binaries() is None:
        _missing("HAProxy and PostgreSQL's server are not installed")
    found = web.measure(Options(DEFAULT_BUNDLE, rounds=1, quick=True))
    (one,) = found.measured
    assert one.errors == {}
    assert one.all.count > 0
    assert one.written > 0.0
    assert one.delay.count > 0
    assert one.events > 0.0
    assert (one.streams_opened, one.streams_broken) == (5, 0)
    assert len(one.memory) == one.processes
    assert one.cpu["web"] > 0.0
    assert set(found.costs) == {kind for kinds in WEIGHTS.values() for kind in kinds} | set(
        visits.FRAGMENTS
    )
