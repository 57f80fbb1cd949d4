"""A server on loopback with OpenAI's chat completions, whose replies a test writes down."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, str, dict[str, str]]


def said(content: str | None, finish_reason: str = "stop") -> Reply:
    """A completion with this content."""
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "finish_reason": finish_reason, "message": message}
    return 200, json.dumps({"id": "1", "object": "chat.completion", "choices": [choice]}), {}


def status(code: int, **headers: str) -> Reply:
    """An error whose message repeats the text, as servers' do."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return code, json.dumps({"error": {"message": "That must have been hard"}}), named


class ChatStub:
    """What was asked, and what is answered: ``reply`` gets the body of each request."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.reply: Callable[[dict[str, Any]], Reply] = lambda _: status(500)

    def answers(self, *replies: Reply) -> None:
        """Answer with these replies in turn, then with the last one."""
        left = list(replies)
        self.reply = lambda _: left.pop(0) if len(left) > 1 else left[0]

    @property
    def sent(self) -> str:
        """Everything that was sent."""
        return json.dumps(self.bodies, ensure_ascii=False)


@contextmanager
def chat_stub() -> Iterator[ChatStub]:
    """Serve within the ``with`` block."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            stub.bodies.append(body)
            stub.headers.append({name.lower(): value for name, value in self.headers.items()})
            code, content, headers = stub.reply(body)
            if self.path != "/v1/chat/completions":
                code = 404
            self.send_response(code)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content.encode("utf-8", "surrogatepass"))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stub = ChatStub(server.server_port)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
