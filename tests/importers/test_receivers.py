"""Bridges that run for long: one odd message, or a service that is away, does not end them."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from stream_app.client import AsyncRapportClient, RapportClient, RequestRefused
from stream_app.client.requests import Retries
from stream_app.contracts.events import SessionEnd
from stream_app.importers import matrix_bridge, webhooks
from stream_app.importers.imported import People, Skipped
from stream_app.importers.matrix_bridge import Bridge
from stream_app.importers.order import TimeOrder
from tests.importers.test_chats import HOOK, SLACK, STREAM, message

QUICK = Retries(attempts=1)
SECRET = "s3cret"


class Rapport:
    """Answers like `rapport web`: accepts events, but for the text in `refused`."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.keys: list[str] = []
        self.status = 202
        self.refused = "never"

    def __call__(self, request: httpx.Request) -> httpx.Response:
        events = json.loads(request.content)
        self.keys.append(request.headers["idempotency-key"].strip('"'))
        if self.status != 202:
            return httpx.Response(self.status, json={"detail": "no"})
        results = []
        for index, event in enumerate(events):
            accepted = self.refused not in event.get("text", "")
            self.texts += [event.get("text", "end")] if accepted else []
            code = None if accepted else "too-large"
            results.append({"index": index, "accepted": accepted, "code": code, "detail": code})
        return httpx.Response(202, json={"accepted": 1, "refused": 0, "results": results})


class Matrix:
    """A homeserver with one room; each answer is the next of `timelines`."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.since: list[str | None] = []
        self.missed: list[list[Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("whoami"):
            return httpx.Response(200, json={"user_id": "@me:example.org"})
        if request.url.path.endswith("/messages"):
            assert request.url.params["to"] == self.since[-1]
            if self.missed == [[]]:
                return httpx.Response(403)
            page = {"chunk": self.missed.pop(0) if self.missed else []}
            return httpx.Response(200, json={**page, "end": "more"} if self.missed else page)
        self.since.append(request.url.params.get("since"))
        answer = self.answers[len(self.since) - 1]
        if isinstance(answer, int):
            return httpx.Response(answer)
        timeline = {"timeline": {"events": answer, "limited": True, "prev_batch": "p"}}
        join = {"!r:example.org": timeline, "!odd:example.org": None}
        return httpx.Response(
            200, json={"next_batch": f"s{len(self.since)}", "rooms": {"join": join}}
        )


def bridge(
    folder: Path, server: Matrix, rapport: Rapport, left_out: list[Skipped]
) -> tuple[Bridge, Callable[[], None]]:
    matrix = httpx.Client(base_url="http://m", transport=httpx.MockTransport(server))
    client = RapportClient("http://r", "t", retries=QUICK, transport=httpx.MockTransport(rapport))

    def close() -> None:
        matrix.close()
        client.close()

    return Bridge(matrix, client, folder / "position", People(), left_out.append), close


def numbered(number: int, body: Any = None, **more: Any) -> dict[str, Any]:
    return {
        **message(f"Text {number}." if body is None else body),
        "event_id": f"${number}",
        **more,
    }


def test_one_odd_message_does_not_end_the_bridge(tmp_path: Path) -> None:
    rapport, left_out = Rapport(), list[Skipped]()
    rapport.refused = "huge"
    odd = [numbered(2, content=None), numbered(3, "huge"), "oops", {"event_id": "$" + "x" * 300}]
    server = Matrix([numbered(1), *odd, numbered(9)], [numbered(10)])
    running, close = bridge(tmp_path, server, rapport, left_out)
    running.step()
    running.step()
    close()
    assert rapport.texts == ["Text 1.", "Text 9.", "Text 10."]
    assert server.since == [None, "s1"]  # a restart does not meet it again
    assert (tmp_path / "position").read_text() == "s2"
    reasons = " ".join(map(str, left_out))
    assert "$2" in reasons
    assert "too-large" in reasons


def test_messages_that_were_missed_are_read_before_the_new_ones(tmp_path: Path) -> None:
    rapport, left_out = Rapport(), list[Skipped]()
    server = Matrix([numbered(1)], [numbered(6)])
    server.missed = [[numbered(5), numbered(4)], [numbered(3), numbered(2)]]
    running, close = bridge(tmp_path, server, rapport, left_out)
    running.step()
    running.step()
    close()
    assert rapport.texts == [f"Text {number}." for number in range(1, 7)]
    assert left_out == []


def test_missed_messages_that_nobody_may_read_are_reported(tmp_path: Path) -> None:
    rapport, left_out = Rapport(), list[Skipped]()
    server = Matrix([numbered(1)], [numbered(6)])
    server.missed = [[]]
    running, close = bridge(tmp_path, server, rapport, left_out)
    running.step()
    running.step()
    close()
    assert rapport.texts == ["Text 1.", "Text 6."]
    assert "only 0 of the messages" in left_out[0].reason


def test_the_position_stays_while_rapport_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rapport, left_out = Rapport(), list[Skipped]()
    server = Matrix([numbered(1)], 502, [numbered(1)], [])
    running, close = bridge(tmp_path, server, rapport, left_out)
    rapport.status = 503

    def pause(seconds: float) -> None:
        rapport.status = 202

    monkeypatch.setattr(matrix_bridge.time, "sleep", pause)
    with pytest.raises(IndexError):  # the server has no more answers
        running.run()
    close()
    assert rapport.texts == ["Text 1."]
    assert rapport.keys == ["matrix $1"] * 2
    assert server.since[:4] == [None, None, None, "s3"]
    assert [each.place for each in left_out if "waits" in each.place] == ["the bridge waits"] * 2


@pytest.mark.parametrize(("status", "ends"), [(401, True), (403, True), (413, False), (422, False)])
def test_a_wrong_token_ends_the_bridge_and_a_refused_message_does_not(
    tmp_path: Path, status: int, ends: bool
) -> None:
    rapport, left_out = Rapport(), list[Skipped]()
    rapport.status = status
    running, close = bridge(tmp_path, Matrix([numbered(1)]), rapport, left_out)
    if ends:
        with pytest.raises(RequestRefused):
            running.step()
    else:
        running.step()
    close()
    assert (tmp_path / "position").exists() is not ends


def deliver(
    name: str,
    body: bytes,
    headers: dict[str, str],
    rapport: Rapport,
    left_out: list[Skipped] | None = None,
    query: str = "",
) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.MockTransport(rapport)
        client = AsyncRapportClient("http://r", "t", retries=QUICK, transport=transport)
        report = (left_out if left_out is not None else []).append
        people = dict.fromkeys(webhooks.DESKS, People({"UBEN", "ben"}))
        app = webhooks.create(
            client, {"slack": SECRET, "twilio": SECRET}, report, people, "https://h", wait=0
        )
        asgi = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=asgi, base_url="http://inside") as sender:
            answer = await sender.post(f"/{name}{query}", content=body, headers=headers)
        await client.close()
        return answer

    return asyncio.run(ask())


def slack_headers(body: bytes, at: float | None = None) -> dict[str, str]:
    stamp = str(round(time.time() if at is None else at))
    digest = hmac.new(SECRET.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Signature": f"v0={digest}", "X-Slack-Request-Timestamp": stamp}


def test_slack_delivers_signed_events() -> None:
    rapport, left_out = Rapport(), list[Skipped]()
    body = json.dumps(SLACK).encode()
    assert deliver("slack", body, slack_headers(body), rapport).status_code == 204
    assert rapport.texts == ["Hello & @ben"]
    assert rapport.keys == ["slack Ev123ABC456"]
    for headers in ({}, slack_headers(body, 0), slack_headers(b"x")):
        assert deliver("slack", body, headers, rapport).status_code == 401
    check = json.dumps({"type": "url_verification", "challenge": "3eZb"}).encode()
    assert deliver("slack", check, slack_headers(check), rapport).text == "3eZb"
    for odd in (b"oops", b"[]", json.dumps({**SLACK, "event": None}).encode()):
        answer = deliver("slack", odd, slack_headers(odd), rapport, left_out)
        assert answer.status_code == 200
    assert len(left_out) == 3
    assert len(rapport.texts) == 1


def test_twilio_delivers_signed_forms_and_streams() -> None:
    rapport = Rapport()
    form = urlencode(HOOK).encode()
    signed = "https://h/twilio" + "".join(f"{name}{HOOK[name]}" for name in sorted(HOOK))

    def headers(text: str, kind: str) -> dict[str, str]:
        digest = hmac.new(SECRET.encode(), text.encode(), hashlib.sha1).digest()
        return {"X-Twilio-Signature": base64.b64encode(digest).decode(), "Content-Type": kind}

    of_form = headers(signed, "application/x-www-form-urlencoded; charset=UTF-8")
    assert deliver("twilio", form, of_form, rapport).status_code == 204
    assert rapport.keys == ["twilio onMessageAdded IM02"]
    assert deliver("twilio", form + b"&x=y", of_form, rapport).status_code == 401
    stream = json.dumps(STREAM).encode()
    query = f"?bodySHA256={hashlib.sha256(stream).hexdigest()}"
    of_json = headers(f"https://h/twilio{query}", "application/json")
    assert deliver("twilio", stream, of_json, rapport, query=query).status_code == 204
    assert deliver("twilio", stream + b" ", of_json, rapport, query=query).status_code == 401
    assert rapport.texts == ["Ahoy!", "Ahoy!"]


def test_a_delivery_is_repeated_only_if_that_helps() -> None:
    body = json.dumps(SLACK).encode()
    rapport = Rapport()
    for status, answer in ((503, 503), (401, 502), (413, 200), (422, 200)):
        rapport.status = status
        assert deliver("slack", body, slack_headers(body), rapport).status_code == answer
    rapport.status, rapport.refused = 202, "Hello"
    assert deliver("slack", body, slack_headers(body), rapport).status_code == 200
    long = b"x" * (webhooks.MAX_BYTES + 1)
    assert deliver("slack", long, slack_headers(long), rapport).status_code == 413
    assert deliver("zendesk", body, {}, rapport).status_code == 404


def slack_message(session: str, text: str, second: int) -> bytes:
    """A delivery of a message that was said so many seconds after the recorded one."""
    event = SLACK["event"]
    said = {"channel": session, "text": text, "ts": f"{1700000000 + second}.000100"}
    return json.dumps({**SLACK, "event_id": text, "event": {**event, **said}}).encode()


def test_deliveries_of_a_conversation_are_sent_in_the_order_of_time() -> None:
    rapport = Rapport()
    arrived = [("C1", "third", 3), ("C1", "first", 1), ("C2", "other", 0), ("C1", "second", 2)]

    async def deliver_all() -> list[int]:
        transport = httpx.MockTransport(rapport)
        client = AsyncRapportClient("http://r", "t", retries=QUICK, transport=transport)
        people = {"slack": People({"UBEN"})}
        app = webhooks.create(client, {"slack": SECRET}, print, people, wait=0.2)
        asgi = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=asgi, base_url="http://inside") as sender:

            async def post(body: bytes) -> int:
                answer = await sender.post("/slack", content=body, headers=slack_headers(body))
                return answer.status_code

            answers = await asyncio.gather(*(post(slack_message(*each)) for each in arrived))
        await client.close()
        return answers

    assert asyncio.run(deliver_all()) == [204] * 4
    assert [text for text in rapport.texts if text != "other"] == ["first", "second", "third"]
    assert "other" in rapport.texts


def test_a_delivery_that_fails_does_not_hold_up_the_next() -> None:
    async def run() -> list[str]:
        order, done = TimeOrder(0.01), list[str]()
        early, late = (
            [SessionEnd(session_id="a", occurred_at=datetime(2026, 1, day, tzinfo=UTC))]
            for day in (1, 2)
        )

        async def fail() -> None:
            raise ConnectionError

        async def succeed() -> None:
            done.append("late")

        first = asyncio.create_task(order.run(early, fail))
        await order.run(late, succeed)
        with pytest.raises(ConnectionError):
            await first
        return done

    assert asyncio.run(run()) == ["late"]
