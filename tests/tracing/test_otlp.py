"""Sending spans: settings, a collector that is away, the end of a process, hostile headers."""

import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from structlog.testing import capture_logs

from stream_app import bootstrap, extras
from stream_app.core.pipeline.pipeline import Source
from stream_app.errors import RapportError
from stream_app.settings import Settings
from stream_app.tracing import export
from stream_app.tracing.otlp import OtlpTracing, parent_of
from stream_app.tracing.port import OFF
from stream_app.worker.kafka.broker import free_port
from tests.tracing.collector import collecting

SECRET = "zanzibar"


def trace_batch(tracing: OtlpTracing, records: int = 1) -> None:
    """Start and end the spans of a batch."""
    work = tracing.batch("t", records)
    with work.active():
        for offset in range(records):
            with tracing.record(Source("t", 0, offset), None):
                pass
    work.end()


def warnings(logged: list[structlog.typing.EventDict]) -> list[str]:
    return [line["event"] for line in logged if line["log_level"] == "warning"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["traceparent", "tracestate", "baggage"]),
            st.none()
            | st.binary(max_size=60)
            | st.from_regex(rb"[0-9a-fx]{2}-[0-9a-f]{32}-[0-9a-f]{16}-0[01].?", fullmatch=True)
            | st.from_regex(rb"([a-z0-9@]{1,4}=[ -~]{0,4},?){1,40}", fullmatch=True),
        ),
        max_size=4,
    )
)
def test_headers_are_a_valid_context_or_none(headers: list[tuple[str, Any]]) -> None:
    found = trace.get_current_span(parent_of(headers)).get_span_context()
    given = [value for name, value in headers if name == "traceparent" and value is not None]
    if found.is_valid:
        assert [value[3:35] for value in given] == [f"{found.trace_id:032x}".encode()]
    else:
        assert found == trace.INVALID_SPAN_CONTEXT


@pytest.mark.parametrize("status", [None, 400])
def test_a_collector_that_is_away_is_one_line_and_blocks_nothing(
    monkeypatch: pytest.MonkeyPatch, status: int | None
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "64")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "16")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization={SECRET}")
    with collecting() as collector, capture_logs() as logged:
        collector.status = status or 200
        host = collector.url if status else f"http://127.0.0.1:{free_port()}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", host.replace("//", f"//u:{SECRET}@"))
        tracing = OtlpTracing("rapport-worker", "group")
        trace_batch(tracing)
        deadline = time.monotonic() + 30
        while not logged and time.monotonic() < deadline:
            time.sleep(0.01)
        trace_batch(tracing, records=1000)
        queue = tracing._export._processor._batch_processor._queue
        assert len(queue) <= 64
        tracing.close()
    assert warnings(logged) == ["tracing.collector_away"]
    [line] = logged
    assert line["collector"] == host.removeprefix("http://")
    assert line["reason"] == (f"HTTP {status}" if status else "ConnectionError")
    assert SECRET not in repr(logged)


def test_a_collector_that_is_back_is_reported_with_what_was_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    with collecting() as collector, capture_logs() as logged:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        collector.status = 400
        tracing = OtlpTracing("rapport-worker", "group")
        trace_batch(tracing)
        deadline = time.monotonic() + 30
        while not logged and time.monotonic() < deadline:
            time.sleep(0.01)
        collector.status = 200
        trace_batch(tracing)
        collector.wait_for("receive t")
        tracing.close()
    assert warnings(logged) == ["tracing.collector_away", "tracing.collector_back"]
    assert logged[1]["lost_spans"] >= 1
    assert collector.paths == {"/v1/traces"}
    assert {span.service for span in collector.spans} == {"rapport-worker"}


@contextmanager
def mute_collector() -> Iterator[str]:
    """Accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_the_end_waits_for_a_mute_collector_for_a_limited_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(export, "FLUSH_SECONDS", 0.2)
    with mute_collector() as url, capture_logs() as logged:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3")
        tracing = OtlpTracing("rapport-worker", "group")
        trace_batch(tracing)
        started = time.monotonic()
        tracing.close()
        assert time.monotonic() - started < 2.5
    assert warnings(logged) == ["tracing.not_flushed"]


def test_attributes_have_a_limited_length(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
        tracing = OtlpTracing("rapport-worker", "g" * 5000)
        trace_batch(tracing)
        tracing.close()
    [batch] = collector.named("receive t")
    assert batch.attributes["messaging.consumer.group.name"] == "g" * 256
    assert batch.service == "mine"


def test_lines_outside_of_spans_have_no_ids() -> None:
    tracing = OtlpTracing("rapport-worker", "group")
    try:
        assert tracing.add_ids(None, "info", {"event": "e"}) == {"event": "e"}
        with tracing.batch("t", 1).active():
            assert set(tracing.add_ids(None, "info", {})) == {"trace_id", "span_id"}
        with tracing.record(Source("t", 0, 0), None) as headers, tracing.stage("score"):
            assert (headers, tracing.headers()) == ((), ())
    finally:
        tracing._export._processor._batch_processor._queue.clear()
        tracing.close()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "http/protobuf"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "1", "max_queue_size"),
    ],
)
def test_a_setting_that_cannot_be_used_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setenv(name, value)
    with pytest.raises(RapportError) as raised:
        bootstrap.tracing(Settings(), "rapport-worker")
    assert "OTEL_" in str(raised.value)
    assert said in str(raised.value)


def test_a_setting_that_is_ignored_is_reported_without_its_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", SECRET)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"{SECRET} without an equals sign")
    with capture_logs() as logged:
        OtlpTracing("rapport-worker", "group").close()
    assert [line["event"] for line in logged] == ["tracing.sdk", "tracing.sdk"]
    assert "sampler" in logged[0]["detail"]
    assert "Header" in logged[1]["detail"]
    assert SECRET not in repr(logged)


def test_it_is_off_by_default_and_a_missing_extra_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "stream_app.tracing.otlp")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    monkeypatch.delitem(sys.modules, "stream_app.tracing.export")
    for off in ("", "none"):
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", off)
        assert bootstrap.tracing(Settings(), "rapport-worker") is OFF
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    with pytest.raises(ModuleNotFoundError) as raised:
        bootstrap.tracing(Settings(), "rapport-worker")
    assert str(extras.explained(raised.value)) == (
        "this needs opentelemetry, which is not installed: pip install 'rapport-empathy[tracing]'"
    )
