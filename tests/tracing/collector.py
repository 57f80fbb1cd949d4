"""A collector on loopback: receives spans by OTLP over HTTP and keeps them."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from msgspec import Struct
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

PATIENCE = 60.0


class ReceivedSpan(Struct, frozen=True):
    """A span as it was received; ids in hexadecimal digits."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    failed: bool
    attributes: dict[str, str | int]
    links: list[str]
    tracestate: str

    def is_parent_in(self, headers: Mapping[str, bytes]) -> bool:
        """Whether these headers continue its trace, as a sampled one."""
        version, trace_id, span_id, flags = headers["traceparent"].decode().split("-")
        found = (version, trace_id, span_id, int(flags, 16) & 1)
        return found == ("00", self.trace_id, self.span_id, 1)


class Collector:
    """The received spans."""

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        self.paths: set[str] = set()
        self.status = 200
        self.url = ""

    def named(self, name: str) -> list[ReceivedSpan]:
        """All spans of this name."""
        return [span for span in self.spans if span.name == name]

    def wait_for(self, name: str, count: int = 1) -> list[ReceivedSpan]:
        """Wait until ``count`` spans of this name were received."""
        give_up = time.monotonic() + PATIENCE
        while len(self.named(name)) < count:
            assert time.monotonic() < give_up, f"no {name} in {[s.name for s in self.spans]}"
            time.sleep(0.02)
        return self.named(name)

    def keep(self, body: bytes) -> None:
        """Decode a request and keep its spans."""
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            about = _values(group.resource.attributes)
            for scope in group.scope_spans:
                self.spans += [_span(str(about["service.name"]), span) for span in scope.spans]


def _span(service: str, span: Any) -> ReceivedSpan:
    return ReceivedSpan(
        service,
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.kind,
        span.status.code == 2,
        _values(span.attributes),
        [link.span_id.hex() for link in span.links],
        span.trace_state,
    )


def _values(attributes: Any) -> dict[str, str | int]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector; ``url`` is the endpoint."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.paths.add(self.path)
            if collector.status == 200:
                collector.keep(body)
            self.send_response(collector.status)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
