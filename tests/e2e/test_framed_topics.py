"""Workers with a real schema registry: framed topics, in and out."""

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from rich.console import Console

from servers import schema_registry
from stream_app.commands.events import replay
from stream_app.commands.events.event_files import TimedEvent
from stream_app.commands.service import watch
from stream_app.commands.service.child_processes import environment
from stream_app.contracts import scores
from stream_app.contracts.cloudevents import outgoing_headers
from stream_app.contracts.framing import framed, schema_id, unframed
from stream_app.settings import Settings
from stream_app.store.database import tables
from stream_app.worker.batches.dead_letters import ids_about, read
from stream_app.worker.kafka.schema_registry import published_schemas
from tests import topic_log
from tests.conftest import NewService, _missing
from tests.e2e.service import Service, key_of
from tests.store.batches import turn

HOSTILE_ID = 2**32 - 1
AVRO = framed(7, b"\x06abc\x00\x02")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Address of a registry, and a call that stops it."""
    with ExitStack() as stack:
        try:
            url = stack.enter_context(schema_registry.running(tmp_path))
        except schema_registry.RegistryMissing as problem:
            _missing(str(problem))
        yield url, stack.close


def send(service: Service, values: list[bytes]) -> None:
    """Produce framed and bare events with the session id as key."""
    events = [TimedEvent(0.0, key_of(unframed(value)), value) for value in values]
    asyncio.run(replay.send(service.settings, events, speed=0.0))


def published(service: Service) -> dict[str, list[Any]]:
    service.wait_for(lambda: service.count(tables.outbox) == 0, "the outbox is empty")
    return {
        topic: topic_log.records(service.settings, topic)
        for topic in published_schemas(service.settings)
    }


def check(records: dict[str, list[Any]], schemas: dict[int, Any]) -> None:
    """Every value is framed with the id of a schema that it satisfies; headers are unchanged."""
    for topic, found in records.items():
        for record in found:
            number = schema_id(record.value)
            assert number is not None, topic
            payload = unframed(record.value)
            jsonschema.validate(json.loads(payload), schemas[number])
            kind = schemas[number]["$id"].split(":")[2]
            assert list(record.headers) == outgoing_headers(kind, payload)
            assert record.key == scores.decode(record.value).session_id.encode()


def test_a_worker_frames_and_reads_frames_with_and_without_the_registry(
    registry: tuple[str, Callable[[], None]], new_service: NewService
) -> None:
    url, stop_registry = registry
    service = new_service(schema_registry_url=url)
    service.start_worker()
    send(service, [turn(0), framed(1, turn(1)), AVRO, framed(HOSTILE_ID, turn(2)), turn(3)])
    service.wait_for(lambda: service.count(tables.turns) == 4, "four turns are stored")
    before = published(service)
    with httpx.Client(base_url=url) as client:
        subjects = sorted(client.get("/subjects").json())
        assert subjects == sorted(f"{topic}-value" for topic in before)
        ids = {schema_id(record.value) for found in before.values() for record in found}
        answers = {number: client.get(f"/schemas/ids/{number}").json() for number in ids}
    assert {answer["schemaType"] for answer in answers.values()} == {"JSON"}
    schemas = {number: json.loads(answer["schema"]) for number, answer in answers.items()}
    check(before, schemas)
    assert len(before[service.settings.turn_score_topic]) >= 4
    [letter] = asyncio.run(read(service.settings))
    assert (letter.raw, letter.letter.reason) == (AVRO, "not-json")
    assert "framed with schema id 7" in letter.letter.detail

    stop_registry()
    hostile = [framed(number, turn(number, session_id="other")) for number in range(40)]
    send(service, hostile)
    service.wait_for(lambda: service.count(tables.turns) == 44, "turns after it was lost")
    check(published(service), schemas)


def test_dead_letters_and_the_terminal_understand_frames(
    registry: tuple[str, Callable[[], None]], new_service: NewService
) -> None:
    service = new_service(schema_registry_url=registry[0])
    service.start_worker()
    conflict = framed(3, turn(0, text="other words"))
    send(service, [turn(0), turn(1), conflict])
    service.wait_for(lambda: service.count(tables.turns) == 2, "two turns are stored")
    service.wait_for(lambda: len(asyncio.run(read(service.settings))) == 1, "a dead letter")
    [letter] = asyncio.run(read(service.settings))
    assert letter.raw == conflict
    session = json.loads(turn(0))["session_id"]
    about = asyncio.run(ids_about(service.settings, [session, "other"]))
    assert about == {session: {letter.letter.dead_letter_id}, "other": set()}
    published(service)
    assert "provisional" in asyncio.run(watched(service.settings))


async def watched(settings: Settings) -> str:
    """What `rapport watch` prints in a few seconds."""
    console = Console(file=io.StringIO(), width=200)
    watching = asyncio.create_task(watch.show(settings, console, from_start=True))
    for _ in range(200):
        await asyncio.sleep(0.1)
        if (printed := console.file.getvalue()) or watching.done():  # type: ignore[attr-defined]
            break
    watching.cancel()
    await asyncio.wait([watching])
    assert watching.cancelled(), watching.exception()
    return str(printed)


def test_a_worker_does_not_start_with_a_registry_that_refuses(new_service: NewService) -> None:
    service = new_service(schema_registry_url="https://me:secret@registry.example")
    done = subprocess.run(
        [sys.executable, "-m", "stream_app.cli", "worker"],
        env=environment(service.settings) | {"PATH": "/usr/bin", "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("rapport: RAPPORT_SCHEMA_REGISTRY_URL must not contain a login")
    assert "secret" not in last
