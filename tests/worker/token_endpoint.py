"""A token endpoint for tests: OAuth 2.0 client credentials, over HTTP on loopback.

Run as a process it prints its URL: `python -m tests.worker.token_endpoint SECONDS`, the lifetime
of its tokens (negative: they have expired).
"""

import base64
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

CLIENT, SECRET, SCOPE = "rapport", "to:p/s3cret%", "kafka"
ENCODED = b"rapport:to%3Ap%2Fs3cret%25"


def unsigned_token(lifetime: float, scope: str) -> str:
    """A JSON Web Token without a signature."""
    now = time.time()
    claims = {"sub": CLIENT, "scope": scope, "iat": now - 3600, "exp": now + lifetime}
    return f"{_part({'alg': 'none'})}.{_part(claims)}."


def _part(content: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


class Endpoint(BaseHTTPRequestHandler):
    lifetime = 600.0

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        login = base64.b64decode(self.headers.get("authorization", "").removeprefix("Basic "))
        if login != ENCODED:
            self._answer(401, {"error": "invalid_client", "error_description": SECRET})
        elif form.get("grant_type") != ["client_credentials"]:
            self._answer(400, {"error": "unsupported_grant_type"})
        else:
            token = unsigned_token(self.lifetime, form.get("scope", [""])[0])
            stated = abs(self.lifetime)  # one that lies about its tokens
            self._answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": stated})

    def _answer(self, status: int, content: dict[str, object]) -> None:
        raw = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


def main() -> None:
    Endpoint.lifetime = float(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    print(f"http://127.0.0.1:{server.server_port}/token", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
