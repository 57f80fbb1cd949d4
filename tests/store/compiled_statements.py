"""One cache of compiled statements for the databases of all tests.

SQLAlchemy keeps such a cache for each engine, and nearly every test opens databases of its own:
compiling their queries again took a quarter of the time of tests/analytics/test_archive.py.
"""

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.util import LRUCache

KEPT = 1500


class SharedCache(LRUCache[Any, Any]):
    """Takes engines with the same kind of database for one: all are opened by `open_engine`."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_by_name(key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_by_name(key), value)


def _by_name(key: tuple[Any, ...]) -> tuple[Any, ...]:
    dialect, *statement = key
    return dialect.name, *statement


def share(patch: pytest.MonkeyPatch) -> None:
    """Make all engines that are created from now on use one cache."""
    shared, create = SharedCache(KEPT), sa.create_engine

    def create_sharing(*arguments: Any, **options: Any) -> sa.Engine:
        engine = create(*arguments, **options)
        engine.update_execution_options(compiled_cache=shared)
        return engine

    patch.setattr(sa, "create_engine", create_sharing)
