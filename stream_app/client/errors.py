"""Errors of the client library; they quote neither text nor token."""

from collections.abc import Sequence

from stream_app.client.answers import EventResult
from stream_app.errors import RapportError


class ClientError(RapportError):
    """A call of the client library failed."""


class ServiceUnavailable(ClientError):
    """``rapport web`` gave no answer, or none that counts, in all attempts.

    ``retry_after``: seconds, as the service asked. Events may have been accepted without an answer;
    sending them again with the same key adds nothing.
    """

    def __init__(self, detail: str, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class RequestRefused(ClientError):
    """The service refused the request, and repeating it does not help.

    ``status``: of HTTP. ``kind``: the ``type`` of the problem, such as
    ``urn:rapport:problem:key-reused``; empty if a proxy answered.
    """

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(f"Rapport refused the request with {status}: {detail}")
        self.status = status
        self.kind = kind


class EventsNotSent(ClientError):
    """Some queued events are not in Rapport.

    ``refused``: results of those that it refused. ``lost``: how many got no answer;
    ``problem``: the first reason.
    """

    def __init__(
        self, refused: Sequence[EventResult], lost: int = 0, problem: Exception | None = None
    ) -> None:
        parts = []
        if refused:
            first = refused[0]
            parts.append(f"{len(refused)} refused, the first as {first.code}: {first.detail}")
        if lost:
            parts.append(f"{lost} without an answer: {problem}")
        super().__init__("events were not sent: " + "; ".join(parts))
        self.refused = list(refused)
        self.lost = lost
        self.problem = problem
