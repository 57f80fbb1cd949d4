"""Tracing of a command that runs until a signal stops it."""

from collections.abc import Iterator
from contextlib import contextmanager

from stream_app import bootstrap, logs
from stream_app.settings import Settings
from stream_app.tracing.port import Tracing


@contextmanager
def traced(settings: Settings, service: str) -> Iterator[Tracing]:
    """Trace what happens in the ``with`` block if OTEL_TRACES_EXPORTER is set; log lines get ids.

    Raises:
        RapportError: a variable ``OTEL_*`` has a value that cannot be used.
    """
    tracing = bootstrap.tracing(settings, service)
    logs.add_processor(tracing.add_ids)
    try:
        yield tracing
    finally:
        tracing.close()
