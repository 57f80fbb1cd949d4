"""Receives webhooks of Zendesk, Intercom, Slack and Twilio, and sends their messages to Rapport.

What is not sent is reported and answered with 200: a help desk would repeat another answer, and
switch the webhook off after some of them. A delivery that is repeated adds nothing: its id is the
idempotency key. Without an answer from Rapport the answer is 503, and the service delivers again.
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl

from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stream_app.client import AsyncRapportClient, RequestRefused, ServiceUnavailable
from stream_app.client.events import Sendable
from stream_app.importers import imported, intercom, slack, twilio, zendesk
from stream_app.importers.imported import Item, People, Report, Skipped
from stream_app.importers.matrix_bridge import MISCONFIGURED
from stream_app.importers.order import WAIT, TimeOrder

MAX_AGE: Final = 300.0
"""Seconds; an older signature may be a recorded one."""
MAX_BYTES: Final = 1024 * 1024
"""Largest delivery, in bytes."""
FORM: Final = "application/x-www-form-urlencoded"


class Delivery(Struct, frozen=True):
    """A webhook's request. ``url``: the public one, which Twilio signs."""

    headers: Mapping[str, str]
    body: bytes
    url: str

    def payload(self) -> Any:
        """The body, JSON or a form.

        Raises:
            ValueError: it is neither.
        """
        if self.headers.get("content-type", "").startswith(FORM):
            return dict(parse_qsl(self.body.decode(), keep_blank_values=True))
        return json.loads(self.body)


class Desk(Struct, frozen=True):
    """How a service signs, names and describes its deliveries."""

    signed: Callable[[str, Delivery], bool]
    delivery: Callable[[Delivery, Any], Any]
    events: Callable[[Any, People], Iterator[Item]]


def zendesk_signed(secret: str, delivery: Delivery) -> bool:
    """Whether Zendesk signed this lately: base64 of HMAC-SHA256 of time and body."""
    at = delivery.headers.get("x-zendesk-webhook-signature-timestamp", "")
    digest = hmac.new(secret.encode(), at.encode() + delivery.body, hashlib.sha256).digest()
    try:
        moment = datetime.fromisoformat(at).timestamp()
    except ValueError:
        return False
    given = delivery.headers.get("x-zendesk-webhook-signature", "")
    return _is_recent(moment) and _equal(base64.b64encode(digest), given)


def intercom_signed(secret: str, delivery: Delivery) -> bool:
    """Whether Intercom signed this: HMAC-SHA1, as Intercom defines it."""
    digest = hmac.new(secret.encode(), delivery.body, hashlib.sha1).hexdigest()
    return _equal(f"sha1={digest}".encode(), delivery.headers.get("x-hub-signature", ""))


def slack_signed(secret: str, delivery: Delivery) -> bool:
    """Whether Slack signed this lately: HMAC-SHA256 of version, time and body."""
    at = delivery.headers.get("x-slack-request-timestamp", "")
    base = b"v0:" + at.encode() + b":" + delivery.body
    digest = hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()
    given = delivery.headers.get("x-slack-signature", "")
    return at.isdecimal() and _is_recent(float(at)) and _equal(f"v0={digest}".encode(), given)


def twilio_signed(secret: str, delivery: Delivery) -> bool:
    """Whether Twilio signed this: HMAC-SHA1 of the URL and the form, or of a digest in the URL."""
    signed = delivery.url
    if delivery.headers.get("content-type", "").startswith(FORM):
        form = parse_qsl(delivery.body.decode("utf-8", "replace"), keep_blank_values=True)
        signed += "".join(name + value for name, value in sorted(form))
    elif hashlib.sha256(delivery.body).hexdigest() not in delivery.url:
        return False
    digest = hmac.new(secret.encode(), signed.encode(), hashlib.sha1).digest()
    return _equal(base64.b64encode(digest), delivery.headers.get("x-twilio-signature", ""))


DESKS: Final[Mapping[str, Desk]] = {
    "zendesk": Desk(
        zendesk_signed,
        lambda sent, payload: (
            sent.headers.get("x-zendesk-webhook-invocation-id") or payload.get("id")
        ),
        lambda payload, people: zendesk.events_of(payload, people.consent),
    ),
    "intercom": Desk(
        intercom_signed,
        lambda _, payload: payload.get("id"),
        lambda payload, people: intercom.events_of(payload, people.consent),
    ),
    "slack": Desk(slack_signed, lambda _, payload: payload.get("event_id"), slack.events_of),
    "twilio": Desk(
        twilio_signed,
        lambda _, payload: (
            f"{payload.get('EventType')} {payload['MessageSid']}"
            if payload.get("MessageSid")
            else payload.get("id")
        ),
        twilio.events_of,
    ),
}


def create(
    rapport: AsyncRapportClient,
    secrets: Mapping[str, str],
    report: Report,
    people: Mapping[str, People] | None = None,
    url: str | None = None,
    wait: float = WAIT,
) -> Starlette:
    """The receiver, with a path for each service.

    Args:
        rapport: sends the events.
        secrets: of the services that may send, by path: `zendesk`, `intercom`, `slack`, `twilio`.
        report: gets what is not sent.
        people: by path; Slack and Twilio do not say who is a counsellor.
        url: the public URL of the receiver, if a proxy changes it; Twilio signs it.
        wait: seconds in which an earlier message of a conversation may still arrive.
    """
    in_order = TimeOrder(wait)

    async def receive(request: Request) -> Response:
        name = request.path_params["desk"]
        if name not in DESKS or not (secret := secrets.get(name)):
            return Response("unknown service", 404)
        body = await _body(request)
        if body is None:
            return Response("the delivery is too long", 413)
        public = f"{url.rstrip('/')}/{name}" if url else str(request.url.replace(query=""))
        query = f"?{request.url.query}" if request.url.query else ""
        delivery = Delivery(request.headers, body, public + query)
        if not DESKS[name].signed(secret, delivery):
            return Response("the signature is not valid", 401)
        try:
            payload = delivery.payload()
            key = DESKS[name].delivery(delivery, payload)
        except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
            return _left_out([Skipped(name, "the delivery is no JSON object or form")], report)
        if name == "slack" and payload.get("type") == "url_verification":
            return Response(str(payload.get("challenge", "")))
        items = list(DESKS[name].events(payload, (people or {}).get(name, People())))
        known = imported.key(name, str(key)) if key else None
        return await _send(rapport, in_order, items, known, report)

    return Starlette(routes=[Route("/{desk}", receive, methods=["POST"])])


async def _body(request: Request) -> bytes | None:
    """The body; None if it is too long."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BYTES:
            return None
    return bytes(body)


async def _send(
    rapport: AsyncRapportClient,
    in_order: TimeOrder,
    items: Sequence[Item],
    key: str | None,
    report: Report,
) -> Response:
    left_out = [item for item in items if isinstance(item, Skipped)]
    events: list[Sendable] = [item for item in items if not isinstance(item, Skipped)]
    try:
        send = partial(rapport.send, *events, key=key)
        results = await in_order.run(events, send) if events else []
    except ServiceUnavailable:
        return Response("try again", 503, {"Retry-After": "30"})
    except RequestRefused as problem:
        if problem.status in MISCONFIGURED:
            return Response(str(problem), 502)
        return _left_out([*left_out, Skipped(str(key), str(problem))], report)
    for event, result in zip(events, results, strict=True):
        if not result.accepted:
            reason = f"refused ({result.code}): {result.detail}"
            left_out.append(Skipped(event.session_id, reason))
    return _left_out(left_out, report)


def _left_out(skipped: Sequence[Skipped], report: Report) -> Response:
    for each in skipped:
        report(each)
    return Response("; ".join(map(str, skipped)), 200) if skipped else Response(status_code=204)


def _is_recent(moment: float) -> bool:
    return abs(time.time() - moment) <= MAX_AGE


def _equal(digest: bytes, given: str) -> bool:
    return hmac.compare_digest(digest, given.encode())
