"""structlog on top of standard logging, so that Faust and aiokafka have the same log format.

Rapport never logs dialogue text.
"""

import logging
import sys

import structlog

from stream_app.settings import LogFormat

QUIET = ("faust", "mode", "aiokafka", "alembic", "kafka")
SILENT = ("apprise", "httpcore", "httpx", "requests", "urllib3")
"""These libraries log the URLs of notification targets, which are secrets."""

_PROCESSORS: list[structlog.typing.Processor] = []
_SHARED: list[structlog.typing.Processor] = []
"""Processors of Rapport's lines, and those of them that other libraries' lines pass, too.

Both are changed in place, because loggers that have been used keep the list itself.
"""


def configure(level: str, form: LogFormat) -> None:
    """Write all logs to standard error in this format."""
    _SHARED[:] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form is LogFormat.JSON
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            exception_formatter=structlog.dev.plain_traceback,  # Rich would print the dialogue
        )
    )
    _PROCESSORS[:] = [*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter]
    structlog.configure(
        processors=_PROCESSORS,
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_SHARED,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info
                if form is LogFormat.JSON
                else structlog.processors.StackInfoRenderer(),
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in SILENT:
        silent = logging.getLogger(name)
        silent.handlers[:] = [logging.NullHandler()]
        silent.propagate = False
    if level != "DEBUG":
        logging.disable(logging.DEBUG)  # Faust formats debug lines for every event: 13-23 % of time
    for name in QUIET:  # their debug lines quote whole records, which hold dialogue
        logging.getLogger(name).setLevel(logging.INFO if level == "DEBUG" else logging.WARNING)


def add_processor(processor: structlog.typing.Processor) -> None:
    """Let all lines pass another processor, until the next ``configure``."""
    for processors in (_SHARED, _PROCESSORS):
        processors.insert(0, processor)
