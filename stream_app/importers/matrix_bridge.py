"""Follows Matrix's stream and sends what people say to Rapport, until it is stopped."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx

from stream_app.client import RapportClient, RequestRefused, ServiceUnavailable
from stream_app.client.events import Sendable
from stream_app.importers import matrix
from stream_app.importers.imported import People, Report, Skipped

PAUSE: Final = 5.0
"""Seconds before a server that does not answer is asked again."""
PAGES: Final = 100
"""Most pages of 500 messages that a bridge reads of a room after it was away."""
MISCONFIGURED: Final = (401, 403, 404)
"""Refusals that are about the token or the URL, and not about one message."""


class Bridge:
    """Reads Matrix's stream from a position that it keeps in a file.

    The position is written after Rapport has the messages. After a crash they are sent again, with
    the same keys, and add nothing; a message that cannot be sent is reported, and not met again.

    Args:
        matrix_server: with the token of an account that is in the rooms.
        rapport: with a token of the role ``ingest``.
        position: the file.
        people: whose accounts are whose.
        report: gets what is not sent.
    """

    def __init__(
        self,
        matrix_server: httpx.Client,
        rapport: RapportClient,
        position: Path,
        people: People,
        report: Report,
    ) -> None:
        self._matrix = matrix_server
        self._rapport = rapport
        self._position = position
        self._people = people
        self._report = report
        answer = matrix_server.get("/_matrix/client/v3/account/whoami")
        self._me: str = answer.raise_for_status().json()["user_id"]

    def run(self) -> None:
        """Go on until the process is stopped; a server that does not answer is asked again."""
        while True:
            try:
                self.step()
            except (httpx.HTTPError, ServiceUnavailable, ValueError) as problem:
                self._report(Skipped("the bridge waits", f"{type(problem).__name__}: {problem}"))
                time.sleep(PAUSE)

    def step(self, wait: float = 30.0) -> int:
        """Handle what is new, waiting for it; the number of events that were sent."""
        since = self._position.read_text().strip() if self._position.exists() else ""
        query = {"filter": matrix.FILTER, "timeout": str(round(1000 * wait))}
        answer = self._matrix.get(
            "/_matrix/client/v3/sync", params={**query, **({"since": since} if since else {})}
        )
        found = _object(answer.raise_for_status().json())
        position = found.get("next_batch")
        if not isinstance(position, str):
            raise ValueError("Matrix's answer has no position")
        sent = 0
        for room, news in _object(_object(found.get("rooms")).get("join")).items():
            sent += self._send(room, _object(_object(news).get("timeline")), since)
        self._keep(position)
        return sent

    def _send(self, room: str, timeline: Mapping[str, Any], since: str) -> int:
        sent = 0
        events = _list(timeline.get("events"))
        if timeline.get("limited") and since:
            events = [*self._before(room, timeline.get("prev_batch"), since), *events]
        for key, item in matrix.events_of(room, events, self._me, self._people):
            if isinstance(item, Skipped):
                self._report(item)
            else:
                self._send_one(key, item)
                sent += 1
        return sent

    def _before(self, room: str, place: Any, since: str) -> list[Any]:
        """The messages since the last answer that this one leaves out, oldest first."""
        found: list[Any] = []
        path = f"/_matrix/client/v3/rooms/{quote(room, safe='')}/messages"
        for _ in range(PAGES):
            if not isinstance(place, str):
                return found[::-1]
            query = {"dir": "b", "from": place, "to": since, "limit": "500"}
            answer = self._matrix.get(path, params={**query, "filter": matrix.MESSAGES})
            if answer.is_client_error:  # asking again would not help
                break
            page = _object(answer.raise_for_status().json())
            found += _list(page.get("chunk"))
            place = page.get("end")
        self._report(
            Skipped(room, f"only {len(found)} of the messages that were missed can be read")
        )
        return found[::-1]

    def _send_one(self, key: str, event: Sendable) -> None:
        """Send an event; a refusal of it alone is reported.

        Raises:
            RequestRefused: the token or the URL is wrong, so every event would be refused.
            ServiceUnavailable: it does not answer.
        """
        try:
            [result] = self._rapport.send(event, key=key)
        except RequestRefused as problem:
            if problem.status in MISCONFIGURED:
                raise
            self._report(Skipped(key, str(problem)))
            return
        if not result.accepted:
            self._report(Skipped(key, f"refused ({result.code}): {result.detail}"))

    def _keep(self, position: str) -> None:
        partial = self._position.with_name(f"{self._position.name}.partial")
        partial.write_text(position)
        partial.replace(self._position)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
