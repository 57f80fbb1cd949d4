"""Two short chaos runs; `make chaos` runs twenty long ones."""

import pytest

from tests.chaos import faults, traffic
from tests.chaos.run import Size, line, once

SHORT = Size(turns=900, sessions=60, workers=2, faults=5, outage=4.0)


def test_equal_seeds_give_equal_logs_and_plans() -> None:
    assert traffic.log(3, 20, 300) == traffic.log(3, 20, 300)
    assert traffic.log(3, 20, 300) != traffic.log(4, 20, 300)
    assert faults.plan(3, 12) == faults.plan(3, 12)
    assert {fault.name for fault in faults.plan(3, 12)} == set(faults.FAULTS)


@pytest.mark.services
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, 2])
def test_no_row_is_lost_duplicated_or_wrong(seed: int) -> None:
    report = once(seed, SHORT)
    print(line(report))
    assert report.clean, report.examples
    assert report.rows_found == report.rows_expected > 2000
