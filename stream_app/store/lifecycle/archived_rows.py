"""A person's rows in the files of the archive; see ``store.subject_access``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import sqlalchemy as sa
from pyarrow import parquet

from stream_app.store.database.tables import archived_sessions
from stream_app.store.lifecycle.subject_access import ANOTHER_PERSON, Subject
from stream_app.store.stream.repository import Store

_PSEUDONYMS = ("speaker", "counsellor", "client")


def of_person(store: Store, folder: Path, fact: str, subject: Subject) -> Iterator[dict[str, Any]]:
    """Rows of the person's archived sessions; of turns, the person's own."""
    known = sa.select(archived_sessions.c.session_id)
    with store.reading() as connection:
        entered = subject.sessions.keys() & set(connection.scalars(known))
    for file in sorted((folder / fact).glob("*/*.parquet")):
        found = parquet.read_table(
            file, partitioning=None, filters=pc.field("session_id").isin(sorted(entered))
        )
        for row in found.to_pylist():
            if row.get("speaker", subject.pseudonym) == subject.pseudonym:
                yield {name: _shown(name, value, subject) for name, value in row.items()}


def _shown(name: str, value: Any, subject: Subject) -> Any:
    other = name in _PSEUDONYMS and value is not None and value != subject.pseudonym
    return ANOTHER_PERSON if other else value
