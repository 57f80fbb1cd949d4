"""Traces of batches: from the producer's headers to those of the published messages."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from stream_app.contracts.scores import DEAD_LETTER_HEADER
from stream_app.core.session.ports import Message
from stream_app.errors import StoreUnavailable
from stream_app.store.stream import outbox
from stream_app.store.stream.repository import Store
from stream_app.tracing.otlp import OtlpTracing
from stream_app.tracing.port import OFF, Tracing
from stream_app.worker.batches.metrics import Stages
from stream_app.worker.kafka.adaptive_batching import Batching
from tests.store.batches import turn
from tests.tracing.collector import Collector, ReceivedSpan, collecting
from tests.worker.processors import processor
from tests.worker.test_agents import SETTINGS, World, agent_of

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT_ID = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-01".encode()
CLIENT, CONSUMER = 3, 5
STAGES = ["decode", "encode", "score", "commit", "publish"]
WORDS = "zanzibar"


class Records:
    """A record batch that keeps headers."""

    def __init__(self) -> None:
        self.appended: list[dict[str, Any]] = []

    def append(self, **record: Any) -> object:
        self.appended.append(record)
        return self

    def close(self) -> None:
        """Close the batch."""


class Broker(World):
    """Keeps what is published, with headers, by topic."""

    def __init__(self) -> None:
        super().__init__()
        self.published: dict[str, list[tuple[bytes, dict[str, bytes]]]] = {}

    def add(self, *records: tuple[bytes, Any]) -> None:
        """Add a batch of values with their headers."""
        self.batch(*(value for value, _ in records))
        for event, (_, headers) in zip(self.batches[-1], records, strict=True):
            event.message.headers = headers

    def create_batch(self) -> Any:
        return Records()

    async def send_batch(self, records: Any, topic: str, *, partition: int) -> Any:
        for record in records.appended:
            self.published.setdefault(topic, []).append((record["key"], dict(record["headers"])))
        return await World.send(self, topic)

    async def send(self, *record: Any) -> Any:
        topic, key, _, _, _, headers = record
        self.published.setdefault(topic, []).append((key, dict(headers)))
        return await World.send(self, topic)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    monkeypatch.setattr(Batching, "batches", lambda _, stream, admit: stream.taken(admit))
    return Broker()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        yield collector


async def process(
    broker: Broker, store: Store, tracing: Tracing
) -> list[structlog.typing.EventDict]:
    """Process the batches like a worker; returns the log."""
    worker = processor(store, tracing=tracing)
    with capture_logs(processors=[tracing.add_ids]) as logged:
        await agent_of(broker, worker)._consume(broker)
    tracing.close()
    assert not [step for step in broker.journal if step.startswith("crash")]
    return logged


def children(collector: Collector, parent: ReceivedSpan) -> dict[str, ReceivedSpan]:
    found = [span for span in collector.spans if span.parent_id == parent.span_id]
    assert {span.trace_id for span in found} == {parent.trace_id}
    return {span.name: span for span in found}


async def test_a_turn_continues_its_producers_trace_to_the_published_messages(
    broker: Broker, collector: Collector, open_prepared: Callable[[], Store]
) -> None:
    broker.add(
        (turn(0, text=WORDS), [("traceparent", TRACEPARENT), ("tracestate", b"vendor=1")]),
        (turn(0, session_id="other"), None),
        (b"{" + WORDS.encode(), [("traceparent", TRACEPARENT)]),
    )
    logged = await process(broker, open_prepared(), OtlpTracing("rapport-worker", "group"))

    [batch] = collector.named(f"receive {SETTINGS.turns_topic}")
    assert (batch.kind, batch.attributes["messaging.batch.message_count"]) == (CLIENT, 3)
    continued, alone, broken = collector.named("process t")
    assert batch.links == [PARENT_ID, alone.span_id, PARENT_ID]
    assert (continued.trace_id, continued.parent_id) == (TRACE_ID, PARENT_ID)
    assert continued.tracestate == "vendor=1"
    assert (alone.parent_id, alone.trace_id == batch.trace_id) == ("", False)
    assert continued.attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "t",
        "messaging.destination.partition.id": "2",
        "messaging.consumer.group.name": "group",
        "messaging.kafka.offset": 0,
    }
    assert {span.kind for span in (continued, alone, broken)} == {CONSUMER}

    of_batch = children(collector, batch)
    assert list(of_batch) == ["decode", "encode", "load", "score", "commit", "publish"]
    of_turn = children(collector, continued)
    assert list(of_turn) == STAGES
    for name in STAGES[1:]:
        assert of_turn[name].links == [of_batch[name].span_id]

    for topic in ("turn-scores", "session-scores"):
        headers = dict(broker.published[topic])
        assert continued.is_parent_in(headers[b"s"])
        assert headers[b"s"]["tracestate"] == b"vendor=1"
        assert alone.is_parent_in(headers[b"other"])

    [(_, headers)] = broker.published[SETTINGS.dead_letter_topic]
    assert broken.is_parent_in(headers)
    assert DEAD_LETTER_HEADER in headers
    assert (broken.failed, broken.attributes["error.type"]) == (True, "not-json")
    assert not continued.failed
    [line] = [line for line in logged if line["event"] == "event.dead_letter"]
    assert (line["trace_id"], line["span_id"]) == (TRACE_ID, broken.span_id)

    told = repr(collector.spans)
    assert not [word for word in (WORDS, "joan", "'s'", "other") if word in told]


async def test_messages_of_an_alert_and_of_a_timer_have_a_trace(
    broker: Broker, collector: Collector, open_prepared: Callable[[], Store]
) -> None:
    tracing = OtlpTracing("rapport-worker", "group")
    worker = processor(open_prepared(), tracing=tracing)
    agent = agent_of(broker, worker)
    for seq in range(4):
        broker.add((turn(seq), [("traceparent", TRACEPARENT)]))
    await agent._consume(broker)
    timed = {topic: len(sent) for topic, sent in broker.published.items()}
    await agent._upkeep._flush_idle(worker._now(), [2])
    tracing.close()
    assert broker.published["alerts"]
    for _, headers in broker.published["alerts"]:
        assert headers["traceparent"].split(b"-")[1] == TRACE_ID.encode()
    [flushed] = collector.named("flush_idle")
    for topic in ("turn-scores", "session-scores"):
        of_timer = broker.published[topic][timed[topic] :]
        assert of_timer
        assert all(flushed.is_parent_in(headers) for _, headers in of_timer)
    assert list(children(collector, flushed)) == ["commit", "publish"]


async def test_a_failed_batch_is_marked_in_every_trace(
    broker: Broker, collector: Collector
) -> None:
    tracing = OtlpTracing("rapport-worker", "group")
    broker.store_error = StoreUnavailable(WORDS)
    broker.add((turn(), [("traceparent", TRACEPARENT)]))
    broker.stages = Stages(broker.metrics, tracing)
    await agent_of(broker, broker)._consume(broker)
    tracing.close()
    found = {span.name: span for span in collector.spans if span.failed}
    assert set(found) == {f"receive {SETTINGS.turns_topic}", "process t"}
    assert {span.attributes["error.type"] for span in found.values()} == {"StoreUnavailable"}
    assert WORDS not in repr(collector.spans)


async def test_without_tracing_headers_are_not_passed_on(
    broker: Broker, open_prepared: Callable[[], Store]
) -> None:
    broker.add((turn(), [("traceparent", TRACEPARENT)]), (b"{", None))
    [line] = await process(broker, open_prepared(), OFF)
    assert "trace_id" not in line
    headers = [headers for sent in broker.published.values() for _, headers in sent]
    assert len(headers) == 3
    assert not [names for names in headers if "traceparent" in names]


async def test_unsampled_traces_are_passed_on_and_not_sent(
    broker: Broker, collector: Collector, open_prepared: Callable[[], Store]
) -> None:
    unsampled = TRACEPARENT[:-2] + b"00"
    broker.add((turn(), [("traceparent", unsampled)]))
    await process(broker, open_prepared(), OtlpTracing("rapport-worker", "group"))
    assert TRACE_ID not in {span.trace_id for span in collector.spans}
    [(_, headers)] = broker.published["turn-scores"]
    _, trace_id, span_id, flags = headers["traceparent"].decode().split("-")
    assert (trace_id, flags) == (TRACE_ID, "00")
    assert span_id != PARENT_ID


def test_the_outbox_keeps_the_trace_and_reads_rows_of_earlier_releases() -> None:
    message = Message("t", b"k", b"v", "alert", (("traceparent", TRACEPARENT),))
    assert outbox.unpack(outbox.pack([message])) == [message]
    earlier = outbox._encoder.encode([["t", b"k", b"v", "alert"]])
    assert outbox.unpack(earlier) == [Message("t", b"k", b"v", "alert")]


@pytest.mark.parametrize(
    "headers",
    [
        [("traceparent", b"")],
        [("traceparent", None)],
        [("traceparent", b"0" * 10_000)],
        [("traceparent", TRACEPARENT + b"-" + b"f" * 10_000)],
        [("traceparent", b"\xff\xfe" + TRACEPARENT[2:])],
        [("traceparent", TRACEPARENT), ("traceparent", TRACEPARENT[:-1] + b"0")],
        [("traceparent", b"00-" + b"0" * 32 + b"-00f067aa0ba902b7-01")],
        [("tracestate", b"a=1")],
        {"traceparent": TRACEPARENT.upper()},
    ],
)
async def test_malformed_headers_start_a_trace_and_do_not_disturb_the_turn(
    broker: Broker,
    collector: Collector,
    open_prepared: Callable[[], Store],
    headers: Any,
) -> None:
    broker.add((turn(), headers))
    await process(broker, open_prepared(), OtlpTracing("rapport-worker", "group"))
    [span] = collector.named("process t")
    assert (span.parent_id, span.failed, span.tracestate) == ("", False, "")
    assert span.trace_id != TRACE_ID
    [(_, sent)] = broker.published["turn-scores"]
    assert span.is_parent_in(sent)


@pytest.mark.parametrize("tracestate", [b"=" * 500, b"a=1," * 200, b"\xff=1", b",,,", b"a=\x00"])
async def test_a_malformed_tracestate_is_dropped(
    broker: Broker, collector: Collector, open_prepared: Callable[[], Store], tracestate: bytes
) -> None:
    broker.add((turn(), [("traceparent", TRACEPARENT), ("tracestate", tracestate)]))
    await process(broker, open_prepared(), OtlpTracing("rapport-worker", "group"))
    [span] = collector.named("process t")
    assert (span.trace_id, span.tracestate) == (TRACE_ID, "")
