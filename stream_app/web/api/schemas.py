"""The AsyncAPI document and the JSON Schemas of messages; public, like the OpenAPI document."""

from typing import Any

from fastapi import APIRouter, HTTPException

from stream_app.contracts import asyncapi, schema
from stream_app.web.services import ServicesDep

router = APIRouter(include_in_schema=False)


@router.get("/asyncapi.json")
def read_asyncapi(services: ServicesDep) -> dict[str, Any]:
    """Describe the topics of this installation."""
    return asyncapi.build(services.settings.topic_prefix)


@router.get("/schemas/{name}.json")
def read_schema(name: str) -> dict[str, Any]:
    """One message's JSON Schema, by the name that is in its ``ce_dataschema``."""
    if name not in schema.MESSAGES:
        raise HTTPException(404, f"known messages: {', '.join(sorted(schema.MESSAGES))}")
    return schema.build(name)
