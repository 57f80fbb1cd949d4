"""One trace from the producer's header through worker, store and publishing."""

import asyncio
import json
import re
from pathlib import Path

from aiokafka import AIOKafkaProducer

from stream_app.store.database import tables
from stream_app.worker.kafka.topics import client_options
from tests.e2e.service import Service
from tests.store.batches import turn
from tests.tracing.collector import collecting

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT_ID = "00f067aa0ba902b7"
HEADERS = [("traceparent", f"00-{TRACE_ID}-{PARENT_ID}-01".encode())]
WORDS = "zanzibar"


def produce(service: Service, *values: bytes) -> None:
    async def send() -> None:
        client = AIOKafkaProducer(**client_options(service.settings), acks="all")
        await client.start()
        try:
            for value in values:
                topic = service.settings.turns_topic
                await client.send_and_wait(topic, value, key=b"s", headers=HEADERS)
        finally:
            await client.stop()

    asyncio.run(send())


def lines(log: Path) -> list[dict[str, str]]:
    """The worker's log; Faust writes control characters before some lines."""
    found = [line.partition("{") for line in log.read_text("utf-8").splitlines()]
    return [json.loads(begin + rest) for _, begin, rest in found if begin]


def test_one_trace_from_the_producer_to_the_published_messages(service: Service) -> None:
    settings = service.settings
    with collecting() as collector:
        worker = service.start_worker(
            {
                "OTEL_TRACES_EXPORTER": "otlp",
                "RAPPORT_LOG_FORMAT": "json",
                "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
                "OTEL_BSP_SCHEDULE_DELAY": "100000000",
            }
        )
        produce(service, turn(0, text=WORDS), turn(1), b"{" + WORDS.encode())
        service.wait_for(lambda: service.count(tables.turn_scores) == 2, "both turns are scored")
        [letter] = service.messages(settings.dead_letter_topic)
        published = {
            topic: service.messages(topic)
            for topic in (settings.turn_score_topic, settings.session_score_topic)
        }
        worker.terminate()
        assert worker.wait(60) == 0
    of_turns = {span.span_id: span for span in collector.named(f"process {settings.turns_topic}")}
    assert {span.parent_id for span in of_turns.values()} == {PARENT_ID}
    assert {span.service for span in of_turns.values()} == {"rapport-worker"}
    for topic, messages in published.items():
        assert messages, topic
        for message in [*messages, letter]:
            parent = dict(message.headers)["traceparent"].decode().split("-")
            assert (parent[1], parent[2] in of_turns) == (TRACE_ID, True)
    stages = {span.name for span in collector.spans if span.parent_id in of_turns}
    assert stages == {"decode", "encode", "score", "commit", "publish"}
    assert {s.trace_id for s in collector.spans if s.parent_id in of_turns} == {TRACE_ID}

    logged = lines(service.folder / "worker.log")
    [line] = [line for line in logged if line["event"] == "event.dead_letter"]
    assert line["trace_id"] == TRACE_ID
    assert of_turns[line["span_id"]].failed
    [start] = [line for line in logged if line["event"] == "worker.start"]
    assert "trace_id" not in start
    told = repr(collector.spans) + repr(logged)
    assert not re.search(rf"{WORDS}|joan@example", told)
