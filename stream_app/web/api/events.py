"""``POST /events``: forwards events to Kafka, for platforms without a Kafka producer."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import msgspec
from aiokafka.errors import KafkaError
from fastapi import APIRouter, HTTPException, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from stream_app.contracts.events import MAX_EVENT_BYTES, Event, decode
from stream_app.contracts.plausible import PlausibleTimes
from stream_app.errors import BrokerUnavailable, ContractError
from stream_app.store.people import IngestScope, Right
from stream_app.web import batch_body, ingest_scope
from stream_app.web.auth import Sender, needs
from stream_app.web.problems import problem_responses
from stream_app.web.services import Services, ServicesDep

MAX_EVENTS: Final = 500
MAX_BYTES: Final = 4 * 1024 * 1024
JSON: Final = "application/json"
JSON_LINES: Final = "application/x-ndjson"
router = APIRouter(prefix="/events", tags=["ingest"])
[EVENT_SCHEMA], EVENT_COMPONENTS = msgspec.json.schema_components(
    [Event], ref_template="#/components/schemas/{name}"
)


@dataclass(frozen=True, slots=True)
class EventResult:
    """Result for one event of the batch."""

    index: Annotated[int, Field(ge=0, description="Index in the batch, from 0")]
    accepted: Annotated[bool, Field(description="Whether the event is in the Kafka log")]
    topic: str | None = None
    partition: int | None = None
    offset: Annotated[int | None, Field(description="Offset in the partition")] = None
    code: Annotated[
        str | None, Field(description="Why it was refused: a dead-letter code, or `broker`: retry")
    ] = None
    detail: Annotated[
        str | None, Field(description="The reason in words; never quotes dialogue")
    ] = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Result for a batch. Scores are computed later; see the live stream."""

    accepted: int
    refused: int
    results: list[EventResult]


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


@router.post("", status_code=202, openapi_extra=_BODY, responses=problem_responses(413, 415))
@needs(Right.SEND_EVENTS)
async def send_events(request: Request, services: ServicesDep, person: Sender) -> BatchResult:
    """Send events to Kafka, keyed by session, in the order of the batch.

    Each event is validated separately: invalid events are refused with a reason, the others are
    accepted. An accepted event is stored on all in-sync replicas. Retrying a batch is safe: the
    worker ignores turns and outcomes that it has already processed. Requires the role `ingest`. A
    token may be limited to a team, a domain or a channel: other sessions' events are refused with
    the code `out-of-scope`.
    """
    content_type = _content_type(request)
    body = await _body(request)
    results, valid = await run_in_threadpool(
        _validate, content_type, body, services.settings.plausible_times
    )
    if person.sends.limits:
        valid = await run_in_threadpool(_in_scope, services, person.sends, results, valid)
    for result in await _send_all(services, valid):
        results[result.index] = result
    known = [result for result in results if result is not None]
    services.metrics.count_events(known)
    accepted = sum(result.accepted for result in known)
    return BatchResult(accepted, len(known) - accepted, known)


async def _send_all(services: Services, valid: list[tuple[int, Event, bytes]]) -> list[EventResult]:
    """Send events in order and return a result for each.

    Raises:
        BrokerUnavailable: none of the events could be sent.
    """
    if not valid:
        return []
    topic = services.settings.turns_topic
    sending: list[tuple[int, Any]] = []
    with services.tracing.sending(topic, len(valid)) as trace:
        for index, event, value in valid:
            try:
                key = event.session_id.encode()
                future = await services.publisher.send(topic, key, value, trace)
            except BrokerUnavailable:
                break  # the next event would time out too
            sending.append((index, future))
        sent = await asyncio.gather(*(future for _, future in sending), return_exceptions=True)
    results = [_result(index, answer) for (index, _), answer in zip(sending, sent, strict=True)]
    if not any(result.accepted for result in results):
        await services.publisher.close()
        raise BrokerUnavailable("the broker accepted none of the events; try again later")
    return results + [_not_sent(index) for index, _, _ in valid[len(sending) :]]


def _result(index: int, answer: Any) -> EventResult:
    if isinstance(answer, KafkaError):
        return _not_sent(index)
    if isinstance(answer, BaseException):
        raise answer
    return EventResult(index, True, answer.topic, answer.partition, answer.offset)


def _not_sent(index: int) -> EventResult:
    return EventResult(
        index,
        accepted=False,
        code="broker",
        detail="the broker did not accept the event; try again",
    )


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


def _validate(
    content_type: str, body: bytes, times: PlausibleTimes
) -> tuple[list[EventResult | None], list[tuple[int, Event, bytes]]]:
    """Results by index, None for valid events; and the valid events. Slow: call it in a thread."""
    raw = _split(content_type, body)
    now = datetime.now(UTC)
    results: list[EventResult | None] = [None] * len(raw)
    valid: list[tuple[int, Event, bytes]] = []
    for index, value in enumerate(raw):
        try:
            event = decode(value)
            times.check(event, now)
            valid.append((index, event, value))
        except ContractError as problem:
            results[index] = EventResult(
                index, accepted=False, code=problem.code, detail=problem.detail
            )
    return results, valid


def _in_scope(
    services: Services,
    scope: IngestScope,
    results: list[EventResult | None],
    valid: list[tuple[int, Event, bytes]],
) -> list[tuple[int, Event, bytes]]:
    """Those events that the token may send; the others get a result. Reads the database."""
    known = ingest_scope.origins(services.store, [event.session_id for _, event, _ in valid])
    allowed = []
    for index, event, value in valid:
        detail = ingest_scope.refusal(scope, event, known)
        if detail is None:
            allowed.append((index, event, value))
        else:
            code = ingest_scope.OUT_OF_SCOPE
            results[index] = EventResult(index, accepted=False, code=code, detail=detail)
    return allowed


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
