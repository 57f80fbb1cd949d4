"""A webhook receiver that fails as planned: `python -m tests.notifications.receiver`.

`--attempts` is its behaviour at the first, second, … attempt of each message:

    fail    status 500
    refuse  status 400
    hang    no answer within any timeout
    cut     reads the message and closes the connection
    die     exits in the middle of the answer
    ok      status 204

The last one applies to all further attempts.

Every attempt is logged before the answer. Messages without `webhook-id`, like Apprise's `json://`,
are identified by their path.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError


def attempts(log: Path) -> list[dict[str, object]]:
    """The received attempts, in order."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return [json.loads(line) for line in lines]


def serve(port: int, log: Path, secret: str, plan: list[str]) -> None:
    """Serve until killed."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            try:
                Webhook(secret).verify(raw, dict(self.headers))
                signed = True
            except WebhookVerificationError:
                signed = False
            key = self.headers["webhook-id"] or self.path
            before = sum(line["id"] == key for line in attempts(log))
            does = plan[min(before, len(plan) - 1)]
            line = {"id": key, "does": does, "signed": signed, "body": json.loads(raw)}
            with log.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")
            match does:
                case "fail":
                    self.send_error(500)
                case "refuse":
                    self.send_error(400)
                case "hang":
                    time.sleep(60)
                case "die":
                    self.wfile.write(b"HTTP/1.1 20")
                    self.wfile.flush()
                    os._exit(1)
                case "cut":
                    self.close_connection = True
                case _:
                    self.send_response(204)
                    self.end_headers()

        def log_message(self, *_: object) -> None:
            """Suppress the default log."""

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--secret", required=True)
    parser.add_argument("--attempts", nargs="+", required=True)
    options = parser.parse_args()
    serve(options.port, options.log, options.secret, options.attempts)
