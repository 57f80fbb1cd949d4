"""Registers the schemas of published messages in a schema registry, and returns their ids.

The registry speaks Confluent's REST API. Subjects are named after topics (TopicNameStrategy:
``TOPIC-value``), and whether a new version of a schema is compatible is the registry's decision.
Ids are read once, at start: afterwards a worker does not need the registry.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Final
from urllib.parse import quote, urlsplit

import httpx
import msgspec
import structlog
from msgspec import Meta, Struct
from tenacity import (
    Retrying,
    retry_if_exception_type,
    stop_after_delay,
    wait_random_exponential,
)

from stream_app.contracts import schema
from stream_app.contracts.framing import MAX_SCHEMA_ID
from stream_app.errors import RapportError
from stream_app.settings import Settings
from stream_app.worker.kafka.kafka_security import LOOPBACK
from stream_app.worker.kafka.tls import client_context

log = structlog.get_logger(__name__)

PATIENCE: Final = 30.0
"""Seconds for which a worker that starts waits for the registry."""
TIMEOUT: Final = 10.0
CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
MAX_REASON: Final = 200
_HINT_ADDRESS: Final = "RAPPORT_SCHEMA_REGISTRY_URL must be the address of its Confluent REST API"
_NO_ADDRESS: Final = "RAPPORT_SCHEMA_REGISTRY_URL must be an http or https address"
_NOT_FOUND: Final = (40401, 40403)
"""Error codes: there is no such subject, or it does not have this schema."""


class RegistryRefused(RapportError):
    """The schema registry does not answer, or does not accept or know a schema."""


class RegistrySilent(RegistryRefused):
    """The schema registry does not answer; it may later."""


class NotRegistered(RegistryRefused):
    """The schema registry does not have a schema."""


class _Registered(Struct, frozen=True):
    id: Annotated[int, Meta(ge=0, le=MAX_SCHEMA_ID)]


class _Refusal(Struct, frozen=True):
    error_code: int = 0
    message: str = ""


def published_schemas(settings: Settings) -> dict[str, tuple[str, int]]:
    """Names and versions of the schemas of what a worker publishes, by topic."""
    return {
        settings.turn_score_topic: ("turn_score", settings.score_schema),
        settings.session_score_topic: ("session_score", settings.score_schema),
        settings.alert_topic: ("alert", schema.VERSION),
    }


def subject(topic: str) -> str:
    """The subject of a topic's values (TopicNameStrategy)."""
    return f"{topic}-value"


def schema_ids(settings: Settings, patience: float = PATIENCE) -> dict[str, int]:
    """The ids of the published messages' schemas by topic; empty without a registry.

    Registers schemas that the registry does not have, unless RAPPORT_SCHEMA_REGISTRY_REGISTER is
    false. Waits up to ``patience`` seconds for a registry that does not answer.

    Raises:
        RegistryRefused: a setting is not valid, there is no answer, or a schema is refused.
    """
    if settings.schema_registry_url is None:
        return {}
    found = dict(_ids(settings, settings.schema_registry_url, patience))
    log.info("registry.schemas", ids=found)
    return found


def _ids(settings: Settings, url: str, patience: float) -> Iterator[tuple[str, int]]:
    with _client(settings, url) as client:
        for topic, (name, version) in published_schemas(settings).items():
            for attempt in Retrying(
                retry=retry_if_exception_type(RegistrySilent),
                wait=wait_random_exponential(multiplier=0.2, max=3.0),
                stop=stop_after_delay(patience),
                reraise=True,
            ):
                with attempt:
                    found = _id(client, subject(topic), name, version, settings)
            yield topic, found


def _id(client: httpx.Client, of: str, name: str, version: int, settings: Settings) -> int:
    path = f"subjects/{quote(of, safe='')}"
    if settings.schema_registry_register:
        path += "/versions"
    built = schema.build(name, version)
    body = {"schemaType": "JSON", "schema": json.dumps(built, ensure_ascii=False)}
    where = f"the schema registry {client.base_url.host}"
    try:
        response = client.post(path, json=body)
    except httpx.HTTPError as problem:
        if "CERTIFICATE_VERIFY_FAILED" in str(problem):
            raise RegistryRefused(f"{where} does not answer: its certificate was refused") from None
        raise RegistrySilent(
            f"{where} does not answer ({type(problem).__name__}): is it running, and is "
            "RAPPORT_SCHEMA_REGISTRY_URL its address?"
        ) from None
    if response.status_code == httpx.codes.OK:
        try:
            return msgspec.json.decode(response.content, type=_Registered).id
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise RegistryRefused(
                f"{where} answered without the id of a schema: {_HINT_ADDRESS}"
            ) from None
    raise _refused(where, of, name, response)


def _refused(where: str, of: str, name: str, response: httpx.Response) -> RegistryRefused:
    """What the registry's answer means for the person who starts a worker."""
    status, refusal = response.status_code, _refusal(response)
    said = f": {refusal.message}" if refusal.message else ""
    if status == httpx.codes.TOO_MANY_REQUESTS or status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return RegistrySilent(f"{where} cannot answer now (status {status}){said}")
    if status == httpx.codes.NOT_FOUND and refusal.error_code in _NOT_FOUND:
        return NotRegistered(
            f"{where} does not have this release's schema {name} under {of}: register it "
            "(docs/schemas.md), or set RAPPORT_SCHEMA_REGISTRY_REGISTER=true"
        )
    if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        what = (
            f"refuses the login (status {status}){said}; see RAPPORT_SCHEMA_REGISTRY_USERNAME, "
            "_PASSWORD and _REGISTER"
        )
    elif status == httpx.codes.CONFLICT:
        what = f"calls the schema {name} incompatible with those of {of}{said}"
    elif status == httpx.codes.UNPROCESSABLE_ENTITY:
        what = f"does not accept the schema {name} for {of}{said}"
    else:
        what = f"answered with status {status}{said}; {_HINT_ADDRESS}"
    return RegistryRefused(f"{where} {what}")


def _refusal(response: httpx.Response) -> _Refusal:
    """The registry's error; its text is shortened to one printable line."""
    try:
        found = msgspec.json.decode(response.content, type=_Refusal)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Refusal()
    line = "".join(c if c.isprintable() else " " for c in found.message[:MAX_REASON])
    return _Refusal(found.error_code, line.strip())


def _client(settings: Settings, url: str) -> httpx.Client:
    try:
        parsed = urlsplit(url)
        address = httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        raise RegistryRefused(_NO_ADDRESS) from None
    if parsed.scheme not in ("http", "https") or not parsed.hostname:
        raise RegistryRefused(_NO_ADDRESS)
    if parsed.username is not None or parsed.password is not None:
        raise RegistryRefused(
            "RAPPORT_SCHEMA_REGISTRY_URL must not contain a login: set "
            "RAPPORT_SCHEMA_REGISTRY_USERNAME and RAPPORT_SCHEMA_REGISTRY_PASSWORD_FILE"
        )
    name, secret = settings.schema_registry_username, settings.schema_registry_password
    login = None
    if name is not None and secret is not None:
        if parsed.scheme != "https" and parsed.hostname not in LOOPBACK:
            raise RegistryRefused(
                "RAPPORT_SCHEMA_REGISTRY_URL must be an https address (http only on loopback): "
                "the password is sent to it"
            )
        login = httpx.BasicAuth(name, secret.get_secret_value())
    elif name is not None or secret is not None:
        raise RegistryRefused(
            "RAPPORT_SCHEMA_REGISTRY_USERNAME and RAPPORT_SCHEMA_REGISTRY_PASSWORD need each other"
        )
    key_password = settings.schema_registry_key_password
    verify = client_context(
        "RAPPORT_SCHEMA_REGISTRY",
        settings.schema_registry_ca_file,
        settings.schema_registry_certificate_file,
        settings.schema_registry_key_file,
        key_password.get_secret_value() if key_password else "",
        RegistryRefused,
    )
    return httpx.Client(
        base_url=address,
        auth=login,
        verify=verify,
        timeout=TIMEOUT,
        headers={"content-type": CONTENT_TYPE, "accept": CONTENT_TYPE},
    )


def described(ids: Mapping[str, int]) -> str:
    """Subjects with the ids of their schemas, for people."""
    return ", ".join(f"{subject(topic)} has id {number}" for topic, number in ids.items())
