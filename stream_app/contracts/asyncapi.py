"""The AsyncAPI 3 document of all topics, generated from the structs.

``GET /api/v1/asyncapi.json`` serves it with the installation's topic prefix;
``python -m stream_app.contracts.asyncapi`` prints it.
"""

import json
import sys
from typing import Any, Final

import msgspec
from msgspec import Struct

from stream_app import __version__
from stream_app.contracts import cloudevents, schema

REF: Final = "#/components/schemas/{name}"


class Topic(Struct, frozen=True):
    """The messages of a topic; ``read``: Rapport consumes it."""

    name: str
    about: str
    messages: tuple[str, ...]
    read: bool = False


TOPICS: Final = (
    Topic(
        "turns",
        "Turns, their edits and deletions, ends, outcomes, questionnaires and consent records of "
        "all sessions. Key: the session id.",
        (
            "turn",
            "session_end",
            "outcome",
            "consent",
            "questionnaire",
            "turn_edit",
            "turn_delete",
        ),
        read=True,
    ),
    Topic(
        "turn-scores",
        "Two scores a turn: provisional, then final.",
        ("turn_score",),
    ),
    Topic(
        "session-scores",
        "A session's aggregates after each batch.",
        ("session_score",),
    ),
    Topic("alerts", "Transitions of alert rules.", ("alert",)),
    Topic("alert-actions", "People's actions on alerts, without their notes.", ("alert_action",)),
    Topic(
        "interventions",
        "Supervisors' notes to the counsellor's desk, take-overs and hand-backs, and receipts.",
        ("intervention", "intervention_receipt"),
    ),
    Topic(
        "dead-letters",
        "Events that cannot be processed: the original bytes, with the reason as JSON in the "
        "header `rapport-dead-letter`.",
        ("dead_letter",),
    ),
)
ERASED: Final = (
    " A record without a value says that the session (its key) was erased, or that consent was "
    "withdrawn: delete your copies."
)
_TRACE: Final = {
    name: {"type": "string", "description": "W3C Trace Context; optional"}
    for name in ("traceparent", "tracestate")
}
_ATTRIBUTES: Final = ("ce_specversion", "ce_id", "ce_source", "ce_type", "ce_dataschema")


def build(prefix: str = "dialogue") -> dict[str, Any]:
    """The document; topics are named ``prefix.name``."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Rapport",
            "version": __version__,
            "description": "Dialogue turns in; scores of expressed and perceived empathy and "
            "alerts out. A message's schema is named by `ce_dataschema`; within a version of a "
            "schema, fields are only added.",
            "license": {
                "name": "Apache-2.0",
                "url": "https://www.apache.org/licenses/LICENSE-2.0",
            },
        },
        "defaultContentType": cloudevents.CONTENT_TYPE,
        "channels": {_id(topic): _channel(topic, prefix) for topic in TOPICS},
        "operations": {_operation_id(topic): _operation(topic) for topic in TOPICS},
        "components": {
            "messages": {name: _message(name) for name in schema.MESSAGES},
            "schemas": _schemas(),
        },
    }


def _id(topic: Topic) -> str:
    return topic.name.replace("-", "_")


def _operation_id(topic: Topic) -> str:
    return f"{'receive' if topic.read else 'send'}_{_id(topic)}"


def _channel(topic: Topic, prefix: str) -> dict[str, Any]:
    erased = "" if topic.read or topic.name == "dead-letters" else ERASED
    return {
        "address": f"{prefix}.{topic.name}",
        "description": topic.about + erased,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in topic.messages},
    }


def _operation(topic: Topic) -> dict[str, Any]:
    return {
        "action": "receive" if topic.read else "send",
        "channel": {"$ref": f"#/channels/{_id(topic)}"},
        "summary": topic.about,
    }


def _message(name: str) -> dict[str, Any]:
    title = schema.MESSAGES[name].__name__
    if name == "dead_letter":  # its schema is that of a header
        reason = {"type": "string", "description": f"JSON of the schema {title}"}
        return {
            "name": name,
            "contentType": "application/octet-stream",
            "headers": {"type": "object", "properties": {"rapport-dead-letter": reason, **_TRACE}},
            "payload": {"type": "string", "format": "binary"},
        }
    return {
        "name": name,
        "contentType": cloudevents.CONTENT_TYPE,
        "headers": {
            "type": "object",
            "description": "CloudEvents 1.0, binary mode; optional on events that are sent in.",
            "properties": {
                **{attribute: {"type": "string"} for attribute in _ATTRIBUTES},
                "ce_type": {"const": f"{cloudevents.TYPE_PREFIX}{name}"},
                "ce_dataschema": {"const": schema.urn(name)},
                **_TRACE,
            },
        },
        "payload": {"$ref": REF.format(name=title)},
        "bindings": {"kafka": {"key": {"type": "string", "description": "The session id"}}},
    }


def _schemas() -> dict[str, Any]:
    _, parts = msgspec.json.schema_components(
        list(schema.MESSAGES.values()),
        schema_hook=schema.expressed,
        ref_template=REF,
    )
    return parts


if __name__ == "__main__":
    sys.stdout.write(json.dumps(build(), indent=2, ensure_ascii=False) + "\n")
