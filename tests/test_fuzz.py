"""A short run of `make fuzz`."""

import pytest

from tests import fuzz


@pytest.mark.slow
def test_every_mutated_message_is_accounted_for() -> None:
    result = fuzz.run(6000, seed=5)
    assert sum(result.fates.values()) == result.messages
    assert result.quoted == 0
    assert result.fates["accepted"] > 800
    assert result.fates["language"] > 50
    assert min(result.fates[fate] for fate in ("edited", "deleted", "early-delete")) > 0
    assert len(result.reasons) >= 6
    assert result.memory_at_end < 1.5 * result.memory_at_tenth
