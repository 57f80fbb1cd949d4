"""Sends consent records of the API and the console to the log; a worker applies them."""

from datetime import UTC, datetime
from uuid import uuid4

import msgspec
from aiokafka.errors import KafkaError
from starlette.concurrency import run_in_threadpool

from stream_app.contracts.events import Consent, ConsentStatus
from stream_app.errors import BrokerUnavailable
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.web.services import Services


def withdrawal(session_id: str, source: str) -> Consent:
    """The record that ends the analysis of a session now."""
    return Consent(
        session_id=session_id,
        status=ConsentStatus.WITHDRAWN,
        occurred_at=datetime.now(UTC),
        source=source,
        consent_id=str(uuid4()),
    )


async def send(services: Services, person: Person, event: Consent) -> None:
    """Audit a consent record and send it.

    Raises:
        BrokerUnavailable: the broker did not accept it.
    """
    await run_in_threadpool(
        audit.record,
        services.store,
        person.name,
        AuditAction.RECORD_CONSENT,
        event.session_id,
        event.status.value,
    )
    topic, key = services.settings.turns_topic, event.session_id.encode()
    try:
        sent = await services.publisher.send(topic, key, msgspec.json.encode(event))
        await sent
    except KafkaError as problem:
        await services.publisher.close()
        raise BrokerUnavailable("the broker did not accept the record; try again") from problem
