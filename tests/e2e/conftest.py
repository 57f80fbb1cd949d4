from datetime import UTC, datetime

import pytest

from stream_app.recordings import replay
from stream_app.recordings.event_files import sample_sessions


@pytest.fixture(scope="session")
def sample_log() -> list[bytes]:
    """All sample sessions, interleaved, with invalid, late and repeated events."""
    return [event.value for event in replay.recently_ended_samples(sample_sessions(), "e2e")]


@pytest.fixture(scope="session")
def now() -> datetime:
    return datetime.now(UTC)
