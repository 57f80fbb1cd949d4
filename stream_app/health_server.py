"""``/healthz``, ``/readyz`` and ``/metrics`` over HTTP; a hung loop does not stop this thread."""

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
    """Something that knows how it is; each reason is a sentence, none means well."""

    def not_alive(self) -> list[str]:
        """Why it should be started again."""

    def not_ready(self) -> list[str]:
        """Why it does not work."""


class PortInUse(RapportError):
    """The probes cannot listen on their port."""


SLOWEST: Final = 5.0
"""Seconds that a client of the probes may take for a request."""


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each request: one that stalls holds up no other."""

    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    timeout = SLOWEST

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        """A probe every few seconds is no news."""


@contextmanager
def serve_probes(
    host: str, port: int, health: HealthChecks, registry: CollectorRegistry
) -> Iterator[int]:
    """Answer probes for the time of the ``with``; yields the port.

    Raises:
        PortInUse: somebody else listens there.
    """
    try:
        server = make_server(host, port, _application(health, registry), _Server, _Quiet)
    except OSError as problem:
        raise PortInUse(
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
    health: HealthChecks, registry: CollectorRegistry
) -> Callable[[Environment, StartResponse], Iterable[bytes]]:
    exposition = make_wsgi_app(registry)

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
