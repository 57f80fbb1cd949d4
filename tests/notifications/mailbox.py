"""An SMTP server that logs received messages: `python -m tests.notifications.mailbox`.

It implements the part of RFC 5321 that clients without extensions need. Each message is logged as
a line of JSON.
"""

import argparse
import json
import socketserver
from pathlib import Path


def serve(port: int, log: Path) -> None:
    """Serve until killed."""

    class Session(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 mailbox")
            while line := self.rfile.readline():
                match line[:4].upper():
                    case b"DATA":
                        self._say("354 go on")
                        self._keep()
                        self._say("250 kept")
                    case b"QUIT":
                        self._say("221 bye")
                        return
                    case b"EHLO" | b"HELO" | b"MAIL" | b"RCPT" | b"RSET" | b"NOOP":
                        self._say("250 ok")
                    case _:
                        self._say("502 not here")

        def _keep(self) -> None:
            lines = []
            while (line := self.rfile.readline()) != b".\r\n":
                lines.append(line.removeprefix(b"."))
            with log.open("a", encoding="utf-8") as out:
                out.write(json.dumps(b"".join(lines).decode()) + "\n")

        def _say(self, words: str) -> None:
            self.wfile.write(f"{words}\r\n".encode())

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    Server(("127.0.0.1", port), Session).serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    options = parser.parse_args()
    serve(options.port, options.log)
