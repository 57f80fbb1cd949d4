"""How far a running analysis is, for the person who waits for it.

Analyses say what they do by ``each``; nobody listens unless ``watched`` does.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

Listener = Callable[[str, int, int], None]
"""Receives the name of a step, the number of its parts that are done, and of all its parts."""
Part = TypeVar("Part")
_LISTENER: Final[ContextVar[Listener | None]] = ContextVar("listener", default=None)


@contextmanager
def watched(listener: Listener) -> Iterator[None]:
    """Tell ``listener`` of the analyses within.

    >>> with watched(lambda work, done, parts: print(f"{work}: {done} of {parts}")):
    ...     list(each("measures", ["index", "rating"]))
    measures: 0 of 2
    measures: 1 of 2
    measures: 2 of 2
    ['index', 'rating']
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def each(work: str, parts: Iterable[Part]) -> Iterator[Part]:
    """The parts, one after the other; who asks for the next one has finished the last one."""
    known = list(parts)
    listener = _LISTENER.get()
    for done, part in enumerate(known):
        if listener is not None:
            listener(work, done, len(known))
        yield part
    if listener is not None:
        listener(work, len(known), len(known))
