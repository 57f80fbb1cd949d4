"""Receives webhooks of Zendesk and Intercom, and sends their messages to Rapport as turns.

    RAPPORT_URL=… RAPPORT_TOKEN=… ZENDESK_SECRET=… INTERCOM_SECRET=… \
        uvicorn --factory helpdesk_webhook:from_environment

Point an Intercom webhook to `/intercom` (topics `conversation.user.created`, `….user.replied`,
`….admin.replied` and `….admin.closed`), and a Zendesk webhook to `/zendesk`, with this JSON body
in a trigger on public comments:

    {"ticket": "{{ticket.id}}", "status": "{{ticket.status}}",
     "author": "{{current_user.id}}", "agent": "{{current_user.is_agent}}",
     "text": "{{ticket.latest_public_comment}}", "at": "{{ticket.updated_at_with_timestamp}}"}

A delivery that is repeated adds nothing: its id is the idempotency key. Without an answer from
Rapport the answer is 503, and the help desk delivers again.
"""

import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stream_app.client import AsyncRapportClient, RequestRefused, ServiceUnavailable, end, turn
from stream_app.client.events import Sendable

MAX_AGE = 300
"""Seconds; an older signature of Zendesk may be a recorded one."""
ABOUT = {"domain": "customer-service", "channel": "help-desk"}
CONSENT = None
"""True only if your terms ask for the consent to this analysis; else send consent records."""


def zendesk_signed(secret: str, request: Request, body: bytes) -> bool:
    """Whether Zendesk signed this body lately: base64 of HMAC-SHA256 of time and body."""
    at = request.headers.get("x-zendesk-webhook-signature-timestamp", "")
    digest = hmac.new(secret.encode(), at.encode() + body, hashlib.sha256).digest()
    given = request.headers.get("x-zendesk-webhook-signature", "")
    try:
        age = abs(time.time() - datetime.fromisoformat(at).timestamp())
    except ValueError:
        return False
    return age <= MAX_AGE and hmac.compare_digest(base64.b64encode(digest), given.encode())


def intercom_signed(secret: str, request: Request, body: bytes) -> bool:
    """Whether Intercom signed this body: HMAC-SHA1, as Intercom defines it."""
    digest = hmac.new(secret.encode(), body, hashlib.sha1).hexdigest()
    given = request.headers.get("x-hub-signature", "")
    return hmac.compare_digest(f"sha1={digest}".encode(), given.encode())


def zendesk_events(payload: dict[str, Any]) -> Iterator[Sendable]:
    """The comment of a ticket, and the end of a solved one."""
    session, at = f"zendesk-{payload['ticket']}", datetime.fromisoformat(payload["at"])
    if text := payload["text"].strip():
        role = "counsellor" if payload["agent"] == "true" else "client"
        who = f"zendesk-{payload['author']}"
        yield turn(session, role, text, speaker_id=who, occurred_at=at, consent=CONSENT, **ABOUT)
    if payload["status"].lower() in ("solved", "closed"):
        yield end(session, payload["status"], at)


def intercom_events(payload: dict[str, Any]) -> Iterator[Sendable]:
    """The messages of a notification, and the end of a closed conversation."""
    item, topic = payload["data"]["item"], payload["topic"]
    session, created = f"intercom-{item['id']}", payload["created_at"]
    parts = item.get("conversation_parts", {}).get("conversation_parts", [])
    if topic == "conversation.user.created":
        parts = [{**item["source"], "created_at": item["created_at"]}]
    for part in parts:
        author, text = part["author"], plain(part.get("body") or "")
        if text and author["type"] != "bot":
            role = "counsellor" if author["type"] in ("admin", "team") else "client"
            at = datetime.fromtimestamp(part["created_at"], UTC)
            who = f"intercom-{author['id']}"
            yield turn(
                session, role, text, speaker_id=who, occurred_at=at, consent=CONSENT, **ABOUT
            )
    if topic == "conversation.admin.closed":
        yield end(session, "closed", datetime.fromtimestamp(created, UTC))


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.parts.append("\n" if tag in ("br", "p", "li", "div") else "")


def plain(html: str) -> str:
    """The text of an HTML message."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    return "".join(parser.parts).strip()


DESKS = {
    "zendesk": (zendesk_signed, zendesk_events),
    "intercom": (intercom_signed, intercom_events),
}


def create(rapport: AsyncRapportClient, secrets: dict[str, str]) -> Starlette:
    """The receiver; ``secrets`` of the desks that may send."""

    async def receive(request: Request) -> Response:
        desk, body = request.path_params["desk"], await request.body()
        if desk not in DESKS or not (secret := secrets.get(desk)):
            return Response("unknown help desk", 404)
        signed, events_of = DESKS[desk]
        if not signed(secret, request, body):
            return Response("the signature is not valid", 401)
        try:
            payload = json.loads(body)
            events = list(events_of(payload))
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            return Response(f"the payload is not as expected ({type(problem).__name__})", 422)
        delivery = request.headers.get("x-zendesk-webhook-invocation-id") or payload.get("id")
        try:
            results = await rapport.send(*events, key=f"{desk} {delivery}" if delivery else None)
        except ServiceUnavailable:
            return Response("try again", 503, {"Retry-After": "30"})
        except RequestRefused as problem:
            return Response(str(problem), 502)
        refused = [result.detail for result in results if not result.accepted]
        return Response("; ".join(map(str, refused)), 422 if refused else 204)

    return Starlette(routes=[Route("/{desk}", receive, methods=["POST"])])


def from_environment() -> Starlette:
    """The receiver with the settings of the environment."""
    rapport = AsyncRapportClient(os.environ["RAPPORT_URL"], os.environ["RAPPORT_TOKEN"])
    return create(rapport, {name: os.environ.get(f"{name.upper()}_SECRET", "") for name in DESKS})
