"""Prometheus metrics of a web process (``/metrics`` on the port of the health probes)."""

import time
from collections.abc import Callable, Iterable
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stream_app.web.live.live_hub import Hub

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0)


class IngestResult(Protocol):
    """Result of sending one event to Kafka."""

    @property
    def accepted(self) -> bool:
        """Whether the event is in the log."""

    @property
    def code(self) -> str | None:
        """Why it was refused; None if it was accepted."""


class WebMetrics:
    """The metrics of one web process, in their own registry."""

    def __init__(self, hub: Hub, drift: Callable[[], float]) -> None:
        """``drift``: counts the changes that nobody has acknowledged."""
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "rapport_http_requests",
            "Requests by route, method and status",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "rapport_http_request_seconds",
            "Seconds until the response starts",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.events = Counter(
            "rapport_ingested_events",
            "Events received over HTTP, by result",
            ["fate"],
            registry=self.registry,
        )
        live = Gauge(
            "rapport_live_reading", "1 while the topics are being read", registry=self.registry
        )
        live.set_function(lambda: float(hub.live))
        clients = Gauge(
            "rapport_live_clients", "Number of open live streams", registry=self.registry
        )
        clients.set_function(lambda: float(hub.clients))
        events = Gauge(
            "rapport_live_events", "Live events since the process started", registry=self.registry
        )
        events.set_function(lambda: float(hub.number))
        changes = Gauge(
            "rapport_drift_changes",
            "Changes of the data or the model that nobody has acknowledged",
            registry=self.registry,
        )
        changes.set_function(drift)

    def count_events(self, results: Iterable[IngestResult]) -> None:
        """Count a batch's events by result."""
        for result in results:
            fate = "accepted" if result.accepted else result.code or "refused"
            self.events.labels(fate).inc()


class RequestMetrics:
    """ASGI middleware that counts requests by route template, so that labels contain no ids."""

    def __init__(self, app: ASGIApp, metrics: WebMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request and record its status and duration."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500

        async def record_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._metrics.seconds.labels(_route(scope)).observe(time.perf_counter() - began)
            await send(message)

        try:
            await self._app(scope, receive, record_status)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.requests.labels(_route(scope), method, str(status)).inc()


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def _route(scope: Scope) -> str:
    template = getattr(scope.get("route"), "path", None)
    if template is None:
        return "static" if scope["path"].startswith("/static/") else "none"
    prefix = "/api/v1" if scope["path"].startswith("/api/v1/") else ""
    return prefix + str(template)
