"""HTTP server of ``/healthz``, ``/readyz`` and ``/metrics``, in a thread besides the event loop."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import Any, Final, Protocol, cast
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from stream_app.errors import RapportError

Environment = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], Any]


class HealthChecks(Protocol):
    """Liveness and readiness of a process; each reason is a short text for operators."""

    def not_alive(self) -> list[str]:
        """Reasons to restart the process; empty if it is alive."""

    def not_ready(self) -> list[str]:
        """Reasons why the process is not ready; empty if it is."""


class PortInUse(RapportError):
    """A configured port is in use."""


REQUEST_TIMEOUT: Final = 5.0
"""Seconds that a client may take for a request."""


class _Server(ThreadingMixIn, WSGIServer):
    """One thread per request, so that a stalled client does not block others."""

    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    timeout = REQUEST_TIMEOUT

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as in the base class
        """Do not log requests."""


@contextmanager
def serve_probes(
    host: str, port: int, health: HealthChecks, registry: CollectorRegistry
) -> Iterator[int]:
    """Serve health probes and metrics within the ``with`` block; yields the port.

    Raises:
        PortInUse: the port cannot be opened.
    """
    try:
        server = make_server(host, port, _application(health, registry), _Server, _QuietHandler)
    except OSError as problem:
        raise PortInUse(
            f"RAPPORT_HEALTH_PORT is {port}, but {host}:{port} cannot be used: {problem.strerror}"
        ) from problem
    thread = threading.Thread(target=server.serve_forever, name="health-server", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _application(
    health: HealthChecks, registry: CollectorRegistry
) -> Callable[[Environment, StartResponse], Iterable[bytes]]:
    exposition = make_wsgi_app(registry)

    def route(environment: Environment, start: StartResponse) -> Iterable[bytes]:
        match environment["PATH_INFO"]:
            case "/metrics":
                return cast("Iterable[bytes]", exposition(environment, start))
            case "/healthz":
                return _respond(health.not_alive(), start)
            case "/readyz":
                return _respond(health.not_ready(), start)
            case _:
                start("404 Not Found", [("Content-Type", "text/plain")])
                return [b"/healthz, /readyz, /metrics\n"]

    return route


def _respond(reasons: list[str], start: StartResponse) -> Iterable[bytes]:
    status = "503 Service Unavailable" if reasons else "200 OK"
    start(status, [("Content-Type", "application/json")])
    return [json.dumps({"ok": not reasons, "reasons": reasons}).encode()]
