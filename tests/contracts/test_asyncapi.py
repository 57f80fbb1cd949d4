"""The AsyncAPI document describes every topic and message, and its references resolve."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import msgspec
import pytest

from stream_app.contracts import asyncapi, schema
from stream_app.settings import Settings
from tests.fakes import consent, delete, edit, end, outcome, questionnaire, turn

DOCUMENT = asyncapi.build()


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(found := part.get("$ref"), str):
            yield found
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from references(each)


def at(pointer: str) -> Any:
    found: Any = DOCUMENT
    for name in pointer.removeprefix("#/").split("/"):
        found = found[name]
    return found


def test_every_topic_and_message_is_described() -> None:
    addresses = {channel["address"] for channel in DOCUMENT["channels"].values()}
    assert addresses == set(Settings(topic_prefix="dialogue").topics)
    used = {name for channel in DOCUMENT["channels"].values() for name in channel["messages"]}
    assert used == DOCUMENT["components"]["messages"].keys()
    assert used == schema.MESSAGES.keys()


def test_topics_have_the_installations_prefix() -> None:
    channels = asyncapi.build("north.care")["channels"].values()
    assert {channel["address"] for channel in channels} == set(
        Settings(topic_prefix="north.care").topics
    )


def test_every_reference_resolves() -> None:
    found = list(references(DOCUMENT))
    assert len(found) > 30
    for pointer in found:
        assert at(pointer), pointer


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("turn", turn()),
        ("session_end", end()),
        ("outcome", outcome()),
        ("questionnaire", questionnaire()),
        ("consent", consent("given")),
        ("turn_edit", edit()),
        ("turn_delete", delete()),
    ],
)
def test_events_are_valid_by_the_payloads_schema(name: str, event: bytes) -> None:
    payload = DOCUMENT["components"]["messages"][name]["payload"]
    validator = jsonschema.Draft202012Validator({**payload, "components": DOCUMENT["components"]})
    body = json.loads(event)
    validator.validate(body)
    body.pop("session_id")
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(body)


def test_a_schemas_name_is_the_one_that_messages_carry() -> None:
    message = DOCUMENT["components"]["messages"]["turn_score"]
    told = message["headers"]["properties"]["ce_dataschema"]["const"]
    file = schema.SCHEMA_DIR / "turn_score.v1.json"
    assert msgspec.json.decode(file.read_bytes())["$id"] == told
