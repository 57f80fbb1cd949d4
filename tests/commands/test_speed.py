"""The turns of `rapport demo bench` are accepted, although they are sent without their pauses."""

from datetime import UTC, datetime
from itertools import islice

from stream_app.contracts.events import Turn, decode
from stream_app.demo import speed
from stream_app.settings import Settings


def test_all_turns_are_within_the_tolerance_that_the_worker_gets() -> None:
    now = datetime.now(UTC)
    decoded = [decode(event.value) for event in islice(speed._turns("load"), 1200)]
    ahead = max(
        (turn.occurred_at - now).total_seconds() for turn in decoded if isinstance(turn, Turn)
    )
    assert ahead > Settings().clock_tolerance, "if this fails, the setting is no longer needed"
    assert ahead < speed.SAMPLES_LAST
