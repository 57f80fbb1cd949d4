"""Values as serialisers with a schema registry send them."""

from typing import Final

MAX_SCHEMA_ID: Final = 2**32 - 1


def framed(schema_id: int, payload: bytes) -> bytes:
    """A payload with the id of its schema, 0 to ``MAX_SCHEMA_ID``, in Confluent's wire format."""
    return b"\0" + schema_id.to_bytes(4, "big") + payload
