"""The port for traces. Its classes trace nothing: they are what runs when tracing is off."""

from collections.abc import MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from stream_app.contracts.cloudevents import RawHeaders
from stream_app.contracts.scores import DeadLetter
from stream_app.core.pipeline.pipeline import Received, Source
from stream_app.core.session.ports import TraceHeaders

_NOTHING: Final = nullcontext()
_NO_HEADERS: Final[AbstractContextManager[TraceHeaders]] = nullcontext(())


class Work:
    """A batch, or the run of a timer: its stages are spans of one trace."""

    def active(self) -> AbstractContextManager[None]:
        """Trace what happens in the ``with`` block as part of it; an error ends it."""
        return _NOTHING

    def end(self) -> None:
        """End its spans."""


class Tracing:
    """Starts spans; the current ones belong to the calling task or thread."""

    @property
    def tracer_provider(self) -> Any:
        """OpenTelemetry's tracer provider, for libraries; None if nothing is traced."""
        return None

    def batch(self, topic: str, size: int) -> Work:
        """Start the span of a batch of ``size`` records."""
        return _NO_WORK

    def timer(self, name: str) -> Work:
        """Start the span of a timer's run; it is only sent if the run fails, or with ``end``."""
        return _NO_WORK

    def record(self, source: Source, headers: RawHeaders) -> AbstractContextManager[TraceHeaders]:
        """Start a record's span, which continues the trace in its headers and ends with the batch.

        The ``with`` block decodes the record. It gets the headers of what follows from the record.
        """
        return _NO_HEADERS

    def stage(self, name: str, records: Sequence[Received] = ()) -> AbstractContextManager[None]:
        """Trace a stage of the current work, and in the traces of these records."""
        return _NOTHING

    def dead_letter(self, letter: DeadLetter) -> AbstractContextManager[TraceHeaders]:
        """Mark a record's span as failed; the ``with`` block publishes the dead letter."""
        return _NO_HEADERS

    def headers(self) -> TraceHeaders:
        """Headers that continue the trace of the current work."""
        return ()

    def sending(self, topic: str, count: int) -> AbstractContextManager[TraceHeaders]:
        """Trace the sending of ``count`` records; the ``with`` block gets their headers."""
        return _NO_HEADERS

    def add_ids(
        self, _logger: Any, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Add the ids of the current trace and span to a log line; a structlog processor."""
        return event

    def close(self) -> None:
        """Send the remaining spans, for a limited time."""


_NO_WORK: Final = Work()
OFF: Final = Tracing()
