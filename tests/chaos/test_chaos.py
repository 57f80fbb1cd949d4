"""Two short chaos runs with each of the newer faults; `make chaos` runs twenty long ones."""

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from stream_app.worker.kafka.codecs import CODECS
from tests.chaos import batches, clocks, extremes, faults, miskeyed, traffic
from tests.chaos.run import Size, line, once

SHORT = Size(turns=900, sessions=60, workers=2, faults=5, outage=4.0, extremes=40, odd=2)
SENT = {batches.COMMITTED, batches.ABORTED, *CODECS}
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def whole_log(seed: int) -> traffic.Log:
    odd = [
        *clocks.sessions(seed, 2, NOW),
        *extremes.sessions(seed, 30),
        *miskeyed.sessions(seed, 2),
    ]
    return traffic.log(seed, 20, 300, odd)


def test_equal_seeds_give_equal_logs_and_plans() -> None:
    assert whole_log(3) == whole_log(3)
    assert whole_log(3) != whole_log(4)
    assert faults.plan(3, len(faults.FAULTS)) == faults.plan(3, len(faults.FAULTS))
    assert {fault.name for fault in faults.plan(3, len(faults.FAULTS))} == set(faults.FAULTS)


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_has_what_it_must_and_no_backup_of_an_older_topic(seed: int) -> None:
    assert {"erase_sessions"} <= {fault.name for fault in faults.plan(seed, 3, ["erase_sessions"])}
    names = [fault.name for fault in faults.plan(seed, 30)]
    restored = [place for place, name in enumerate(names) if name in faults.RESTORING]
    recreated = [place for place, name in enumerate(names) if name in faults.RECREATING]
    assert max(restored) < min(recreated)


def test_a_log_is_sent_whole_with_every_codec_and_every_kind_of_transaction() -> None:
    log = whole_log(3)
    planned = list(batches.planned(log, random.Random(3)))
    assert [record for batch in planned for record in batch.records] == log
    assert planned == list(batches.planned(log, random.Random(3)))
    happened = Counter(fault for batch in planned for fault in batch.faults)
    assert happened.keys() == SENT
    aborted = [record for batch in planned for record in batch.aborted]
    assert len(aborted) > 20
    assert all(batches.MARK.encode() in record.value for record in aborted)
    assert not any(batches.MARK.encode() in record.value for record in log)


def assert_clean(seed: int, *always: str) -> None:
    report = once(seed, replace(SHORT, always=always))
    print(line(report))
    assert report.clean, report.examples
    assert report.rows_found == report.rows_expected > 2000
    assert report.faults.keys() >= SENT
    assert set(always) <= report.faults.keys() | set(report.skipped)


# Classes, because the tests of a class run in the same process, and these can run side by side.
@pytest.mark.services
@pytest.mark.nightly
@pytest.mark.timeout(900)
class TestRestoredAndRecreated:
    def test_no_row_is_lost_duplicated_or_wrong(self) -> None:
        assert_clean(1, "restore_database", "recreate_topic", "rolling_restart")


@pytest.mark.services
@pytest.mark.timeout(900)
class TestErasedOnAFullDisk:
    def test_no_row_is_lost_duplicated_or_wrong(self) -> None:
        assert_clean(
            2, "restore_under_workers", "erase_sessions", "disk_full", "worker_with_wrong_clock"
        )
