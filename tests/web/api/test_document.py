"""The OpenAPI document: completeness, valid examples, and fuzzing against it."""

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from stream_app.web.api.examples import EXAMPLES
from tests.web.api.conftest import filled
from tests.web.api.fuzzing import fuzz
from tests.web.server import Web


@pytest.fixture(scope="module")
def document(web: Web) -> dict[str, Any]:
    answer = web.anonymous_client().get("/api/v1/openapi.json")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


WITH_RESULTS = {("post /events", "422")}
"""A batch of which nothing was accepted."""


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, each in document["paths"].items()
        for method, operation in each.items()
    ]


def test_every_operation_documents_its_purpose_and_errors(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, operation in operations(document)]
    assert len(ids) == len(set(ids))
    tags = {tag["name"] for tag in document["tags"]}
    assert all(tag["description"] for tag in document["tags"])
    for name, operation in operations(document):
        assert operation["description"].strip(), name
        assert set(operation["tags"]) <= tags, name
        assert operation["responses"].keys() >= {"401", "403", "422", "500", "503"}, name
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                schema = response["content"]["application/problem+json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/Problem"}, (name, status)
                results = {"application/json"} if (name, status) in WITH_RESULTS else set()
                kinds = {"application/problem+json"} | results
                assert response["content"].keys() == kinds, (name, status)
        for parameter in operation.get("parameters", []):
            if "{place}" not in name:
                described = parameter.get("description") or parameter["name"] in PLAIN
                assert described, (name, parameter["name"])


PLAIN = {
    *("sample_id", "session_id", "seq", "place", "head", "bundle", "rating_id", "dispute_id"),
    *("review_id", "goal_id"),
}
"""Parameters whose names need no description."""


def test_security_is_a_token_or_a_cookie(document: dict[str, Any]) -> None:
    assert document["security"] == [{"bearer": []}, {"cookie": []}]
    schemes = document["components"]["securitySchemes"]
    assert schemes["bearer"]["scheme"] == "bearer"
    assert (schemes["cookie"]["in"], schemes["cookie"]["name"]) == ("cookie", "rapport")


def test_references_resolve_and_none_is_external(web: Web, document: dict[str, Any]) -> None:
    text = web.anonymous_client().get("/api/v1/openapi.json").text
    for name in re.findall(r'"#/components/schemas/([^"]+)"', text):
        assert name in document["components"]["schemas"], name
    assert not re.findall(r"https?://", text)
    assert document["servers"] == [{"url": "/api/v1"}]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_match_their_schemas(document: dict[str, Any], name: str) -> None:
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(EXAMPLES[name])
    example = document["components"]["schemas"]["Problem"]["example"]
    problem = {"$ref": "#/components/schemas/Problem", "components": document["components"]}
    jsonschema.Draft202012Validator(problem).validate(example)


def test_the_example_batch_is_valid(document: dict[str, Any]) -> None:
    body = document["paths"]["/events"]["post"]["requestBody"]["content"]["application/json"]
    schema = {**body["schema"], "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(body["example"])


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(600)  # some minutes on an idle machine, beside three other processes here
def test_fuzzing_as_a_supervisor_finds_no_error(tmp_path: Path) -> None:
    phases = "examples,coverage,fuzzing,stateful"
    served = filled(Web(tmp_path))
    try:
        served.start()
        without_broker = ("--exclude-path=/events", "--exclude-operation-id=record_consent")
        fuzz(served, "sue", tmp_path, phases, "--exclude-path=/live", *without_broker)
    finally:
        served.stop()


def test_messages_are_described_without_signing_in(web: Web) -> None:
    client = web.anonymous_client()
    found = client.get("/api/v1/asyncapi.json").json()
    assert found["channels"]["turns"]["address"] == "dialogue.turns"
    told = client.get("/api/v1/schemas/turn.json").json()
    assert told["$id"] == "urn:rapport:turn:v1"
    assert client.get("/api/v1/schemas/zanzibar.json").status_code == 404
