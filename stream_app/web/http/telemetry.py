"""FastAPI's own telemetry: off, except for traces of requests that send events.

Paths of other requests contain ids of sessions.
"""

from collections.abc import MutableMapping
from typing import Any, Final

from fastapi.telemetry import TelemetryConfig

from stream_app.tracing.port import Tracing

OFF: Final[TelemetryConfig] = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def traces_of(tracing: Tracing, method: str, path: str) -> TelemetryConfig:
    """Trace the requests of one route if tracing is on."""

    def is_other(scope: MutableMapping[str, Any]) -> bool:
        return (scope.get("method"), scope.get("path")) != (method, path)

    provider = tracing.tracer_provider
    if provider is None:
        return OFF
    return {**OFF, "tracing": True, "tracer_provider": provider, "exclude": is_other}
