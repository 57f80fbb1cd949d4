"""structlog over the standard library's logging, so that Faust and aiokafka speak the same way.

No event of Rapport's carries dialogue text.
"""

import logging
import sys

import structlog

from stream_app.settings import LogFormat

QUIET = ("faust", "mode", "aiokafka", "alembic", "kafka")
SILENT = ("apprise", "httpcore", "httpx", "requests", "urllib3")
"""They log the addresses that notifications go to, and those are secrets."""


def configure(level: str, form: LogFormat) -> None:
    """Send all logs to standard error in one format."""
    shared: list[structlog.typing.Processor] = [
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
            exception_formatter=structlog.dev.plain_traceback,  # Rich's shows locals: the dialogue
        )
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
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
        for name in QUIET:
            logging.getLogger(name).setLevel(logging.WARNING)
