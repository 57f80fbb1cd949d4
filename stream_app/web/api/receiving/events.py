"""``POST /events``: forwards events to Kafka, for platforms without a Kafka producer."""

from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Header, HTTPException, Request, Response
from starlette.concurrency import run_in_threadpool

from stream_app.contracts import batch_body
from stream_app.contracts.events import MAX_EVENT_BYTES, Event
from stream_app.store.accounts.roles import Right
from stream_app.web.ingest import ingest
from stream_app.web.ingest.ingest import MAX_BYTES, MAX_EVENTS, BatchResult
from stream_app.web.problems import problem_responses
from stream_app.web.services import ServicesDep
from stream_app.web.sign_in.auth import Sender, needs

MAX_KEY_CHARS: Final = 200
KEY_PATTERN: Final = rf'^("[ !#-\[\]-~]{{1,{MAX_KEY_CHARS}}}"|[!#-~]{{1,{MAX_KEY_CHARS}}})$'
"""A string of a structured header (RFC 9651) without escapes, or its characters alone."""
JSON: Final = "application/json"
JSON_LINES: Final = "application/x-ndjson"
router = APIRouter(prefix="/events", tags=["ingest"])


def _schemas() -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of an event, and its components; turns may lack ``seq`` here."""
    [event], components = msgspec.json.schema_components(
        [Event], ref_template="#/components/schemas/{name}"
    )
    turn = components["Turn"]
    turn["required"] = [name for name in turn["required"] if name != "seq"]
    turn["description"] = "One utterance. Without `seq`, Rapport numbers it."
    return event, components


EVENT_SCHEMA, EVENT_COMPONENTS = _schemas()


_BODY: Final = {
    "requestBody": {
        "required": True,
        "description": f"At most {MAX_EVENTS} events and {MAX_BYTES // 2**20} MiB, "
        f"{MAX_EVENT_BYTES // 1024} KiB each: a JSON array, or JSON lines.",
        "content": {
            JSON: {
                "schema": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MAX_EVENTS,
                    "items": EVENT_SCHEMA,
                },
                "example": [
                    {
                        "type": "turn",
                        "session_id": "chat-4711",
                        "seq": 0,
                        "speaker_id": "client-77",
                        "role": "client",
                        "text": "I have not slept since Tuesday.",
                        "occurred_at": "2026-03-02T09:15:00Z",
                        "domain": "counselling",
                        "team": "north",
                        "consent": True,
                    },
                    {
                        "type": "session_end",
                        "session_id": "chat-4711",
                        "occurred_at": "2026-03-02T09:52:00Z",
                    },
                ],
            },
            JSON_LINES: {"schema": {"type": "string", "description": "One event per line"}},
        },
    }
}


_NOTHING_ACCEPTED: Final = {
    "description": "No event was accepted: as JSON, a result for each event. Or the request is "
    "invalid: problem details, where `errors` lists the invalid parts",
    "model": BatchResult,
}


Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=MAX_KEY_CHARS + 2,
        pattern=KEY_PATTERN,
        description="A new value for each batch, such as a UUID. A repeated request with the same "
        "key gets the same results and numbers, and adds nothing. Kept for at least 24 hours",
        examples=["8e03978e-40d5-43dd-bc93-6894a57f9324"],
    ),
]


@router.post(
    "",
    status_code=202,
    openapi_extra=_BODY,
    responses={**problem_responses(409, 413, 415), 422: _NOTHING_ACCEPTED},
)
@needs(Right.SEND_EVENTS)
async def send_events(
    request: Request,
    response: Response,
    services: ServicesDep,
    person: Sender,
    idempotency_key: Key = None,
) -> BatchResult:
    """Send events to Kafka, keyed by session, in the order of the batch.

    Each event is validated separately: invalid events are refused with a reason, the others are
    accepted. If none is, the status is 422, with the same answer: a result for each event. An
    accepted event is stored on all in-sync replicas. Requires the role `ingest`. A
    token may be limited to a team, a domain or a channel: other sessions' events are refused with
    the code `out-of-scope`. A session belongs to the account and limits of the token that sent its
    first turn (`session-taken`), and keeps its team, domain and channel (`contradicts-session`).

    Turns may be sent without `seq`: they are numbered in the order in which they arrive, those of
    one batch in the order of `occurred_at`, and `results` has the numbers. A session has turns with
    numbers or turns without, never both (`numbered-by-producer`, `numbered-by-gateway`).

    Send an `Idempotency-Key` with turns without `seq`, so that a request without an answer can be
    repeated. With numbers of your own, repeating is safe without a key: the worker ignores turns
    and outcomes that it has already processed. 409 (`key-busy`): the first request with this key
    is in progress. 422 (`key-reused`): the key belongs to another body.
    """
    content_type = _content_type(request)
    raw = await run_in_threadpool(_split, content_type, await _body(request))
    services.events_sent.count(person.name, len(raw))
    result = await ingest.send_batch(services, person, raw, bare_key(idempotency_key))
    response.status_code = result.status
    return result


def bare_key(header: str | None) -> str | None:
    """The key without the quotation marks of a structured header.

    >>> bare_key('"k-1"'), bare_key("k-1"), bare_key(None)
    ('k-1', 'k-1', None)
    """
    return header if header is None else header.strip('"')


def _content_type(request: Request) -> str:
    found = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if found not in (JSON, JSON_LINES):
        raise HTTPException(415, f"send {JSON} (an array) or {JSON_LINES} (one event per line)")
    return found


async def _body(request: Request) -> bytes:
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > MAX_BYTES:
            raise HTTPException(413, f"a batch may have at most {MAX_BYTES} bytes; split it")
    return bytes(parts)


def _split(content_type: str, body: bytes) -> list[bytes]:
    """Split a batch into events, as the bytes that were sent."""
    split = batch_body.split_lines if content_type == JSON_LINES else batch_body.split_array
    try:
        found = split(body, MAX_EVENTS)
    except batch_body.TooManyEvents:
        raise HTTPException(
            413, f"a batch may have at most {MAX_EVENTS} events; split it"
        ) from None
    except batch_body.NotAnArray:
        raise HTTPException(422, "the body is not a JSON array of events") from None
    if not found:
        raise HTTPException(422, "the batch has no events")
    return found
