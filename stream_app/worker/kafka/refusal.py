"""Why a broker does not accept this client: one connection that keeps the reason.

aiokafka's clients only log why they could not connect, and raise "unable to bootstrap".
"""

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, NamedTuple, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.conn import AIOKafkaConnection, collect_hosts
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from stream_app.errors import BrokerUnavailable
from stream_app.settings import SaslMechanism, Settings
from stream_app.worker.kafka.kafka_security import security_options
from stream_app.worker.kafka.oauth import NoToken

PATIENCE_MS: Final = 5000
CLOSE_PATIENCE: Final = 1.0

Client = TypeVar("Client", AIOKafkaConsumer, AIOKafkaProducer)


class Refusal(NamedTuple):
    """Why a broker cannot be used; not ``certain`` if it may just be stopping."""

    reason: str
    certain: bool = True


async def refusal(settings: Settings) -> Refusal | None:
    """Why the brokers refuse this client; None if they just do not answer.

    Raises:
        BrokerUnavailable: a setting is missing, or a file cannot be loaded.
    """
    options = security_options(settings)
    for host, port, _ in collect_hosts(settings.kafka_brokers):
        if found := await _ask(settings, host, port, options):
            reason = f"the Kafka broker at {host}:{port} cannot be used: {found.reason}"
            return Refusal(reason, found.certain)
    return None


async def explain(settings: Settings, problem: KafkaError) -> BrokerUnavailable:
    """The error for a client that could not start."""
    if found := await refusal(settings):
        return BrokerUnavailable(found.reason)
    return BrokerUnavailable(
        f"no Kafka broker answers at {settings.kafka_brokers} ({type(problem).__name__}); "
        "check RAPPORT_KAFKA_BROKERS and RAPPORT_KAFKA_SECURITY, or start one with `rapport demo "
        "broker`"
    )


@asynccontextmanager
async def started(client: Client, settings: Settings) -> AsyncIterator[Client]:
    """Start an aiokafka client for the ``with`` block.

    Raises:
        BrokerUnavailable: no broker answers, or one refuses this client.
    """
    try:
        with quiet_client():
            await client.start()
    except KafkaError as problem:
        await client.stop()
        raise await explain(settings, problem) from problem
    try:
        yield client
    finally:
        await client.stop()


_levels_before: list[int] = []
"""Levels before each client that is starting now; the first is the configured one."""


@contextmanager
def quiet_client() -> Iterator[None]:
    """Drop aiokafka's own lines while a client starts: ``explain`` has the reason.

    With the log level DEBUG they stay.
    """
    library = logging.getLogger("aiokafka")
    if library.isEnabledFor(logging.INFO):
        yield
        return
    _levels_before.append(library.level)
    library.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        before = _levels_before.pop()
        if not _levels_before:
            library.setLevel(before)


class _Connection(AIOKafkaConnection):  # type: ignore[misc]  # aiokafka has no types
    broken_by: BaseException | None = None

    def close(self, reason: Any = None, exc: BaseException | None = None) -> Any:
        self.broken_by = self.broken_by or exc
        return super().close(reason, exc)


async def _ask(settings: Settings, host: str, port: int, options: dict[str, Any]) -> Refusal | None:
    connection = _Connection(
        host, port, client_id="rapport", request_timeout_ms=PATIENCE_MS, **options
    )
    try:
        await connection.connect()
        await connection.send(MetadataRequest([]))
    except NoToken as problem:
        return Refusal(f"there is no token to sign in with: {problem}", certain=False)
    except (TimeoutError, KafkaError, OSError) as problem:
        return _refused(settings, connection.broken_by or problem)
    finally:
        if (closed := connection.close()) is not None:  # else the event loop may end before it
            await asyncio.wait([closed], timeout=CLOSE_PATIENCE)
    return None


def _refused(settings: Settings, problem: BaseException) -> Refusal | None:
    match problem:
        case ssl.SSLCertVerificationError():
            reason = (
                f"its certificate was refused ({problem.verify_message.rstrip('.')}); check the "
                "host name and RAPPORT_KAFKA_CA_FILE"
            )
        case ssl.SSLError():
            reason = (
                f"TLS failed ({problem.reason}); check RAPPORT_KAFKA_SECURITY and "
                "RAPPORT_KAFKA_CERTIFICATE_FILE"
            )
        case SaslAuthenticationFailed():
            reason = _sign_in(settings, problem)
        case UnsupportedSaslMechanismError():
            mechanism = settings.kafka_sasl_mechanism.value
            reason = f"it does not offer the SASL mechanism {mechanism}"
        case (KafkaConnectionError() | ConnectionError() | EOFError()) as closed:
            if isinstance(closed, ConnectionRefusedError):
                return None
            reason = (
                "it closed the connection; check RAPPORT_KAFKA_SECURITY "
                f"({settings.kafka_security.value}) and the credentials"
            )
            return Refusal(reason, certain=False)
        case _:
            return None
    return Refusal(reason)


def _sign_in(settings: Settings, problem: SaslAuthenticationFailed) -> str:
    if settings.kafka_sasl_mechanism is not SaslMechanism.OAUTHBEARER:
        return (
            f"it refused the sign-in of {settings.kafka_username} by "
            f"{settings.kafka_sasl_mechanism.value}; check RAPPORT_KAFKA_USERNAME and "
            "RAPPORT_KAFKA_PASSWORD"
        )
    said = str(problem.args[0]) if problem.args else ""
    try:
        said = str(json.loads(said)["status"])
    except (ValueError, KeyError, TypeError):
        said = said[:100]
    return (
        f"it refused the token of {settings.kafka_oauth_client_id} ({said}): the token has "
        "expired, or its audience, scope or issuer is not the broker's; check the clocks and "
        "RAPPORT_KAFKA_OAUTH_SCOPE"
    )
