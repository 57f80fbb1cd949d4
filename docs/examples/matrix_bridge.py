"""Bridges Matrix rooms to Rapport, with the functions of `rapport import matrix`.

    RAPPORT_URL=… RAPPORT_TOKEN=… MATRIX_URL=https://matrix.example.org MATRIX_TOKEN=… \
        python matrix_bridge.py position.txt @anna:example.org @ben:example.org

The account of `MATRIX_TOKEN` has to be in the rooms, which must not be encrypted; the other names
are the counsellors'. The command also leaves out bots (`--other`); take this as a start for a
program of your own.
"""

import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import httpx

from stream_app.client import RapportClient
from stream_app.importers import matrix
from stream_app.importers.imported import Item, People, Skipped
from stream_app.importers.matrix_bridge import Bridge


def events_of(
    room: str, timeline: list[dict[str, Any]], me: str, counsellors: Collection[str]
) -> Iterator[tuple[str, Item]]:
    """The events of new messages, each with its key; and what is left out, with a reason."""
    return matrix.events_of(room, timeline, me, People(counsellors))


def report(skipped: Skipped) -> None:
    """Print what is not sent."""
    print(skipped, file=sys.stderr)


def main(position: str, *counsellors: str) -> None:
    """Run until the process is stopped."""
    token = {"Authorization": f"Bearer {os.environ['MATRIX_TOKEN']}"}
    with (
        httpx.Client(base_url=os.environ["MATRIX_URL"], headers=token, timeout=60) as server,
        RapportClient(os.environ["RAPPORT_URL"], os.environ["RAPPORT_TOKEN"]) as rapport,
    ):
        Bridge(server, rapport, Path(position), People(counsellors), report).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
