"""How Kafka clients encrypt and sign in: TLS, client certificates, SASL."""

import ssl
from typing import Any, Final
from urllib.parse import urlsplit

from stream_app.errors import BrokerUnavailable
from stream_app.settings import SaslMechanism, SecurityProtocol, Settings
from stream_app.worker.kafka.oauth import TokenProvider
from stream_app.worker.kafka.tls import client_context

WITH_TLS: Final = (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)
WITH_SASL: Final = (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def security_options(settings: Settings) -> dict[str, Any]:
    """Options of aiokafka's clients for encryption and sign-in.

    Raises:
        BrokerUnavailable: a setting is missing, or a file cannot be loaded.
    """
    protocol, mechanism = settings.kafka_security, settings.kafka_sasl_mechanism
    options: dict[str, Any] = {"security_protocol": protocol.value}
    if protocol in WITH_TLS:
        options["ssl_context"] = ssl_context(settings)
    if protocol in WITH_SASL:
        options["sasl_mechanism"] = mechanism.value
        if mechanism is SaslMechanism.OAUTHBEARER:
            options["sasl_oauth_token_provider"] = token_provider(settings)
        else:
            _need(settings, "kafka_username", "kafka_password")
            options["sasl_plain_username"] = settings.kafka_username
            options["sasl_plain_password"] = _secret(settings.kafka_password)
    return options


def ssl_context(settings: Settings) -> ssl.SSLContext:
    """Check the broker against the system's authorities, or only RAPPORT_KAFKA_CA_FILE.

    Raises:
        BrokerUnavailable: a file cannot be loaded.
    """
    return client_context(
        "RAPPORT_KAFKA",
        settings.kafka_ca_file,
        settings.kafka_certificate_file,
        settings.kafka_key_file,
        _secret(settings.kafka_key_password),
        BrokerUnavailable,
    )


def token_provider(settings: Settings) -> TokenProvider:
    """A source of tokens for OAUTHBEARER.

    Raises:
        BrokerUnavailable: a setting is missing, or the token endpoint is without HTTPS.
    """
    _need(settings, "kafka_oauth_token_url", "kafka_oauth_client_id", "kafka_oauth_client_secret")
    url = settings.kafka_oauth_token_url or ""
    parsed = urlsplit(url)
    if parsed.scheme != "https" and (parsed.scheme != "http" or parsed.hostname not in LOOPBACK):
        raise BrokerUnavailable(
            "RAPPORT_KAFKA_OAUTH_TOKEN_URL must be an https URL (http only on loopback): "
            "the client's secret is sent to it"
        )
    return TokenProvider(
        url,
        settings.kafka_oauth_client_id or "",
        _secret(settings.kafka_oauth_client_secret),
        settings.kafka_oauth_scope,
    )


def _need(settings: Settings, *names: str) -> None:
    if missing := [name for name in names if getattr(settings, name) is None]:
        raise BrokerUnavailable(
            f"RAPPORT_KAFKA_SECURITY={settings.kafka_security.value} with "
            f"{settings.kafka_sasl_mechanism.value} needs "
            + " and ".join(f"RAPPORT_{name.upper()}" for name in missing)
        )


def _secret(value: Any) -> str:
    return value.get_secret_value() if value is not None else ""
