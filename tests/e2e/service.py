"""The real service for tests: broker, worker processes and database."""

import asyncio
import json
import re
import signal
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache, lru_cache
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.demo import up
from stream_app.inference.bundles import bundle as bundles
from stream_app.processes.child_processes import child_process
from stream_app.recordings import replay
from stream_app.recordings import scoring as score
from stream_app.recordings.event_files import TimedEvent
from stream_app.settings import DEFAULT_BUNDLE, Settings
from stream_app.store.database import tables
from stream_app.worker.kafka import broker
from tests import topic_log
from tests.store import databases

PATIENCE = 300.0
ROUNDING = 0.0101
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
FLOAT_TOLERANCE = 5e-4
"""Vectors are stored as 16-bit floats, so rounding may differ between batches."""
PERCENTILE_TOLERANCE = 0.5
"""For 0 to 100; where the references are densest, an index of 0.0005 more is 1.2 more."""


class Service:
    """Broker and database of one test, with methods to start and stop workers.

    Without `kafka_brokers` in the changes it embeds a broker; without `database_url` it uses an
    SQLite file.
    """

    def __init__(self, folder: Path, **changes: Any) -> None:
        self._stack = ExitStack()
        self.folder = folder
        if "kafka_brokers" not in changes:
            changes["kafka_brokers"] = self._stack.enter_context(broker.running())
        url = changes.setdefault("database_url", SecretStr(databases.sqlite(folder / "rapport.db")))
        self.settings = Settings().model_copy(
            update={
                **up.EMBEDDED_BROKER,
                **databases.keys(url.get_secret_value()),
                "topic_partitions": 3,
                "clock_tolerance": 86_400.0,  # recorded sessions are sent without pauses
                **changes,
            }
        )
        up.prepare(self.settings)
        self.store = bootstrap.store(self.settings)
        self._workers: list[Any] = []

    def close(self) -> None:
        """Stop everything."""
        self._stack.close()
        self.store.close()

    def start_worker(self, more: Mapping[str, str] = MappingProxyType({})) -> Any:
        """Start a worker process, with additional environment variables."""
        output = self.folder / "worker.log"
        worker = self._stack.enter_context(child_process(self.settings, "worker", output, more))
        self._workers.append(worker)
        return worker

    def kill(self, worker: Any) -> None:
        """Kill a worker by SIGKILL."""
        worker.send_signal(signal.SIGKILL)
        worker.wait()

    def send(self, values: list[bytes], per_second: float = 0.0) -> None:
        """Produce events in order, with the session id, if any, as key."""
        events = [
            TimedEvent(i / per_second if per_second else 0.0, key_of(value), value)
            for i, value in enumerate(values)
        ]
        asyncio.run(replay.send(self.settings, events, speed=1.0 if per_second else 0.0))

    def rows(self, table: sa.Table) -> list[Any]:
        """All rows of a table."""
        with self.store.engine.connect() as connection:
            return list(connection.execute(sa.select(table)).mappings())

    def count(self, table: sa.Table) -> int:
        """Number of rows."""
        with self.store.engine.connect() as connection:
            return int(connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0)

    def wait_for(self, condition: Any, what: str) -> None:
        """Poll until ``condition()`` holds; fails with the end of the worker's log."""
        give_up = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > give_up:
                tail = (self.folder / "worker.log").read_text("utf-8", "replace")[-3000:]
                raise AssertionError(f"never happened: {what}\n{tail}")
            time.sleep(0.1)

    def messages(self, topic: str) -> list[Any]:
        """All messages of a topic, after the outbox has been published.

        Dead letters are sent before their batch leaves the outbox.
        """
        self.wait_for(lambda: self.count(tables.outbox) == 0, "the outbox is empty")
        return topic_log.records(self.settings, topic)


def key_of(value: bytes) -> bytes:
    """The session id of an event, which may be invalid."""
    try:
        return str(json.loads(value)["session_id"]).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return b""


PLACES = (
    *("database_url", "health_port", "kafka_brokers", "kafka_group", "topic_prefix"),
    *("master_key", "master_key_file", "pseudonym_key", "pseudonym_key_file", "batch_max"),
)
"""Settings that differ between the services of two tests and change no score."""


def scored_offline(settings: Settings, values: list[bytes], batch: int) -> dict[Any, Any]:
    """The lines of ``rapport score`` for the same events, by key.

    Several tests compare with the same run, which takes seconds.
    """
    same = settings.model_copy(update=dict.fromkeys(PLACES))
    return dict(_scored(same, tuple(values), batch))


@lru_cache(maxsize=2)
def _scored(settings: Settings, values: tuple[bytes, ...], batch: int) -> dict[Any, Any]:
    pipeline = bootstrap.pipeline(settings, bootstrap.scorer(settings))
    out = BytesIO()
    score.run(pipeline, iter(values), out, batch, with_alerts=True, times=settings.plausible_times)
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    keyed = {offline_key(row): row for row in rows}
    assert len(keyed) == len(rows), "a line was written twice"
    return keyed


def offline_key(row: dict[str, Any]) -> Any:
    """The key of a line of ``rapport score``."""
    match row["type"]:
        case "turn_score":
            return ("turn_score", row["session_id"], row["seq"], row["stage"], row["bundle"])
        case "session_score":
            return ("session_score", row["session_id"], row["bundle"])
        case _:
            return ("alert", row["alert_id"])


def stored(service: Service) -> dict[Any, Any]:
    """The database's rows in the format of ``rapport score``."""
    found: dict[Any, Any] = {}
    points: dict[str, list[Any]] = {}
    for row in service.rows(tables.turn_scores):
        found["turn_score", row["session_id"], row["seq"], row["stage"], row["bundle"]] = {
            name: row[name]
            for name in (
                "role",
                "late",
                "truncated",
                "expressed",
                "perceived",
                "client",
                "confidence",
                "abstained",
                "low_empathy_risk",
            )
        }
        if row["low_empathy_risk"] is not None:
            points.setdefault(row["session_id"], []).append([row["seq"], row["low_empathy_risk"]])
    for row in service.rows(tables.session_scores):
        values = {name: value for name, value in row.items() if not name.endswith("_at")}
        del values["activity_hour"]  # that of last_activity_at
        interval = [values.pop("empathy_low"), values.pop("empathy_high")]
        values["empathy_interval"] = None if None in interval else interval
        values["risk_by_turn"] = sorted(points.get(row["session_id"], []))
        found["session_score", row["session_id"], row["bundle"]] = values
    for row in service.rows(tables.alerts):
        values = {name: value for name, value in row.items() if not name.endswith("_at")}
        found["alert", row["alert_id"]] = values
    return found


def differences(offline: dict[Any, Any], database: dict[Any, Any]) -> list[str]:
    """Differences between the database and the offline run."""
    found = [f"lost: {key}" for key in offline.keys() - database.keys()]
    found += [f"not in the offline run: {key}" for key in database.keys() - offline.keys()]
    for key in offline.keys() & database.keys():
        expected = dict(offline[key])
        if "risk_by_turn" in expected:
            expected["risk_by_turn"] = sorted(expected["risk_by_turn"])
        for name, value in database[key].items():
            if name == "abstained":
                same = _equal_abstentions(expected, database[key])
            elif name == "reason":
                same = _equal_reasons(expected[name], value)
            elif name == "values":
                same = _numbers_alike(expected[name], value)
            elif name == "empathy_percentile":
                same = _equal_percentiles(expected[name], value)
            else:
                same = alike(expected[name], value)
            if not same:
                found.append(f"{key} {name}: {expected[name]} ≠ {value}")
    return found


def _equal_reasons(one: str, other: str) -> bool:
    """Whether the words are equal; the last digit of rounded numbers may differ."""
    numbers = [[float(n) for n in _NUMBER.findall(text)] for text in (one, other)]
    words = [_NUMBER.sub("#", text) for text in (one, other)]
    return words[0] == words[1] and all(
        abs(a - b) <= ROUNDING for a, b in zip(*numbers, strict=True)
    )


def _equal_percentiles(one: float | None, other: float | None) -> bool:
    return one == other or abs((one or 0.0) - (other or 0.0)) <= PERCENTILE_TOLERANCE


def _numbers_alike(one: dict[str, float], other: dict[str, float]) -> bool:
    return one.keys() == other.keys() and all(
        abs(one[name] - other[name]) <= FLOAT_TOLERANCE for name in one
    )


def _equal_abstentions(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both are equal, except for heads with a probability close to their threshold."""
    heads = set(one["abstained"]) ^ set(other["abstained"])
    return all(
        abs(_surest(row, head) - _thresholds()[head]) <= FLOAT_TOLERANCE
        for head in heads
        for row in (one, other)
    )


def _surest(row: dict[str, Any], head: str) -> float:
    values = {**row["expressed"], **row["client"]}[head]
    return max(values["probabilities"] if "probabilities" in values else values.values())


@cache
def _thresholds() -> dict[str, float]:
    return {head.name: head.abstain_below for head in bundles.load(DEFAULT_BUNDLE).manifest.heads}


def alike(one: Any, other: Any) -> bool:
    """Whether both are equal, with numbers within the promised tolerance."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(alike(one[k], other[k]) for k in one)
        case list(), list():
            return len(one) == len(other) and all(map(alike, one, other))
        case float(), float() | int():
            return abs(one - other) <= FLOAT_TOLERANCE
        case _:
            return bool(one == other)
