"""``POST /events``: events over HTTP into Kafka, for platforms without a producer of their own."""

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
from stream_app.web import batch_body
from stream_app.web.auth import Sender
from stream_app.web.problems import documented
from stream_app.web.services import Services, Wired

MOST_EVENTS: Final = 500
MOST_BYTES: Final = 4 * 1024 * 1024
JSON: Final = "application/json"
JSON_LINES: Final = "application/x-ndjson"
router = APIRouter(prefix="/events", tags=["ingest"])
[EVENT_SCHEMA], EVENT_COMPONENTS = msgspec.json.schema_components(
    [Event], ref_template="#/components/schemas/{name}"
)


@dataclass(frozen=True, slots=True)
class EventResult:
    """What became of one event of the batch."""

    index: Annotated[int, Field(ge=0, description="Its place in the batch")]
    accepted: Annotated[bool, Field(description="Whether it stands in the log")]
    topic: str | None = None
    partition: int | None = None
    offset: Annotated[int | None, Field(description="Its place in the partition's log")] = None
    code: Annotated[
        str | None, Field(description="Why not: a dead letter's reason, or `broker`: send it again")
    ] = None
    detail: Annotated[str | None, Field(description="Why not, in words; quotes no dialogue")] = None


@dataclass(frozen=True, slots=True)
class BatchTaken:
    """What became of a batch. Scores follow later; see the live stream."""

    accepted: int
    refused: int
    results: list[EventResult]


_BODY: Final = {
    "requestBody": {
        "required": True,
        "description": f"At most {MOST_EVENTS} events and {MOST_BYTES // 2**20} MiB, "
        f"{MAX_EVENT_BYTES // 1024} KiB each: a JSON array, or JSON lines.",
        "content": {
            JSON: {
                "schema": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MOST_EVENTS,
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
            JSON_LINES: {"schema": {"type": "string", "description": "One event a line"}},
        },
    }
}


@router.post("", status_code=202, openapi_extra=_BODY, responses=documented(413, 415))
async def send_events(request: Request, services: Wired, person: Sender) -> BatchTaken:  # noqa: ARG001
    """Put events into the log, keyed by session, in the order of the batch.

    Each event is validated by itself: those that break the contract are refused with a reason, the
    others are accepted. An accepted event is on all in-sync replicas. Sending a batch again is
    safe: the worker drops turns and outcomes that it knows. Needs the role `ingest`.
    """
    content_type = _content_type(request)
    body = await _body(request)
    results, valid = await run_in_threadpool(
        _validated, content_type, body, services.settings.plausible_times
    )
    for result in await _produced(services, valid):
        results[result.index] = result
    told = [result for result in results if result is not None]
    services.metrics.ingested(told)
    accepted = sum(result.accepted for result in told)
    return BatchTaken(accepted, len(told) - accepted, told)


async def _produced(services: Services, valid: list[tuple[int, Event, bytes]]) -> list[EventResult]:
    """Send in order; raises only if nothing was taken.

    Raises:
        BrokerUnavailable: no broker took any of them.
    """
    topic = services.settings.turns_topic
    sending: list[tuple[int, Any]] = []
    for index, event, value in valid:
        try:
            future = await services.publisher.send(topic, event.session_id.encode(), value)
        except BrokerUnavailable:
            break  # the next one would wait as long
        sending.append((index, future))
    sent = await asyncio.gather(*(future for _, future in sending), return_exceptions=True)
    results = [_result(index, answer) for (index, _), answer in zip(sending, sent, strict=True)]
    if valid and not any(result.accepted for result in results):
        await services.publisher.close()
        raise BrokerUnavailable("the broker took none of the events; send them again later")
    return results + [_lost(index) for index, _, _ in valid[len(sending) :]]


def _result(index: int, answer: Any) -> EventResult:
    if isinstance(answer, KafkaError):
        return _lost(index)
    if isinstance(answer, BaseException):
        raise answer
    return EventResult(index, True, answer.topic, answer.partition, answer.offset)


def _lost(index: int) -> EventResult:
    return EventResult(
        index, accepted=False, code="broker", detail="the broker did not take it; send it again"
    )


def _content_type(request: Request) -> str:
    found = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if found not in (JSON, JSON_LINES):
        raise HTTPException(415, f"send {JSON} (an array) or {JSON_LINES} (an event a line)")
    return found


async def _body(request: Request) -> bytes:
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > MOST_BYTES:
            raise HTTPException(413, f"a batch has {MOST_BYTES} bytes at most; send several")
    return bytes(parts)


def _validated(
    content_type: str, body: bytes, times: PlausibleTimes
) -> tuple[list[EventResult | None], list[tuple[int, Event, bytes]]]:
    """By place what is refused, and the events that are not; it may take a while: in a thread."""
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


def _split(content_type: str, body: bytes) -> list[bytes]:
    """The events of a batch, byte by byte as they came."""
    split = batch_body.of_lines if content_type == JSON_LINES else batch_body.of_array
    try:
        found = split(body, MOST_EVENTS)
    except batch_body.TooMany:
        raise HTTPException(
            413, f"a batch has {MOST_EVENTS} events at most; send several"
        ) from None
    except batch_body.NoArray:
        raise HTTPException(422, "the body is not a JSON array of events") from None
    if not found:
        raise HTTPException(422, "there is no event in the batch")
    return found
