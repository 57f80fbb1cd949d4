"""The endpoint: what is retried, what is refused, and what never leaves or returns."""

import pytest

from stream_app.asking.chat_endpoint import ATTEMPTS, MAX_BYTES, ChatEndpoint, EndpointFailed
from stream_app.core.rules import proposals
from stream_app.core.rules.proposals import Dropped
from tests.asking.chat_stub import ChatStub, Reply, said, status
from tests.asking.permission import WARM

MESSAGES = [{"role": "user", "content": "[]"}]
SCHEMA = proposals.schema(WARM)


def endpoint(stub: ChatStub, key: str | None = None) -> tuple[ChatEndpoint, list[float]]:
    paused: list[float] = []
    return ChatEndpoint(stub.url, "small", key, 5.0, paused.append), paused


def test_a_request_has_model_schema_and_key(stub: ChatStub) -> None:
    stub.answers(said("{}"))
    assert endpoint(stub, "s3cret")[0].ask(MESSAGES, SCHEMA) == "{}"
    [body], [headers] = stub.bodies, stub.headers
    assert (body["model"], body["messages"], body["temperature"]) == ("small", MESSAGES, 0)
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert headers["authorization"] == "Bearer s3cret"


def test_temporary_failures_are_retried_as_long_as_the_server_asks(stub: ChatStub) -> None:
    stub.answers(status(503), status(429, Retry_After="7"), said("{}"))
    asked, paused = endpoint(stub)
    assert asked.ask(MESSAGES, SCHEMA) == "{}"
    assert len(paused) == 2
    assert paused[1] >= 7.0


@pytest.mark.parametrize(
    ("reply", "requests", "problem"),
    [
        (status(500), ATTEMPTS, "status 500"),
        (status(401), 1, "status 401"),
        (status(404), 1, "status 404"),
        (status(307, Location="http://127.0.0.1:9/v1/chat/completions"), 1, "status 307"),
        ((200, "<html>That must have been hard</html>", {}), 1, "no chat completion"),
        ((200, '{"choices": []}', {}), 1, "no chat completion"),
        ((200, "[" * 100_000, {}), 1, "no chat completion"),
        ((200, " " * (MAX_BYTES + 1), {}), 1, "no chat completion"),
    ],
)
def test_failures_are_told_without_the_text(
    stub: ChatStub, reply: Reply, requests: int, problem: str
) -> None:
    stub.answers(reply)
    with pytest.raises(EndpointFailed, match=problem) as failed:
        endpoint(stub)[0].ask(MESSAGES, SCHEMA)
    assert len(stub.bodies) == requests
    assert "hard" not in str(failed.value)


def test_an_endpoint_that_is_not_there_gives_no_answer() -> None:
    paused: list[float] = []
    with pytest.raises(EndpointFailed, match="no answer"):
        ChatEndpoint("http://127.0.0.1:9/v1", "m", None, 1.0, paused.append).ask(MESSAGES, SCHEMA)
    assert len(paused) == ATTEMPTS - 1


def test_a_server_without_schemas_is_asked_without_one(stub: ChatStub) -> None:
    stub.reply = lambda body: status(400) if "response_format" in body else said("{}")
    assert endpoint(stub)[0].ask(MESSAGES, SCHEMA) == "{}"


@pytest.mark.parametrize(
    ("reply", "dropped"),
    [
        (status(400), Dropped.REFUSED),
        (status(413), Dropped.REFUSED),
        (said("{", "length"), Dropped.INCOMPLETE),
        (said(None), Dropped.INCOMPLETE),
        (said("{}", "content_filter"), Dropped.INCOMPLETE),
    ],
)
def test_a_request_that_gets_no_whole_answer_is_dropped(
    stub: ChatStub, reply: Reply, dropped: Dropped
) -> None:
    stub.answers(reply)
    assert endpoint(stub)[0].ask(MESSAGES, SCHEMA) is dropped
