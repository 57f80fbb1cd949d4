"""Sends spans to a collector by OTLP over HTTP; the settings are OpenTelemetry's own ``OTEL_*``."""

import logging
import os
import re
import threading
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import requests
import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from stream_app import __version__
from stream_app.errors import RapportError

log = structlog.get_logger(__name__)

PROTOCOL: Final = "http/protobuf"
FLUSH_SECONDS: Final = 5.0
"""How long the end of a process waits for the collector."""
LONGEST_ATTRIBUTE: Final = 256
"""Characters; with the limited queue, this limits the memory of spans that wait."""
_VALUE: Final = re.compile(r"%[-.\d]*[a-z]")


class Export:
    """A tracer provider that sends its spans in the background."""

    def __init__(self, service: str) -> None:
        """Open it.

        Raises:
            RapportError: a variable ``OTEL_*`` has a value that cannot be used.
        """
        _check_protocol()
        self._closed = False
        self._exporter = ReportingExporter()
        self._log = _SdkLog(self._exporter)
        self._log.attach()
        try:
            self.provider = TracerProvider(
                resource=_resource(service),
                span_limits=SpanLimits(max_span_attribute_length=LONGEST_ATTRIBUTE),
                shutdown_on_exit=False,  # it would wait for half a minute
            )
            self._exporter.open()
            self._processor = BatchSpanProcessor(self._exporter)
            self.provider.add_span_processor(self._processor)
        except ValueError as problem:
            self._log.detach()
            raise RapportError(f"a setting OTEL_* cannot be used: {problem}") from None

    def close(self) -> None:
        """Send the remaining spans, for at most ``FLUSH_SECONDS``; again, it does nothing."""
        if self._closed:
            return
        self._closed = True
        closing = threading.Thread(target=self.provider.shutdown, name="tracing", daemon=True)
        closing.start()
        closing.join(FLUSH_SECONDS)
        if closing.is_alive():
            log.warning("tracing.not_flushed", waited_s=FLUSH_SECONDS)
            self._exporter.shutdown()
        self._log.detach()


class ReportingExporter(SpanExporter):
    """OpenTelemetry's exporter; reports once that the collector is away, and that it is back."""

    def __init__(self) -> None:
        self.away = False
        self._lost = 0
        self._session = _Session()
        self._exporter: OTLPSpanExporter | None = None

    def open(self) -> None:
        """Read the settings."""
        self._exporter = OTLPSpanExporter(session=self._session)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans, with retries; called in the background."""
        if self._exporter is None:
            return SpanExportResult.FAILURE
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            if self.away:
                log.warning("tracing.collector_back", lost_spans=self._lost)
            self.away, self._lost = False, 0
            return result
        self._lost += len(spans)
        if not self.away:
            self.away = True
            log.warning(
                "tracing.collector_away", collector=self._session.host, reason=self._session.problem
            )
        return result

    def shutdown(self) -> None:
        """Abort what is being sent."""
        if self._exporter is not None:
            self._exporter.shutdown()  # type: ignore[no-untyped-call]
            self._exporter = None

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002
        """Return True: nothing waits here."""
        return True


class _Session(requests.Session):
    """Remembers the collector, and why the last request failed; neither path, headers nor body."""

    host = ""
    problem = ""

    def request(self, method: Any, url: Any, *args: Any, **options: Any) -> Any:
        self.host = urlsplit(str(url)).netloc.rpartition("@")[2]
        try:
            answer = super().request(method, url, *args, **options)
        except Exception as problem:
            self.problem = type(problem).__name__
            raise
        self.problem = f"HTTP {answer.status_code}"
        return answer


class _SdkLog(logging.Handler):
    """Logs each warning of OpenTelemetry's SDK once, without the values in it: some are secrets."""

    def __init__(self, exporter: ReportingExporter) -> None:
        super().__init__(logging.WARNING)
        self._exporter = exporter
        self._seen: set[str] = set()
        self._logger = logging.getLogger("opentelemetry")

    def attach(self) -> None:
        self._logger.handlers[:] = [self]
        self._logger.propagate = False

    def detach(self) -> None:
        self._logger.handlers[:] = []
        self._logger.propagate = True

    def emit(self, record: logging.LogRecord) -> None:
        said = _VALUE.sub("…", str(record.msg))
        exporting = record.name.startswith("opentelemetry.exporter")  # its failures are reported
        if exporting or self._exporter.away or said in self._seen:
            return
        self._seen.add(said)
        log.warning("tracing.sdk", detail=said)


def _check_protocol() -> None:
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if (chosen := os.environ.get(name, "")) not in ("", PROTOCOL):
            raise RapportError(
                f"{name} is {chosen!r}, but spans are sent by {PROTOCOL} only (usually port 4318): "
                "unset it, and set OTEL_EXPORTER_OTLP_ENDPOINT to an address that accepts this"
            )


def _resource(service: str) -> Resource:
    """The process, as OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say, else by ``service``."""
    found = Resource.create({SERVICE_VERSION: __version__})
    if str(found.attributes[SERVICE_NAME]).startswith("unknown_service"):
        found = found.merge(Resource({SERVICE_NAME: service}))
    return found
