"""Keeps the names to choose from in a filter for half a minute.

Reading them costs the database more than the page's list: they are searched for in all sessions
that a person may read. They are kept by access scope, so nobody gets those of another scope.
"""

import threading
from collections.abc import Callable
from time import monotonic
from typing import Final
from weakref import WeakKeyDictionary

from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store

KEEP_SECONDS: Final = 30.0
MAX_KEPT: Final = 500
_Key = tuple[str, Scope]
_kept: WeakKeyDictionary[Store, dict[_Key, tuple[float, list[str]]]] = WeakKeyDictionary()
_lock = threading.Lock()


def choices(
    store: Store, scope: Scope, name: str, read: Callable[[Store, Scope], list[str]]
) -> list[str]:
    """The names that ``read`` returns for this scope, or returned recently under this name."""
    key, now = (name, scope), monotonic()
    kept = _kept.setdefault(store, {})
    entry = kept.get(key)
    if entry is None or now - entry[0] > KEEP_SECONDS:
        entry = now, read(store, scope)
        with _lock:
            if len(kept) >= MAX_KEPT:
                kept.clear()
            kept[key] = entry
    return entry[1]
