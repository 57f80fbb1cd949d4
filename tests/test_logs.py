"""Logging that is configured twice."""

import structlog
from structlog.testing import capture_logs

from stream_app import logs
from stream_app.settings import LogFormat


def test_a_later_configuration_reaches_loggers_that_have_been_used() -> None:
    log = structlog.get_logger("tests.logs")
    logs.configure("WARNING", LogFormat.JSON)
    log.warning("first")
    logs.configure("WARNING", LogFormat.JSON)
    with capture_logs() as logged:
        log.warning("second")
    assert [each["event"] for each in logged] == ["second"]
