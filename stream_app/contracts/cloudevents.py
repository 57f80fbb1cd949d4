"""CloudEvents 1.0 in Kafka's binary mode, with attributes as ``ce_*`` headers.

The data is the bare JSON event, so decoding only checks that the headers agree with it. Source:
CloudEvents Kafka protocol binding 1.0.2, section 3.2.
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from stream_app.contracts import schema
from stream_app.contracts.events import Event
from stream_app.errors import ContractError

SPEC_VERSION: Final = "1.0"
TYPE_PREFIX: Final = "rapport."
CONTENT_TYPE: Final = "application/json"
STRUCTURED: Final = b"application/cloudevents"
SOURCE: Final = b"rapport"
NOT_BINARY: Final = ContractError(
    "cloudevent", "CloudEvents are read in binary mode: attributes in headers, the event as value"
)

RawHeaders = Mapping[str, bytes] | Iterable[tuple[str, bytes]] | None


def headers_of(raw: RawHeaders) -> dict[str, bytes]:
    """Headers as a dict; of repeated names the last one wins."""
    return dict(raw.items() if isinstance(raw, Mapping) else raw or ())


def is_cloud_event(headers: Mapping[str, bytes]) -> bool:
    """Whether the record is a CloudEvent in binary mode."""
    return "ce_specversion" in headers


def is_structured(headers: Mapping[str, bytes]) -> bool:
    """Whether the record says that its value is a CloudEvent with its attributes."""
    return (headers.get("content-type") or b"").lower().startswith(STRUCTURED)


def check(headers: Mapping[str, bytes], event: Event) -> None:
    """Refuse a CloudEvent whose attributes contradict its data.

    Raises:
        ContractError: with code ``cloudevent``.
    """
    if headers["ce_specversion"] != SPEC_VERSION.encode():
        raise ContractError("cloudevent", "ce_specversion is not 1.0")
    for required in ("ce_id", "ce_source", "ce_type"):
        if not headers.get(required):
            raise ContractError("cloudevent", f"the header {required} is missing")
    content_type = headers.get("content-type") or CONTENT_TYPE.encode()
    if not content_type.startswith(CONTENT_TYPE.encode()):
        raise ContractError("cloudevent", "the content-type is not application/json")
    declared = headers["ce_type"].removeprefix(TYPE_PREFIX.encode())
    if declared != str(event.__struct_config__.tag).encode():
        raise ContractError("cloudevent", "ce_type does not name the type of the data")
    key = headers.get("ce_partitionkey")
    if key is not None and key != event.session_id.encode():
        raise ContractError("cloudevent", "ce_partitionkey is not the session_id")


def binary_headers(event: Event, event_id: str, source: str) -> list[tuple[str, bytes]]:
    """Headers for sending ``event`` as a CloudEvent."""
    return [
        ("ce_specversion", SPEC_VERSION.encode()),
        ("ce_id", event_id.encode()),
        ("ce_source", source.encode()),
        ("ce_type", f"{TYPE_PREFIX}{event.__struct_config__.tag}".encode()),
        ("ce_time", event.occurred_at.isoformat().encode()),
        ("ce_partitionkey", event.session_id.encode()),
        ("content-type", CONTENT_TYPE.encode()),
    ]


def outgoing_headers(message_type: str, value: bytes) -> list[tuple[str, bytes]]:
    """Headers of a message that Rapport publishes: type, schema version, and an id.

    ``message_type``: the name of its schema. The id is a digest of the value, so a message that is
    published twice has the same id.
    """
    return [
        *_constant_headers(message_type),
        ("ce_id", hashlib.blake2b(value, digest_size=8).hexdigest().encode()),
    ]


@cache
def _constant_headers(name: str) -> tuple[tuple[str, bytes], ...]:
    return (
        ("ce_specversion", SPEC_VERSION.encode()),
        ("ce_source", SOURCE),
        ("ce_type", f"{TYPE_PREFIX}{name}".encode()),
        ("ce_dataschema", schema.urn(name).encode()),
        ("content-type", CONTENT_TYPE.encode()),
    )
