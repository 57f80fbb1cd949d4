"""A small platform of three months, and what its facts say wherever they are."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from stream_app.analytics.archive import archive, fact_reader
from stream_app.analytics.archive.archive import Moved
from stream_app.store.lifecycle import retention
from stream_app.store.stream.repository import Store
from tests.store import batches

NOW = datetime(2026, 6, 1, tzinfo=UTC)
BEFORE = date(2026, 3, 1)
"""The first month that stays."""
DAYS = ("2026-01-30", "2026-02-03", "2026-02-27", "2026-03-02")
SESSIONS = 8
FACTS = ("fact_session", "fact_turn", "fact_alert", "fact_outcome", "fact_rating")


def session(number: int, day: str) -> list[bytes]:
    name = f"session {number}"
    facts = {"session_id": name, "team": f"team {number % 2}", "domain": "counselling"}
    return [
        *(
            batches.turn(
                seq,
                **facts,
                speaker_id=f"counsellor {number % 3}" if seq % 2 else f"client {number}",
                occurred_at=f"{day}T10:0{seq}:00Z",
            )
            for seq in range(6)
        ),
        batches.outcome(session_id=name, occurred_at=f"{day}T10:30:00Z"),
        batches.end(session_id=name, occurred_at=f"{day}T11:00:00Z"),
    ]


def fill(store: Store) -> None:
    """Ended sessions without text."""
    for number in range(SESSIONS):
        store.commit(batches.process(session(number, DAYS[number % len(DAYS)])))
    purge_texts(store)


def purge_texts(store: Store) -> None:
    for _ in retention.purge(store, NOW + timedelta(days=9999), NOW - timedelta(days=9999), NOW):
        pass


def move(store: Store, folder: Path, before: date = BEFORE) -> list[Moved]:
    return list(archive.archive(store, folder, before, datetime.now(UTC)))


def facts(store: Store, folder: Path | None) -> dict[str, list[dict[str, Any]]]:
    """All rows of the facts, in order."""
    found = {}
    with fact_reader.opened(store, folder) as reader:
        for fact in FACTS:
            reader.load(fact)
            rows = reader.query(f"SELECT * FROM {fact}").to_dict("records")
            found[fact] = sorted((_plain(row) for row in rows), key=repr)
    return found


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """With None for what is missing."""
    return {name: None if row[name] != row[name] else row[name] for name in sorted(row)}
