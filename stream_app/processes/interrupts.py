"""SIGTERM as Ctrl-C, so that a stopped command cleans up."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def signals_as_interrupt() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, and Ctrl-C even if the shell has SIGINT ignored.

    SIGTERM is re-raised as SIGINT, which asyncio turns into a cancellation; an exception from the
    handler would be raised in whichever task is running.
    """
    handlers = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: lambda *_: signal.raise_signal(signal.SIGINT),
    }
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
