"""OpenTelemetry as the adapter: spans by its conventions for messaging, W3C headers on records.

::

    producer's trace                  process turns ── decode, encode, score, commit, publish
                                            ╎ links to the batch          ╎ link to its stages
    receive turns (links to producers) ── decode, encode, load, score, commit, publish

No span has text, or the id of a session or a person. Faust's own sensor is not used: its span ends
when the stream hands out the next record, and has the record's key, which is the session's id.
"""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import time_ns
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from stream_app import __version__
from stream_app.contracts.cloudevents import RawHeaders
from stream_app.contracts.scores import DeadLetter
from stream_app.core.pipeline.pipeline import Received, Source
from stream_app.core.session.ports import TraceHeaders
from stream_app.tracing.export import Export
from stream_app.tracing.port import Tracing, Work

LONGEST_HEADER: Final = 512
"""Bytes; longer headers are ignored. W3C Trace Context asks for at least this much."""
NEW_TRACE: Final = Context()
_W3C: Final = TraceContextTextMapPropagator()
_working: ContextVar["OtlpWork | None"] = ContextVar("working", default=None)


class OtlpWork(Work):
    """The spans of a batch, or of a timer's run."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.records: dict[Source, Span] = {}

    @contextmanager
    def active(self) -> Iterator[None]:
        """Trace what happens in the ``with`` block as part of it; an error ends it."""
        before = _working.set(self)
        try:
            with _current(self.span):
                yield
        except BaseException as problem:
            for span in (*self.records.values(), self.span):
                _fail(span, type(problem).__name__)
            self.end()
            raise
        finally:
            _working.reset(before)

    def end(self) -> None:
        """End its spans."""
        for span in self.records.values():
            span.end()
        self.records.clear()
        self.span.end()


class OtlpTracing(Tracing):
    """Starts spans and sends them to a collector."""

    def __init__(self, service: str, group: str) -> None:
        """Open it; ``group`` is the consumer group.

        Raises:
            RapportError: a variable ``OTEL_*`` has a value that cannot be used.
        """
        self._export = Export(service)
        self._tracer = self._export.provider.get_tracer("rapport", __version__)
        self._group = group

    @property
    def tracer_provider(self) -> TracerProvider:
        """OpenTelemetry's tracer provider."""
        return self._export.provider

    def batch(self, topic: str, size: int) -> OtlpWork:
        """Start the span of a batch of ``size`` records."""
        span = self._tracer.start_span(
            f"receive {topic}",
            NEW_TRACE,
            SpanKind.CLIENT,
            {**self._about("receive", topic), "messaging.batch.message_count": size},
        )
        return OtlpWork(span)

    def timer(self, name: str) -> OtlpWork:
        """Start the span of a timer's run; a span that does not end is not sent."""
        return OtlpWork(self._tracer.start_span(name, NEW_TRACE))

    @contextmanager
    def record(self, source: Source, headers: RawHeaders) -> Iterator[TraceHeaders]:
        """Start a record's span; the ``with`` block decodes the record."""
        work = _working.get()
        if work is None:
            yield ()
            return
        parent = parent_of(headers)
        started = time_ns()
        batch = work.span.get_span_context()
        span = self._tracer.start_span(
            f"process {source.topic}",
            parent,
            SpanKind.CONSUMER,
            {
                **self._about("process", source.topic),
                "messaging.destination.partition.id": str(source.partition),
                "messaging.kafka.offset": source.offset,
            },
            [Link(batch)],
            started,
        )
        work.records[source] = span
        if span.is_recording():
            producer = trace.get_current_span(parent).get_span_context()
            work.span.add_link(producer if producer.is_valid else span.get_span_context())
        with _current(span):
            yield _headers(span)
        self._add_to_record(span, "decode", started, time_ns())

    @contextmanager
    def stage(self, name: str, records: Sequence[Received] = ()) -> Iterator[None]:
        """Trace a stage of the current work, and in the traces of these records."""
        work = _working.get()
        if work is None:
            yield
            return
        started = time_ns()
        span = self._tracer.start_span(name, trace.set_span_in_context(work.span, NEW_TRACE))
        failed = None
        try:
            with _current(span):
                yield
        except BaseException as problem:
            failed = type(problem).__name__
            _fail(span, failed)
            raise
        finally:
            ended = time_ns()
            span.end(ended)
            for received in records:
                if (traced := work.records.get(received.source)) is not None:
                    self._add_to_record(traced, name, started, ended, span, failed)

    def _add_to_record(
        self,
        record: Span,
        name: str,
        started: int,
        ended: int,
        batch: Span | None = None,
        failed: str | None = None,
    ) -> None:
        """Add a stage to a record's trace, with a link to the stage of the whole batch."""
        if not record.is_recording():
            return
        links = () if batch is None else (Link(batch.get_span_context()),)
        parent = trace.set_span_in_context(record, NEW_TRACE)
        span = self._tracer.start_span(name, parent, links=links, start_time=started)
        if failed is not None:
            _fail(span, failed)
        span.end(ended)

    @contextmanager
    def dead_letter(self, letter: DeadLetter) -> Iterator[TraceHeaders]:
        """Mark a record's span as failed; the ``with`` block publishes the dead letter."""
        work = _working.get()
        source = Source(letter.topic, letter.partition, letter.offset)
        span = None if work is None else work.records.get(source)
        if span is None:
            yield ()
            return
        _fail(span, letter.reason)
        with _current(span):
            yield _headers(span)

    def headers(self) -> TraceHeaders:
        """Headers that continue the trace of the current work."""
        work = _working.get()
        return () if work is None else _headers(work.span)

    @contextmanager
    def sending(self, topic: str, count: int) -> Iterator[TraceHeaders]:
        """Trace the sending of ``count`` records; the ``with`` block gets their headers."""
        about: dict[str, str | int] = {
            "messaging.system": "kafka",
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": topic,
            "messaging.batch.message_count": count,
        }
        span = self._tracer.start_span(f"send {topic}", None, SpanKind.PRODUCER, about)
        try:
            with _current(span):
                yield _headers(span)
        except BaseException as problem:
            _fail(span, type(problem).__name__)
            raise
        finally:
            span.end()

    def add_ids(
        self, _logger: Any, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Add the ids of the current trace and span to a log line; a structlog processor."""
        found = trace.get_current_span().get_span_context()
        if found.is_valid:
            event["trace_id"] = trace.format_trace_id(found.trace_id)
            event["span_id"] = trace.format_span_id(found.span_id)
        return event

    def close(self) -> None:
        """Send the remaining spans, for a limited time."""
        self._export.close()

    def _about(self, operation: str, topic: str) -> dict[str, str | int]:
        return {
            "messaging.system": "kafka",
            "messaging.operation.name": operation,
            "messaging.operation.type": operation,
            "messaging.destination.name": topic,
            "messaging.consumer.group.name": self._group,
        }


def parent_of(headers: RawHeaders) -> Context:
    """The trace context in a record's headers; empty if there is none, or more than one.

    Headers come from outside: whatever they contain, this does not raise.
    """
    found: dict[str, list[str]] = {}
    for name, value in headers.items() if isinstance(headers, Mapping) else headers or ():
        if name in _W3C.fields and isinstance(value, bytes) and len(value) <= LONGEST_HEADER:
            found.setdefault(name, []).append(value.decode("ascii", "replace"))
    if len(found.get("traceparent", ())) != 1:
        return NEW_TRACE
    return _W3C.extract(found, NEW_TRACE)


def _headers(span: Span) -> TraceHeaders:
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, trace.set_span_in_context(span, NEW_TRACE))
    return tuple((name, value.encode()) for name, value in carrier.items())


@contextmanager
def _current(span: Span) -> Iterator[None]:
    """Make a span current. Messages of exceptions are not recorded: they may quote values."""
    with trace.use_span(span, record_exception=False, set_status_on_exception=False):
        yield


def _fail(span: Span, reason: str) -> None:
    if span.is_recording():
        span.set_attribute("error.type", reason)
        span.set_status(StatusCode.ERROR)
