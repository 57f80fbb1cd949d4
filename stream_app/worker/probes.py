"""``/healthz``, ``/readyz`` and ``/metrics`` over HTTP; a hung loop does not stop this thread."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import make_wsgi_app

from stream_app.errors import RapportError
from stream_app.worker.health import Health
from stream_app.worker.metrics import WorkerMetrics

Environment = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], Any]


class PortTaken(RapportError):
    """The probes cannot listen on their port."""


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        """A probe every few seconds is no news."""


@contextmanager
def serving(host: str, port: int, health: Health, metrics: WorkerMetrics) -> Iterator[int]:
    """Answer probes for the time of the ``with``; yields the port.

    Raises:
        PortTaken: somebody else listens there.
    """
    try:
        server = make_server(host, port, _application(health, metrics), handler_class=_Quiet)
    except OSError as problem:
        raise PortTaken(
            f"RAPPORT_HEALTH_PORT is {port}, but {host}:{port} cannot be used: {problem.strerror}"
        ) from problem
    thread = threading.Thread(target=server.serve_forever, name="probes", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _application(
    health: Health, metrics: WorkerMetrics
) -> Callable[[Environment, StartResponse], Iterable[bytes]]:
    exposition = make_wsgi_app(metrics.registry)

    def answer(environment: Environment, start: StartResponse) -> Iterable[bytes]:
        match environment["PATH_INFO"]:
            case "/metrics":
                return cast("Iterable[bytes]", exposition(environment, start))
            case "/healthz":
                return _told(health.not_alive(), start)
            case "/readyz":
                return _told(health.not_ready(), start)
            case _:
                start("404 Not Found", [("Content-Type", "text/plain")])
                return [b"/healthz, /readyz, /metrics\n"]

    return answer


def _told(reasons: list[str], start: StartResponse) -> Iterable[bytes]:
    status = "503 Service Unavailable" if reasons else "200 OK"
    start(status, [("Content-Type", "application/json")])
    return [json.dumps({"ok": not reasons, "reasons": reasons}).encode()]
