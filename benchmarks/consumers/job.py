"""A consumer's parameters, and the table that it writes."""

import os
import sys
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

SCHEMA: Final = (
    "CREATE TABLE scores (session_id TEXT, seq INTEGER, stage TEXT, scores TEXT, "
    "PRIMARY KEY (session_id, seq, stage))"
)
INSERT: Final = "INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?)"

Row = tuple[str, int, str, bytes]


class Job(Struct, frozen=True):
    """One consumer's parameters; ``database`` is an SQLite file that does not exist yet."""

    brokers: str
    topic: str
    group: str
    database: Path
    bundle: Path
    commits: Path
    session_timeout: float


def job() -> Job:
    """Read this process's job."""
    env = os.environ
    return Job(
        brokers=env["RAPPORT_KAFKA_BROKERS"],
        topic=f"{env['RAPPORT_TOPIC_PREFIX']}.turns",
        group=env["RAPPORT_KAFKA_GROUP"],
        database=Path(env["RAPPORT_DATABASE_URL"].removeprefix("sqlite:///")),
        bundle=Path(env["RAPPORT_BUNDLE"]),
        commits=Path(sys.argv[-1]),
        session_timeout=float(env["RAPPORT_KAFKA_SESSION_TIMEOUT"]),
    )


def as_json(scores: object) -> bytes:
    """Encode a model's scores for the table."""
    return msgspec.json.encode(scores)
