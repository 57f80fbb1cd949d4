"""Sending events over HTTP to Kafka: validation and results of each event."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from stream_app.web.ingest.ingest import MAX_BYTES, MAX_EVENTS
from stream_app.worker.kafka import broker
from stream_app.worker.kafka.topics import declare_topics
from tests import topic_log
from tests.store.batches import end, outcome, turn
from tests.web.api.fuzzing import fuzz
from tests.web.server import Web


@pytest.fixture(scope="module")
def web_with_broker(
    tmp_path_factory: pytest.TempPathFactory,
    own_topics: tuple[str, dict[str, Any]],
    changes: Callable[[], dict[str, Any]],
) -> Iterator[Web]:
    address, topics = own_topics
    web = Web(tmp_path_factory.mktemp("web_with_broker"), address, {**topics, **changes()})
    asyncio.run(declare_topics(web.settings))
    try:
        web.start()
        yield web
    finally:
        web.stop()


def sent(web: Web, *events: bytes, name: str = "pump", **options: Any) -> httpx.Response:
    body = b"[" + b",".join(events) + b"]"
    with web.client(name) as client:
        return client.post(
            "/events", content=body, headers={"Content-Type": "application/json"}, **options
        )


def log_of(web: Web) -> dict[tuple[int, int], tuple[bytes, bytes]]:
    """Keys and values of all records in the topic of turns, by partition and offset."""
    found = topic_log.records(web.settings, web.settings.turns_topic)
    return {(r.partition, r.offset): (r.key, r.value) for r in found}


def test_events_are_in_the_log_unchanged_at_the_returned_offsets(web_with_broker: Web) -> None:
    batch = [
        turn(0, session_id="a", text="Grüße, \u2028 and a  space"),
        turn(0, session_id="b"),
        turn(1, session_id="a"),
        outcome(session_id="b"),
        end(session_id="a"),
    ]
    answer = sent(web_with_broker, *batch)
    assert answer.status_code == 202, answer.text
    body = answer.json()
    assert (body["accepted"], body["refused"]) == (5, 0)
    stored_at = log_of(web_with_broker)
    for result, value in zip(body["results"], batch, strict=True):
        key, stored = stored_at[result["partition"], result["offset"]]
        assert stored == value
        assert key.decode() == json.loads(value)["session_id"]
        assert result["topic"] == web_with_broker.settings.turns_topic
    of_a = [body["results"][place] for place in (0, 2, 4)]
    assert len({result["partition"] for result in of_a}) == 1
    assert [r["offset"] for r in of_a] == sorted(r["offset"] for r in of_a)


def test_invalid_events_are_refused_with_a_reason_and_the_others_accepted(
    web_with_broker: Web,
) -> None:
    before = len(log_of(web_with_broker))
    bad = {
        1: (b'{"type":"turn"}', "schema"),
        2: (turn(text=" "), "empty-text"),
        3: (turn(text="x" * 70_000), "too-large"),
        4: (b'"zanzibar"', "schema"),
        5: (turn(audio="x"), "media"),
        6: (turn(text="a\x00b"), "nul-byte"),
        7: (b'{"type":"zanzibar","session_id":"s"}', "schema"),
    }
    batch = [turn(0, session_id="good"), *(raw for raw, _ in bad.values()), end(session_id="good")]
    answer = sent(web_with_broker, *batch)
    assert answer.status_code == 202
    results = answer.json()["results"]
    assert [result["index"] for result in results] == list(range(9))
    assert [place for place, each in enumerate(results) if each["accepted"]] == [0, 8]
    for place, (_, code) in bad.items():
        assert results[place]["code"] == code
        assert results[place]["detail"]
    assert "zanzibar" not in answer.text
    values = [value for _, value in log_of(web_with_broker).values()]
    assert len(values) == before + 3
    assert b'{"type":"turn","session_id":"s","seq":0,"text":""}' in values  # it leaves no gap


def test_json_lines_are_accepted(web_with_broker: Web) -> None:
    body = b"\n".join([turn(0, session_id="lines"), b"", b"{", turn(1, session_id="lines"), b""])
    with web_with_broker.client("pump") as client:
        headers = {"Content-Type": "application/x-ndjson; charset=utf-8"}
        results = client.post("/events", content=body, headers=headers).json()["results"]
    assert [result["accepted"] for result in results] == [True, False, True]
    assert results[1]["code"] == "not-json"


def test_a_batch_of_which_nothing_is_accepted_is_unprocessable(web_with_broker: Web) -> None:
    cut = turn(text="X").replace(b"X", rb"half an emoji \ud83d")
    answer = sent(web_with_broker, cut, b'{"type":"turn"}', turn(text=" "))
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/json"
    assert (answer.json()["accepted"], answer.json()["refused"]) == (0, 3)
    codes = [each["code"] for each in answer.json()["results"]]
    assert codes == ["lone-surrogate", "schema", "empty-text"]


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"{}", "application/json", 422),
        (b"[]", "application/json", 422),
        (b"", "application/json", 422),
        (b"[" * 100_000, "application/json", 422),
        (b"\xff\xfe", "application/json", 422),
        (b"\n\n", "application/x-ndjson", 422),
        (b"<xml/>", "text/xml", 415),
        (b"[" + b",".join([b"{}"] * (MAX_EVENTS + 1)) + b"]", "application/json", 413),
        (b"[" + b" " * MAX_BYTES + b"]", "application/json", 413),
    ],
)
def test_an_invalid_batch_is_a_problem(
    web_with_broker: Web, body: bytes, content_type: str, status: int
) -> None:
    with web_with_broker.client("pump") as client:
        answer = client.post("/events", content=body, headers={"Content-Type": content_type})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_batch_of_maximum_size_is_accepted(web_with_broker: Web) -> None:
    batch = [turn(seq, session_id=f"many-{seq % 20}") for seq in range(MAX_EVENTS)]
    assert sent(web_with_broker, *batch).json()["accepted"] == MAX_EVENTS


def test_an_implausible_time_is_refused(web_with_broker: Web) -> None:
    answer = sent(web_with_broker, turn(occurred_at="9999-12-31T23:59:30Z"), turn())
    assert [result["code"] for result in answer.json()["results"]] == ["implausible-time", None]


@pytest.mark.slow
def test_fuzzing_finds_no_error(web_with_broker: Web, tmp_path: Path) -> None:
    fuzz(web_with_broker, "pump", tmp_path, "examples,coverage,fuzzing", "--include-path=/events")


def test_without_a_broker_events_are_refused_with_retry_after(
    tmp_path: Path,
) -> None:
    port = broker.free_port()
    web = Web(tmp_path, f"127.0.0.1:{port}")
    try:
        web.start()
        answer = sent(web, turn())
        assert answer.status_code == 503
        assert answer.json()["type"] == "urn:rapport:problem:broker-away"
        assert int(answer.headers["retry-after"]) > 0
        refused = sent(web, b"{}")
        assert refused.status_code == 422  # no event had to be sent
        with broker.running(port):
            asyncio.run(declare_topics(web.settings))
            assert sent(web, turn()).json()["accepted"] == 1
        began = time.monotonic()
        assert sent(web, turn(), turn(1)).status_code == 503
        assert time.monotonic() - began < 18
        with broker.running(port):
            asyncio.run(declare_topics(web.settings))
            give_up = time.monotonic() + 20
            while (answer := sent(web, turn(2))).status_code != 202:
                assert time.monotonic() < give_up
    finally:
        web.stop()
