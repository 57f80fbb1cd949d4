"""A recorded flow gives database and topics what the store's commit and ``publish`` give them."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa
from aiokafka import AIOKafkaProducer

from benchmarks.web_load import recorded_messages
from benchmarks.web_load.recorded_commits import Recorder, RecordingStore, Replay, ReplayFailed
from benchmarks.web_load.recorded_messages import RecordingProducer
from servers.postgres import Server
from stream_app.core.session.ports import Message
from stream_app.store.database import tables
from stream_app.store.stream import outbox
from stream_app.worker.kafka.publishing import publish
from stream_app.worker.kafka.topics import client_options
from tests.e2e.service import Service
from tests.store import databases
from tests.store.batches import BUNDLE, prepare, process, turn

ROUNDS = 3
SESSIONS = 8


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    made = databases.postgresql(server)
    yield made
    server.drop(made)


@pytest.fixture
def store(url: str) -> Iterator[RecordingStore]:
    opened = databases.open_store(url)
    made = RecordingStore(opened.engine, lambda: datetime.now(UTC), opened.secrets)
    prepare(made)
    yield made
    opened.close()


def record(store: RecordingStore, recorder: Recorder) -> list[bytes]:
    """Commit the turns of new sessions, then further turns of the same."""
    found = []
    for number in range(ROUNDS):
        names = [f"s{each}" for each in range(SESSIONS)]
        said = [
            turn(2 * number + each, session_id=name, speaker_id=f"{name}/{each}")
            for name in names
            for each in (0, 1)
        ]
        result = process(said, store.load_states(names, BUNDLE))
        recorder.take()
        store.commit(result, [Message("t", name.encode(), f"{number}".encode()) for name in names])
        found.append(recorder.take())
    return found


def rows(store: RecordingStore) -> dict[str, list[Any]]:
    """All rows of all tables, without the ids of outbox rows, which the database counts."""
    found = {}
    with store.reading() as connection:
        for table in tables.metadata.sorted_tables:
            columns = [c for c in table.c if c is not tables.outbox.c.id]
            found[table.name] = sorted(map(repr, connection.execute(sa.select(*columns)).all()))
    return found


def test_the_same_rows_are_written_in_as_many_transactions(store: RecordingStore, url: str) -> None:
    before = rows(store)
    with store.recording() as recorder:
        commits = record(store, recorder)
        expected = rows(store)
    assert rows(store) == before
    assert len(expected["turns"]) == 2 * ROUNDS * SESSIONS
    assert len(expected["window_turns"]) > len(expected["sessions"]) == SESSIONS

    replay = Replay(url, recorder.statements)
    ids = [replay.commit(each) for each in commits]
    assert rows(store) == expected
    with store.reading() as connection:
        transactions = connection.execute(sa.text("SELECT DISTINCT xmin FROM turns")).all()
        stored = connection.execute(sa.select(tables.outbox.c.messages)).scalars().all()
    assert len(transactions) == ROUNDS
    assert {len(outbox.unpack(each)) for each in stored} == {SESSIONS}

    for each in ids:
        assert each is not None
        replay.delete_outbox_entry(each)
    assert rows(store) == {**expected, "outbox": []}
    replay.close()


def test_a_commit_that_changes_other_rows_than_the_recorded_one_fails(
    store: RecordingStore, url: str
) -> None:
    with store.recording() as recorder:
        _, second, _ = record(store, recorder)
    replay = Replay(url, recorder.statements)
    with pytest.raises(ReplayFailed, match="rows instead of"):  # the first has not been replayed
        replay.commit(second)
    replay.close()


def test_a_refused_statement_fails_with_the_databases_words(
    store: RecordingStore, url: str
) -> None:
    with store.recording() as recorder:
        first, *_ = record(store, recorder)
    replay = Replay(url, recorder.statements)
    with store.transaction() as connection:
        connection.exec_driver_sql("ALTER TABLE turns ADD CHECK (seq < 0)")
    with pytest.raises(ReplayFailed, match="check constraint"):
        replay.commit(first)
    assert rows(store)["turns"] == []
    replay.close()


def test_the_topics_get_the_same_records(service: Service) -> None:
    settings = service.settings
    topics = settings.turn_score_topic, settings.session_score_topic

    def of(topic: str) -> list[Message]:
        return [
            Message(topic, f"s{n % 17}".encode(), f'{{"n":{n}}}'.encode(), "turn_score")
            for n in range(300)
        ]

    async def send() -> int:
        producer = AIOKafkaProducer(**client_options(settings), acks="all")
        kept = RecordingProducer(producer, settings.topic_partitions)
        await producer.start()
        try:
            await publish(producer, of(topics[0]))
            await publish(kept, of(topics[1]))
            return await recorded_messages.send(producer, kept.take())
        finally:
            await producer.stop()

    assert asyncio.run(send()) == 300
    found = []
    for topic in topics:
        by_partition = defaultdict(list)
        for record in service.messages(topic):
            by_partition[record.partition].append((record.key, record.value, record.headers))
        found.append(dict(by_partition))
    assert found[0] == found[1]
    assert sum(map(len, found[0].values())) == 300
