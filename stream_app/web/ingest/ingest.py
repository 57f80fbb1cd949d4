"""Takes events of programs: validates and numbers them, and sends them to Kafka.

Used by ``POST /events`` and by the WebSocket. The steps of a batch:

1. validation, and the limits of the token;
2. one transaction: the idempotency key is claimed, turns without ``seq`` get their numbers, and
   both are stored with the results so far (``store.ingest_keys``, ``store.turn_numbers``);
3. sending to Kafka, in the order of the batch; a session's turns without ``seq`` that follow each
   other are taken in the order of ``occurred_at``;
4. the final results are stored under the key.

A refused turn with a number of its own leaves a gap, for which the worker would wait: its place is
sent without its text after the others, so that the turn becomes a dead letter and its gap closes.

A crash after step 2 or 3 loses nothing that the program repeats with the same key: the same numbers
are sent again, and the worker ignores the turns that it has.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
from aiokafka.errors import KafkaError
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from stream_app.contracts.events import (
    CLOSES_GAP,
    Event,
    Turn,
    TurnDelete,
    TurnEdit,
    TurnPlace,
    decode,
    place_of_refused,
)
from stream_app.contracts.numbering import MAX_SEQ, lacks_seq, with_seq
from stream_app.core.session import origin
from stream_app.core.session.origin import Origin
from stream_app.errors import BrokerUnavailable, ContractError
from stream_app.store.accounts.people import Person
from stream_app.store.stream import ingest_keys, turn_numbers
from stream_app.store.stream.ingest_keys import Known, Request
from stream_app.store.stream.turn_numbers import SentTurn
from stream_app.web.ingest import ingest_scope
from stream_app.web.services import Services

MAX_EVENTS: Final = 500
MAX_BYTES: Final = 4 * 1024 * 1024
"""Largest batch, in bytes."""
BROKER: Final = "broker"
"""The code of events that the broker did not accept; the same request may be sent again."""


@dataclass(frozen=True, slots=True)
class EventResult:
    """Result for one event of the batch."""

    index: Annotated[int, Field(ge=0, description="Index in the batch, from 0")]
    accepted: Annotated[bool, Field(description="Whether the event is in the Kafka log")]
    seq: Annotated[
        int | None, Field(description="Of a turn: its number, assigned if the turn had none")
    ] = None
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

    @property
    def status(self) -> int:
        """The status of the answer: 422 if nothing was accepted, which no repetition changes."""
        return HTTPStatus.ACCEPTED if self.accepted else HTTPStatus.UNPROCESSABLE_ENTITY


@dataclass(frozen=True, slots=True)
class _Valid:
    """A valid event; ``numbered``: it is a turn without ``seq``, ``event.seq`` has no meaning."""

    event: Event
    raw: bytes
    numbered: bool = False

    @property
    def turn(self) -> SentTurn | None:
        """The turn as it was sent; None for other events."""
        if not isinstance(self.event, Turn):
            return None
        return SentTurn(self.event.session_id, None if self.numbered else self.event.seq)

    def record(self, seq: int | None) -> bytes:
        """The value of the Kafka record."""
        return self.raw if seq is None or not self.numbered else with_seq(self.raw, seq)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A batch before sending: results by index; those without a code are sent.

    ``answered``: the request was made before, and these are its results. ``refused``: places of
    refused turns, which leave gaps.
    """

    results: list[EventResult]
    valid: dict[int, _Valid]
    answered: bool = False
    refused: Sequence[TurnPlace] = ()


async def send_batch(
    services: Services, person: Person, raw: Sequence[bytes], key: str | None
) -> BatchResult:
    """Send events to Kafka, keyed by session, in the order of the batch (see above).

    ``key``: the idempotency key of the batch, if the program has one.

    Raises:
        BrokerUnavailable: none of the events could be sent.
        KeyReused: the key was used for another batch.
        KeyBusy: the same batch is being sent at the moment.
        StoreUnavailable: the database does not answer.
    """
    request = None if key is None else _request(services, person, raw, key)
    plan = await run_in_threadpool(_plan_with_gaps, services, person, raw, request)
    if not plan.answered:
        plan = await _send(services, plan, request)
        await _close_gaps(services, plan.refused)
        services.metrics.count_events(plan.results)
    accepted = sum(result.accepted for result in plan.results)
    return BatchResult(accepted, len(plan.results) - accepted, plan.results)


def _request(services: Services, person: Person, raw: Sequence[bytes], key: str) -> Request:
    """Digests of the sender's key and of the batch."""
    digest = services.store.privacy.pseudonym
    body = hashlib.blake2b()
    for event in raw:
        body.update(b"%d:" % len(event) + event)
    sender = f"{person.name}\0{person.sends.limits}"
    return Request(
        digest(f"idempotency key\0{sender}\0{key}"), digest(f"batch\0{body.hexdigest()}")
    )


def _plan_with_gaps(
    services: Services, person: Person, raw: Sequence[bytes], request: Request | None
) -> _Plan:
    """The plan, with the places of the refused turns in sessions that the sender numbers."""
    plan = _plan(services, person, raw, request)
    found = (place_of_refused(raw[each.index]) for each in plan.results if each.code in CLOSES_GAP)
    mended = {
        TurnPlace(turn.session_id, turn.seq)
        for index, each in plan.valid.items()
        if plan.results[index].code is None and isinstance(turn := each.event, Turn)
    }
    places = [place for place in dict.fromkeys(found) if place is not None and place not in mended]
    if plan.answered or not places:
        return plan
    sender = turn_numbers.owner_of(person.name, person.sends.limits)
    theirs = turn_numbers.numbered_by_sender(
        services.store,
        [place.session_id for place in places],
        sender,
        unknown=not person.sends.limits,
    )
    return replace(plan, refused=[place for place in places if place.session_id in theirs])


def _plan(
    services: Services, person: Person, raw: Sequence[bytes], request: Request | None
) -> _Plan:
    """Validate, claim the key and number the turns. Slow: call it in a thread."""
    now = datetime.now(UTC)
    results, valid = _validate(services, raw, now)
    sender = turn_numbers.owner_of(person.name, person.sends.limits)
    _refuse_other_sessions(services, person, sender, results, valid)
    accepted = [index for index in valid if results[index].code is None]
    turns = {
        index: turn
        for index in _by_time(valid, accepted)
        if (turn := valid[index].turn) is not None
    }
    store = services.store
    if request is None and (
        not turns or turn_numbers.numbered_by_producers(store, list(turns.values()), sender)
    ):
        _set_numbers(results, {i: turn.seq for i, turn in turns.items()})
        return _Plan(results, valid)
    with store.transaction() as connection:
        if request is not None:
            known = ingest_keys.find(store, connection, request, now)
            if known is not None:
                return _Plan(_of_repeated(known, results, valid), valid, known.answered)
        numbered = turn_numbers.assign(store, connection, list(turns.values()), now, sender)
        for index, each in zip(turns, numbered, strict=True):
            code, detail = each.refusal, None
            if code is not None:
                detail = turn_numbers.REFUSALS[code]
            results[index] = replace(results[index], seq=each.seq, code=code, detail=detail)
        _refuse_rest_of_taken(results, valid)
        if request is not None:
            ingest_keys.plan(connection, request, _stored(results))
    return _Plan(results, valid)


def _refuse_rest_of_taken(results: list[EventResult], valid: dict[int, _Valid]) -> None:
    """Refuse the other events of sessions that somebody else has begun since they were checked."""
    taken = {
        each.event.session_id
        for index, each in valid.items()
        if results[index].code == turn_numbers.TAKEN
    }
    for index, each in valid.items():
        if each.event.session_id in taken and results[index].code is None:
            detail = turn_numbers.REFUSALS[turn_numbers.TAKEN]
            results[index] = replace(results[index], code=turn_numbers.TAKEN, detail=detail)


def _of_repeated(
    known: Known, results: list[EventResult], valid: dict[int, _Valid]
) -> list[EventResult]:
    """The stored results, except of events that the settings have come to refuse meanwhile."""
    stored = [EventResult(**each) for each in known.results]
    if known.answered:
        return stored
    return [
        result if result.code is not None or result.index in valid else results[result.index]
        for result in stored
    ]


def _set_numbers(results: list[EventResult], numbers: dict[int, int | None]) -> None:
    for index, seq in numbers.items():
        results[index] = replace(results[index], seq=seq)


def _stored(results: list[EventResult]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in asdict(result).items() if value is not None}
        for result in results
    ]


def _validate(
    services: Services, raw: Sequence[bytes], now: datetime
) -> tuple[list[EventResult], dict[int, _Valid]]:
    """Results by index, with a code for invalid events; and the valid events by index."""
    results: list[EventResult] = []
    valid: dict[int, _Valid] = {}
    for index, value in enumerate(raw):
        numbered = lacks_seq(value)
        code = detail = None
        try:
            # the longest number, because it counts for the size of the event
            event = decode(with_seq(value, MAX_SEQ) if numbered else value)
            services.settings.plausible_times.check(event, now)
            valid[index] = _Valid(event, value, numbered)
        except ContractError as problem:
            code, detail = problem.code, problem.detail
        results.append(EventResult(index, accepted=False, code=code, detail=detail))
    return results, valid


def _refuse_other_sessions(
    services: Services,
    person: Person,
    sender: str,
    results: list[EventResult],
    valid: dict[int, _Valid],
) -> None:
    """Refuse events of sessions that the token may not send to, and contradictions of a session.

    Only the sender who began a session edits and deletes its turns. Reads the database, unless the
    token is not limited, no turn states an origin, and none is edited or deleted.
    """
    limited = bool(person.sends.limits)
    revised = {each.event.session_id for each in valid.values() if _revises(each.event)}
    asked = revised | {
        each.event.session_id
        for each in valid.values()
        if limited or any(origin.stated(each.event, name) for name in origin.NAMES)
    }
    if not asked:
        return
    owners = turn_numbers.owners(services.store, asked if limited else revised)
    foreign = {session_id for session_id, owner in owners.items() if owner != sender}
    # of the sender's own sessions no turn has to be stored yet; the first one stated the limits
    own = Origin(person.sends.team, person.sends.domain, person.sends.channel)
    known = dict.fromkeys(owners.keys() - foreign, own) | services.store.find_begun(list(asked))
    for index, each in valid.items():
        event = each.event
        detail = ingest_scope.refusal(person.sends, event, known, foreign)
        code = ingest_scope.OUT_OF_SCOPE if detail is not None else None
        if code is None and _revises(event) and event.session_id in foreign:
            code, detail = turn_numbers.TAKEN, turn_numbers.REFUSALS[turn_numbers.TAKEN]
        if code is None and isinstance(event, Turn):
            before = known.get(event.session_id, Origin())
            try:
                origin.refuse_contradiction(event, before)
                if event.session_id not in foreign:
                    known[event.session_id] = before.with_turn(event)
            except ContractError as problem:
                code, detail = problem.code, problem.detail
        if code is not None:
            results[index] = replace(results[index], code=code, detail=detail)


def _by_time(valid: dict[int, _Valid], indices: Sequence[int]) -> list[int]:
    """The order of a batch: turns without ``seq`` by time, between the session's other events."""
    runs: dict[str, list[int]] = {}
    complete: list[list[int]] = []
    for index in indices:
        name = valid[index].event.session_id
        if valid[index].numbered:
            runs.setdefault(name, []).append(index)
        elif name in runs:
            complete.append(runs.pop(name))
    moved: dict[int, int] = {}
    for run in (*complete, *runs.values()):
        by_time = sorted(run, key=lambda index: valid[index].event.occurred_at)
        moved |= dict(zip(run, by_time, strict=True))
    return [moved.get(index, index) for index in indices]


def _revises(event: Event) -> bool:
    return isinstance(event, TurnEdit | TurnDelete)


async def _send(services: Services, plan: _Plan, request: Request | None) -> _Plan:
    """Send what has no code yet, and store the results under the key."""
    store, results = services.store, list(plan.results)
    unsent = [index for index, each in enumerate(results) if each.code is None]
    chosen = _by_time(plan.valid, unsent)
    sending: list[tuple[int, Any]] = []
    answers: list[Any] = []
    topic = services.settings.turns_topic
    with services.tracing.sending(topic, len(chosen)) if chosen else nullcontext(()) as trace:
        for index in chosen:
            valid = plan.valid[index]
            value = valid.record(results[index].seq)
            key = valid.event.session_id.encode()
            try:
                future = await services.publisher.send(topic, key, value, trace)
            except BrokerUnavailable:
                break  # the next event would time out too
            sending.append((index, future))
        if request is None and len(sending) < len(chosen):
            await _give_back(services, plan, chosen[len(sending) :])
        answers = await asyncio.gather(*(future for _, future in sending), return_exceptions=True)
    for index in chosen:
        results[index] = _not_sent(results[index])
    for (index, _), answer in zip(sending, answers, strict=True):
        results[index] = _result(results[index], answer)
    complete = all(result.code != BROKER for result in results)
    if request is not None:
        if complete:
            await run_in_threadpool(ingest_keys.answer, store, request, _stored(results))
        else:
            await run_in_threadpool(ingest_keys.release, store, request)
    if chosen and not any(result.accepted for result in results):
        await services.publisher.close()
        raise BrokerUnavailable("the broker accepted none of the events; try again later")
    return replace(plan, results=results)


async def _close_gaps(services: Services, places: Sequence[TurnPlace]) -> None:
    """Send the places of refused turns, without text; if that fails, the worker waits as before."""
    topic = services.settings.turns_topic
    futures = []
    for place in places:
        value = msgspec.json.encode({**msgspec.to_builtins(place), "text": ""})
        try:
            key = place.session_id.encode()
            futures.append(await services.publisher.send(topic, key, value, ()))
        except BrokerUnavailable:
            break
    await asyncio.gather(*futures, return_exceptions=True)


async def _give_back(services: Services, plan: _Plan, indices: Sequence[int]) -> None:
    """Give back the numbers of turns that were not handed to the producer."""
    numbers = [
        (plan.valid[index].event.session_id, seq)
        for index in indices
        if plan.valid[index].numbered and (seq := plan.results[index].seq) is not None
    ]
    if numbers:
        await run_in_threadpool(turn_numbers.give_back, services.store, numbers)


def _result(planned: EventResult, answer: Any) -> EventResult:
    if isinstance(answer, KafkaError):
        return planned
    if isinstance(answer, BaseException):
        raise answer
    return EventResult(
        planned.index,
        accepted=True,
        seq=planned.seq,
        topic=answer.topic,
        partition=answer.partition,
        offset=answer.offset,
    )


def _not_sent(planned: EventResult) -> EventResult:
    detail = "the broker did not accept the event; try again"
    return replace(planned, code=BROKER, detail=detail)
