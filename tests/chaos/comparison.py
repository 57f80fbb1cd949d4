"""Compares the database and the dead letters with the truth."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from stream_app.analytics.rollups import rollups
from stream_app.contracts.scores import DEAD_LETTER_HEADER
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from tests.chaos import miskeyed
from tests.chaos.truth import Letter, Truth
from tests.e2e.service import Service, differences, stored
from tests.store import reading

_ROLLUPS = (
    tables.rollup_sessions,
    tables.rollup_counsellors,
    tables.rollup_cells,
    tables.rollup_means,
)
_BY_CLOCK = {"stored_at"}
"""Columns with the time of processing."""


@dataclass
class Comparison:
    """Sentences about what is wrong, and the numbers of compared rows."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    expected: int = 0
    found: int = 0

    def add(self, wrong: list[str]) -> None:
        """Sort sentences by how they begin."""
        for line in wrong:
            if line.startswith("lost:"):
                self.lost.append(line)
            elif line.startswith("not in the "):
                self.doubled.append(line)
            else:
                self.different.append(line)


def compare(service: Service, truth: Truth, erased: set[str]) -> Comparison:
    """Compare every row of turns, scores, alerts, outcomes, roll-ups and dead letters."""
    result = Comparison()
    database = {key: row for key, row in stored(service).items() if not _is_miskeyed(key, row)}
    result.add(differences(truth.scored, database))
    turns = _keyed(service.store, tables.turns, ("session_id", "seq"))
    result.add(list(_unequal("turn", truth.turns, turns)))
    outcomes = _keyed(service.store, tables.outcomes, ("outcome_id",))
    result.add(list(_unequal("outcome", truth.outcomes, outcomes)))
    result.add(miskeyed.differences(truth.miskeyed, service))
    letters, expected = _letters(service, erased), _without(truth.letters, erased)
    result.add([f"lost: dead letter {letter[:2]}" for letter in expected - letters])
    result.add([f"not in the log: dead letter {letter[:2]}" for letter in letters - expected])
    result.add(_left_of(erased, service.store))
    result.add(_wrong_rollups(service.store))
    for part in (truth.scored, truth.turns, truth.outcomes, expected, truth.miskeyed):
        result.expected += len(part)
    of_miskeyed = sum(_is_miskeyed((), row) for row in service.rows(tables.turns))
    for rows in (database, turns, outcomes, letters):
        result.found += len(rows)
    result.found += of_miskeyed
    return result


def _is_miskeyed(key: Any, row: Any) -> bool:
    name = row["session_id"] if "session_id" in row else key[1]
    return miskeyed.is_miskeyed(name)


def _keyed(store: Store, table: sa.Table, names: tuple[str, ...]) -> dict[Any, Any]:
    found = {}
    for row in reading.rows(store, table):
        if not miskeyed.is_miskeyed(row["session_id"]):
            key = tuple(row[name] for name in names)
            found[key if len(key) > 1 else key[0]] = row
    return found


def _unequal(what: str, truth: dict[Any, Any], database: dict[Any, Any]) -> Iterator[str]:
    for key in truth.keys() - database.keys():
        yield f"lost: {what} {key}"
    for key in database.keys() - truth.keys():
        yield f"not in the log: {what} {key}"
    for key in truth.keys() & database.keys():
        for name, value in truth[key].items():
            if name not in _BY_CLOCK and value != database[key][name]:
                yield f"{what} {key} {name}: {str(value)[:60]} ≠ {str(database[key][name])[:60]}"


def _letters(service: Service, erased: set[str]) -> set[Letter]:
    found = {
        (
            record.key.decode(),
            json.loads(dict(record.headers)[DEAD_LETTER_HEADER])["reason"],
            record.value,
        )
        for record in service.messages(service.settings.dead_letter_topic)
        if record.value is not None
    }
    return _without(found, erased)


def _without(letters: set[Letter], erased: set[str]) -> set[Letter]:
    """Leave out dead letters of erased sessions: some were sent before, some after."""
    names = [f'"{name}"'.encode() for name in erased]
    return {letter for letter in letters if not any(name in letter[2] for name in names)}


def _left_of(erased: set[str], store: Store) -> list[str]:
    found = []
    for table in tables.metadata.sorted_tables:
        if "session_id" in table.c:
            query = sa.select(table.c.session_id).where(table.c.session_id.in_(erased)).distinct()
            with store.reading() as connection:
                left = connection.scalars(query).all()
            found += [f"not in the log any more: {name} in {table.name}" for name in left]
    return found


def _wrong_rollups(store: Store) -> list[str]:
    """Compare the roll-ups that were updated during the run with a rebuild."""
    list(rollups.update(store))
    updated = {table.name: _contents(store, table) for table in _ROLLUPS}
    rollups.rebuild(store)
    found = []
    for table in _ROLLUPS:
        rebuilt = _contents(store, table)
        if rebuilt != updated[table.name]:
            found.append(f"{table.name}: {len(updated[table.name])} rows ≠ {len(rebuilt)} rows")
    return found


def _contents(store: Store, table: sa.Table) -> list[str]:
    return sorted(map(repr, reading.stored_rows(store, table)))
