"""Sends a transcript to Rapport as one session, with the functions of `rapport import transcript`.

    pip install 'rapport-empathy[importers]'
    RAPPORT_URL=… RAPPORT_TOKEN=… python transcripts.py call.vtt --session call-17 \
        --start 2026-03-02T09:00:00Z --role Anna=counsellor --role "Speaker 2=client" --consent

The command does the same; take this as a start for a program of your own.
"""

import argparse
import os
import sys
from datetime import datetime
from pathlib import Path

from stream_app.client import RapportClient
from stream_app.errors import RapportError
from stream_app.importers import transcripts
from stream_app.importers.transcripts import events_of, read

__all__ = ["events_of", "main", "read"]


def main(arguments: list[str], rapport: RapportClient) -> int:
    """Send a file; the number of turns.

    Raises:
        ValueError: an option is not valid, or Rapport refused an event.
        RapportError: the file cannot be read, or a speaker has no role.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--session", required=True)
    parser.add_argument("--start", type=datetime.fromisoformat, required=True)
    parser.add_argument("--role", action="append", default=[], metavar="SPEAKER=ROLE")
    parser.add_argument("--consent", action="store_true", help="the client agreed to the analysis")
    given = parser.parse_args(arguments)
    if given.start.tzinfo is None:
        raise ValueError("--start needs an offset, for example 2026-03-02T09:00:00Z")
    roles = {name.strip(): role for name, _, role in (each.rpartition("=") for each in given.role)}
    turns = read(given.file, roles)
    events = list(
        events_of(turns, given.session, given.start, roles, consent=given.consent or None)
    )
    results = rapport.send(*events, key=transcripts.key(given.session, given.file))
    for result in results:
        if not result.accepted:
            raise ValueError(f"Rapport refused event {result.index + 1}: {result.detail}")
    return len(turns)


if __name__ == "__main__":
    with RapportClient(os.environ["RAPPORT_URL"], os.environ["RAPPORT_TOKEN"]) as client:
        try:
            print(main(sys.argv[1:], client), "turns sent")
        except (ValueError, RapportError) as problem:
            sys.exit(str(problem))
