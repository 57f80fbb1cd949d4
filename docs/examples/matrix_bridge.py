"""Bridges Matrix rooms to Rapport: every message is a turn, every room a session.

    RAPPORT_URL=… RAPPORT_TOKEN=… MATRIX_URL=https://matrix.example.org MATRIX_TOKEN=… \
        python matrix_bridge.py position.txt @anna:example.org @ben:example.org

The account of `MATRIX_TOKEN` has to be in the rooms, which must not be encrypted; the other names
are the counsellors'. A room's session ends when its last client leaves. The file keeps the
position in Matrix's stream, and is written after Rapport has the messages: after a crash they are
sent again, with the same keys, and add nothing.
"""

import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from stream_app.client import RapportClient, end, turn
from stream_app.client.events import Sendable

FILTER = '{"room": {"timeline": {"types": ["m.room.message", "m.room.member"], "limit": 500}}}'


def events_of(
    room: str, timeline: list[dict[str, Any]], me: str, counsellors: set[str]
) -> Iterator[tuple[str, Sendable]]:
    """The events of a room's new messages, each with its key, which is Matrix's event id."""
    for event in timeline:
        content, sender = event["content"], event["sender"]
        at = datetime.fromtimestamp(event["origin_server_ts"] / 1000, UTC)
        text = str(content.get("body") or "").strip()
        said = event["type"] == "m.room.message" and content.get("msgtype") in ("m.text", "m.emote")
        edited = content.get("m.relates_to", {}).get("rel_type") == "m.replace"
        if said and text and not edited and sender != me:
            role = "counsellor" if sender in counsellors else "client"
            yield (
                event["event_id"],
                turn(room, role, text, speaker_id=sender, occurred_at=at, channel="matrix"),
            )
        left = event["type"] == "m.room.member" and content.get("membership") == "leave"
        if left and event.get("state_key") not in (*counsellors, me):
            yield event["event_id"], end(room, "the client left", at)


class Bridge:
    """Reads Matrix's stream and sends what it says to Rapport."""

    def __init__(
        self, matrix: httpx.Client, rapport: RapportClient, position: Path, counsellors: set[str]
    ) -> None:
        self._matrix = matrix
        self._rapport = rapport
        self._position = position
        self._counsellors = counsellors
        answer = matrix.get("/_matrix/client/v3/account/whoami")
        self._me: str = answer.raise_for_status().json()["user_id"]

    def step(self, wait: float = 30.0) -> int:
        """Handle what is new, waiting for it; the number of events."""
        since = self._position.read_text() if self._position.exists() else None
        query = {"filter": FILTER, "timeout": str(round(1000 * wait))}
        answer = self._matrix.get(
            "/_matrix/client/v3/sync", params={**query, **({"since": since} if since else {})}
        )
        found = answer.raise_for_status().json()
        count = 0
        for room, news in found.get("rooms", {}).get("join", {}).items():
            for key, event in events_of(
                room, news["timeline"]["events"], self._me, self._counsellors
            ):
                [result] = self._rapport.send(event, key=f"matrix {key}")
                if not result.accepted:
                    print(f"{key} was refused: {result.detail}", file=sys.stderr)
                count += 1
        self._position.write_text(found["next_batch"])
        return count


def main(position: str, *counsellors: str) -> None:
    """Run until the process is stopped."""
    token = {"Authorization": f"Bearer {os.environ['MATRIX_TOKEN']}"}
    with (
        httpx.Client(base_url=os.environ["MATRIX_URL"], headers=token, timeout=60) as matrix,
        RapportClient(os.environ["RAPPORT_URL"], os.environ["RAPPORT_TOKEN"]) as rapport,
    ):
        bridge = Bridge(matrix, rapport, Path(position), set(counsellors))
        while True:
            try:
                bridge.step()
            except httpx.HTTPError as problem:
                print(f"Matrix does not answer ({type(problem).__name__})", file=sys.stderr)
                time.sleep(5)


if __name__ == "__main__":
    main(*sys.argv[1:])
