from datetime import UTC, datetime

import pytest

from stream_app.commands import replay
from stream_app.commands.event_files import sample_sessions


@pytest.fixture(scope="session")
def sample_log() -> list[bytes]:
    """All shipped sessions, interleaved, with their broken, late and repeated events."""
    samples = sample_sessions()
    shown = replay.showing(samples, len(samples), len(samples), 1.0, "e2e")
    return [event.value for event in shown]


@pytest.fixture(scope="session")
def now() -> datetime:
    return datetime.now(UTC)
