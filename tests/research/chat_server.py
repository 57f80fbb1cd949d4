"""A chat completions server made for the tests: `python -m tests.research.chat_server LOG`.

It is no language model: it answers by rules that the model's name chooses, so that tests know what
is right. It prints its port and appends every request to LOG as a line of JSON.
"""

from __future__ import annotations

import json
import math
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar


def rule(text: str) -> str:
    """Questions explore: strongly with "feel", else weakly."""
    if "?" not in text:
        return "none"
    return "strong" if "feel" in text else "weak"


def completion(model: str, coded: str, body: dict[str, Any]) -> dict[str, Any]:
    label = rule(coded)
    content = json.dumps({"label": label, "evidence": [coded] if label != "none" else []})
    if model == "mumbles" or (model == "learns" and len(body["messages"]) == 2):
        content = f"I think it is {label}: {coded}"
    choice: dict[str, Any] = {
        "index": 0,
        "finish_reason": "length" if model == "cut-off" else "stop",
        "message": {"role": "assistant", "content": content},
    }
    if body.get("logprobs") and model != "no-ranks":
        choice |= ranks({"none": "A", "weak": "B", "strong": "C"}[label])
    answer: dict[str, Any] = {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [choice],
    }
    counts = {"no-usage": None, "negative-usage": (-5, 10), "odd-usage": ("many", None)}
    usage = counts.get(model, (100, 10))
    if usage is not None:
        answer["usage"] = dict(zip(("prompt_tokens", "completion_tokens"), usage, strict=True))
    return answer


def ranks(letter: str) -> dict[str, Any]:
    """The letter with a probability of 0.7, with and without a space; B and Z share the rest."""
    top = [(letter, 0.5), (f" {letter}", 0.2), ("B", 0.2), ("Z", 0.1)]
    tokens = [{"token": t, "logprob": math.log(p), "bytes": None} for t, p in top]
    found = {"content": [{**tokens[0], "top_logprobs": tokens}], "refusal": None}
    return {"message": {"role": "assistant", "content": letter}, "logprobs": found}


class Handler(BaseHTTPRequestHandler):
    """Answers POST /v1/chat/completions."""

    log: Path
    asked: ClassVar[dict[str, int]] = {}
    lock = threading.Lock()

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = body["model"]
        with self.lock:
            number = self.asked[model] = self.asked.get(model, 0) + 1
            with self.log.open("a") as log:
                headers = {name.lower(): value for name, value in self.headers.items()}
                log.write(json.dumps({"path": self.path, "headers": headers, "body": body}) + "\n")
        self.answer(model, number, body)

    def answer(self, model: str, number: int, body: dict[str, Any]) -> None:
        turns = json.loads(self.last_dialogue(body))
        coded = next(turn["text"] for turn in turns if turn.get("code"))
        error = {"error": {"message": f"{coded} cannot be coded"}}
        if model == "busy" and number <= 2:
            return self.send(429, error, {"Retry-After": "0"})
        if model == "moved":
            return self.send(307, {}, {"Location": "http://127.0.0.1:9/v1/chat/completions"})
        if model == "not-json":
            return self.send_raw(200, coded.encode(), "text/html")
        refused = {
            "no-schema": "response_format" in body,
            "refuses": True,
            "refuses-long": len(coded) > 100,
        }
        status = {"broken": 500, "unknown": 404}.get(model, 400 if refused.get(model) else 200)
        if status != 200:
            return self.send(status, error)
        return self.send(
            200, {"hello": coded} if model == "not-a-completion" else completion(model, coded, body)
        )

    @staticmethod
    def last_dialogue(body: dict[str, Any]) -> str:
        asked = [m["content"] for m in body["messages"] if m["role"] == "user"]
        return next(content for content in reversed(asked) if content.startswith("["))

    def send(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        self.send_raw(status, json.dumps(body).encode(), "application/json", headers)

    def send_raw(
        self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    Handler.log = Path(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
