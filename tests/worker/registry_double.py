"""A schema registry for tests of failures: Confluent's REST API as published, on loopback.

`tests/e2e/test_framed_topics.py` runs against a real registry.
"""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

UNKNOWN_SUBJECT: Final = 404, {"error_code": 40401, "message": "Subject not found."}
UNKNOWN_SCHEMA: Final = 404, {"error_code": 40403, "message": "Schema not found"}


class RegistryDouble:
    """Registers any schema; ``answers`` come first, each once, and the last of ``always``."""

    def __init__(self) -> None:
        self.subjects: dict[str, list[str]] = {}
        self.asked: list[str] = []
        self.login: str | None = None
        self.answers: list[tuple[int, Any]] = []
        self.always: tuple[int, Any] | None = None
        self.url = ""

    def answer(self, path: str, authorization: str, body: bytes) -> tuple[int, Any]:
        self.asked.append(path)
        if self.answers:
            return self.answers.pop(0)
        if self.always:
            return self.always
        expected = base64.b64encode((self.login or "").encode()).decode()
        if self.login is not None and authorization != f"Basic {expected}":
            return 401, {"error_code": 401, "message": "Unauthorized"}
        given = json.loads(body)
        assert given["schemaType"] == "JSON"
        match path.split("/"):
            case [*_, "subjects", subject, "versions"]:
                known = self.subjects.setdefault(subject, [])
                if given["schema"] not in known:
                    known.append(given["schema"])
                return 200, {"id": self._id(given["schema"])}
            case [*_, "subjects", subject] if subject not in self.subjects:
                return UNKNOWN_SUBJECT
            case [*_, "subjects", subject] if given["schema"] not in self.subjects[subject]:
                return UNKNOWN_SCHEMA
            case [*_, "subjects", subject]:
                found = {"subject": subject, "version": 1, "id": self._id(given["schema"])}
                return 200, {**found, "schema": given["schema"]}
            case _:
                return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _id(self, schema: str) -> int:
        every = list(dict.fromkeys(one for known in self.subjects.values() for one in known))
        return 1 + every.index(schema)


@contextmanager
def running(context: ssl.SSLContext | None = None) -> Iterator[RegistryDouble]:
    """Serve a registry, with TLS if there is a context."""
    double = RegistryDouble()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            login = self.headers.get("authorization", "")
            status, content = double.answer(self.path, login, body)
            raw = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme, host = ("http", "127.0.0.1") if context is None else ("https", "localhost")
    double.url = f"{scheme}://{host}:{server.server_port}/ccompat"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
