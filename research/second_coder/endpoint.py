"""The endpoint: any server with the chat completions of OpenAI's API, by the `openai` client.

The client retries refused connections, timeouts, 408, 409, 429 and 5xx with growing pauses, and
waits as long as `Retry-After` says. Redirects are not followed, because they would carry the text
to another host, and to a loopback address no proxy of the environment is used.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import openai
from openai import DefaultHttpxClient, OpenAI
from openai.types.chat import ChatCompletion

from research.second_coder.cost import Usage
from research.second_coder.prompt import Prompt

TOP_LOGPROBS: Final = 20
RANK_TOKENS: Final = 1
NO_KEY: Final = "none"
RETRIED: Final = (408, 409, 429)
logging.getLogger("openai").setLevel(logging.WARNING)  # OPENAI_LOG=debug would log the prompts


class EndpointError(RuntimeError):
    """The endpoint cannot be used or gave no answer; `attempts` were sent in vain.

    Messages never quote the endpoint's own, which may repeat the prompt.
    """

    def __init__(self, message: str, attempts: int = 0) -> None:
        super().__init__(message)
        self.attempts = attempts


class RequestRefused(EndpointError):
    """The endpoint refused the request itself (400 or 422), such as one with a schema."""


@dataclass(frozen=True)
class Reply:
    """An answer as it came.

    `tokens`: the most probable first tokens with natural log-probabilities; None if the endpoint
    gives none. `complete`: neither cut off nor refused. `failed`: attempts that were repeated.
    """

    content: str
    complete: bool
    tokens: tuple[tuple[str, float], ...] | None
    usage: Usage | None
    failed: int = 0


@dataclass(frozen=True)
class Connection:
    """Where and how to ask.

    `timeout` in seconds; `retries` after the first attempt; `parameters` are fields of every
    request, such as temperature and seed; `limit` is the name of the field for the largest number
    of tokens in an answer.
    """

    url: str
    model: str
    key: str = NO_KEY
    timeout: float = 60.0
    retries: int = 4
    parameters: Mapping[str, Any] = field(default_factory=dict)
    limit: str = "max_tokens"
    max_tokens: int = 400


def host_of(url: str) -> str:
    """The host in the endpoint's address, in lower case.

    Raises:
        EndpointError: the address is not valid.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https"):
        raise EndpointError("the endpoint is no address like http://localhost:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise EndpointError(
            "the endpoint's address has a user, a query or a fragment; leave it out"
        )
    return host


def is_loopback(host: str) -> bool:
    """Whether a host is this machine.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("::1")
    (True, True, True)
    >>> is_loopback("localhost.example.org"), is_loopback("0.0.0.0")
    (False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_host(url: str, allowed: str | None) -> str:
    """The endpoint's host, if text may be sent there.

    Raises:
        EndpointError: it is another machine that was not named, or is reached without encryption.
    """
    host = host_of(url)
    if is_loopback(host):
        return host
    if allowed is None or allowed.lower() != host:
        raise EndpointError(
            f"the endpoint is another machine: text would leave this one; --allow-host {host} "
            "permits it"
        )
    if urlsplit(url).scheme != "https":
        raise EndpointError(f"{host} is another machine: its address must begin with https://")
    return host


class Endpoint:
    """Asks a chat completions endpoint, one request at a time."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        loopback = is_loopback(host_of(connection.url))
        self._client = OpenAI(
            base_url=connection.url,
            api_key=connection.key,
            timeout=connection.timeout,
            max_retries=connection.retries,
            http_client=DefaultHttpxClient(follow_redirects=False, trust_env=not loopback),
        )

    def ask(self, prompt: Prompt, *, ranks: bool) -> Reply:
        """Ask for an answer; with `ranks`, for one token with the most probable ones.

        Raises:
            RequestRefused: the endpoint refuses the request.
            EndpointError: it gives no usable answer in all attempts.
        """
        try:
            raw = self._client.chat.completions.with_raw_response.create(
                **self._body(prompt, ranks)
            )
            completion = raw.parse()
        except (openai.BadRequestError, openai.UnprocessableEntityError) as problem:
            message = f"the endpoint refused the request ({problem.status_code})"
            raise RequestRefused(message, 1) from None
        except openai.APIStatusError as problem:
            code = problem.status_code
            attempts = 1 + self.connection.retries if code in RETRIED or code >= 500 else 1
            raise EndpointError(f"the endpoint answered {code}", attempts) from None
        except openai.APIError as problem:
            attempts = 1 + self.connection.retries
            name = type(problem).__name__
            raise EndpointError(f"the endpoint gave no answer ({name})", attempts) from None
        except ValueError:
            raise EndpointError("the endpoint's answer is not JSON", 1) from None
        try:
            return _reply(completion, raw.retries_taken)
        except (AttributeError, IndexError, TypeError):  # the client does not check the fields
            message = "the endpoint's answer is no chat completion"
            raise EndpointError(message, 1 + raw.retries_taken) from None

    def _body(self, prompt: Prompt, ranks: bool) -> dict[str, Any]:
        settings = self.connection
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": list(prompt.messages),
            "extra_body": {
                **settings.parameters,
                settings.limit: RANK_TOKENS if ranks else settings.max_tokens,
            },
        }
        if ranks:
            body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        if prompt.schema is not None:
            form = {"name": "code", "strict": True, "schema": prompt.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _reply(completion: ChatCompletion, failed: int) -> Reply:
    choice = completion.choices[0]
    logprobs = choice.logprobs.content if choice.logprobs is not None else None
    tokens = None
    if logprobs:
        tokens = tuple((str(each.token), float(each.logprob)) for each in logprobs[0].top_logprobs)
    content = choice.message.content
    return Reply(
        content if isinstance(content, str) else "",
        complete=choice.finish_reason != "length" and not choice.message.refusal,
        tokens=tokens,
        usage=_usage(completion),
        failed=failed,
    )


def _usage(completion: ChatCompletion) -> Usage | None:
    """The tokens that the endpoint reports, if they are counts."""
    found = completion.usage
    if found is None:
        return None
    counts = found.prompt_tokens, found.completion_tokens
    if any(not isinstance(count, int) or count < 0 for count in counts):
        return None
    return Usage(*counts)
