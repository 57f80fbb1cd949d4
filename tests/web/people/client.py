"""A synchronous client of the application in the test process, without a port or a broker."""

import asyncio
import re
from typing import Any, Final

import httpx
from fastapi import FastAPI

LINE_BREAK: Final = re.compile(r"\s*\n\s*")
FORM_TEXT: Final = re.compile(r"(<textarea.*?</textarea>)", re.DOTALL)
BETWEEN_TAGS: Final = re.compile(r">\s*\n\s*<")


class Client:
    """Sends requests with a person's token."""

    def __init__(self, app: FastAPI, token: str, address: str = "http://rapport.test") -> None:
        self.app = app
        self._address = address
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self._ask("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self._ask("POST", path, **options)

    def put(self, path: str, **options: Any) -> httpx.Response:
        return self._ask("PUT", path, **options)

    def delete(self, path: str) -> httpx.Response:
        return self._ask("DELETE", path)

    def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url=self._address, headers=self._headers
            ) as client:
                return _as_read(await client.request(method, path, **options))

        return asyncio.run(ask())


def without_line_breaks(page: str) -> str:
    """A page in one line: readers do not see how its source is broken into lines."""
    parts = FORM_TEXT.split(page)
    parts[::2] = [LINE_BREAK.sub(" ", BETWEEN_TAGS.sub("><", part)) for part in parts[::2]]
    return "".join(parts)


def _as_read(answer: httpx.Response) -> httpx.Response:
    """The answer, its page without line breaks; ``extensions["as_sent"]`` has it with them."""
    if not answer.headers.get("content-type", "").startswith("text/html"):
        return answer
    return httpx.Response(
        answer.status_code,
        headers=answer.headers,
        text=without_line_breaks(answer.text),
        request=answer.request,
        extensions={"as_sent": answer.text},
    )
