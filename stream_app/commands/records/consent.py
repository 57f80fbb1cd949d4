"""``rapport consent``: sends consent records of a session to the log and lists stored ones."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

import msgspec

from stream_app import bootstrap
from stream_app.commands.events.replay import producer
from stream_app.contracts.events import Consent, ConsentPurpose, ConsentStatus, decode
from stream_app.core.session.ports import Message
from stream_app.errors import ContractError, RapportError
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.sessions import consents
from stream_app.store.sessions.consents import SessionConsent
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.worker.kafka.publishing import publish


def record(
    settings: Settings,
    session_id: str,
    status: ConsentStatus,
    version: str | None,
    source: str,
    speaker_id: str | None,
    purposes: Sequence[ConsentPurpose] = (),
) -> None:
    """Send a consent record; a worker applies it. Audited.

    Raises:
        RapportError: a value is not valid, or no broker answers.
    """
    event = msgspec.json.encode(
        Consent(
            session_id=session_id,
            status=status,
            occurred_at=datetime.now(UTC),
            version=version,
            source=source,
            speaker_id=speaker_id,
            consent_id=str(uuid4()),
            purposes=list(purposes) or msgspec.UNSET,
        )
    )
    try:
        decode(event)
    except ContractError as problem:
        raise RapportError(problem.detail) from None
    store = bootstrap.store(settings)
    try:
        action = AuditAction.RECORD_CONSENT
        audit.record(store, audit.COMMAND_LINE, action, session_id, status.value)
    finally:
        store.close()
    asyncio.run(_send(settings, Message(settings.turns_topic, session_id.encode(), event)))


def of_session(settings: Settings, session_id: str) -> SessionConsent:
    """The stored consent records of a session.

    Raises:
        RapportError: no such session is stored.
    """
    store = bootstrap.store(settings)
    try:
        found = consents.of_session(store, ALL_SESSIONS, session_id)
        if found is not None:
            action = AuditAction.READ_RECORDS
            audit.record(store, audit.COMMAND_LINE, action, session_id, "rapport consent list")
    finally:
        store.close()
    if found is None:
        raise RapportError("no such session is stored")
    return found


async def _send(settings: Settings, message: Message) -> None:
    async with producer(settings) as client:
        await publish(client, [message])
