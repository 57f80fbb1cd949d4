"""Sends a transcript of a speech recogniser, WebVTT or SRT, to Rapport as one session.

    pip install webvtt-py
    RAPPORT_URL=… RAPPORT_TOKEN=… python transcripts.py call.vtt --session call-17 \
        --start 2026-03-02T09:00:00Z --role Anna=counsellor --role "Speaker 2=client" --consent

Speakers are the voices of WebVTT (`<v Anna>`), or names before a colon in SRT (`Anna: Hello`).
Captions of one speaker that follow each other are one turn. Sending a file again adds nothing.
"""

import argparse
import hashlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path

import webvtt

from stream_app.client import RapportClient, end, turn
from stream_app.client.events import Sendable

VOICE = re.compile(r"<v(?:\.[\w.-]+)?[ \t]+([^>]+)>")
TAG = re.compile(r"<[^>]*>")
NAME = re.compile(r"^([^\s:][^:\n]{0,60}):\s+(?=\S)", re.MULTILINE)
PAUSE = 30.0
"""Seconds of silence after which the same speaker begins another turn."""


@dataclass
class Said:
    """What one speaker said; times in seconds from the recording's start."""

    speaker: str | None
    text: str
    start: float
    end: float


def read(file: Path) -> list[Said]:
    """The turns of a file.

    Raises:
        ValueError: the file is neither WebVTT nor SRT.
    """
    try:
        reading = webvtt.from_srt if file.suffix.lower() == ".srt" else webvtt.read
        captions = reading(str(file)).captions
    except webvtt.errors.MalformedFileError:
        raise ValueError(f"{file} is not a transcript: give a .vtt or an .srt file") from None
    turns: list[Said] = []
    speaker: str | None = None
    for caption in captions:
        start = caption.start_time.in_milliseconds() / 1000
        stop = caption.end_time.in_milliseconds() / 1000
        for name, text in spoken(caption.raw_text, speaker):
            speaker = name
            last = turns[-1] if turns else None
            if last and last.speaker == speaker and start - last.end <= PAUSE:
                last.text, last.end = f"{last.text} {text}", stop
            else:
                turns.append(Said(speaker, text, start, stop))
    return turns


def spoken(raw: str, speaker: str | None) -> Iterator[tuple[str | None, str]]:
    """Speakers and texts of a caption; without a name, the speaker before goes on."""
    marked = VOICE if VOICE.search(raw) else NAME
    before, *found = marked.split(raw)
    for name, text in zip([speaker, *found[::2]], [before, *found[1::2]], strict=True):
        words = " ".join(unescape(TAG.sub("", text)).split())
        if words:
            yield (name.strip() if name else name), words


def events_of(
    turns: list[Said], session: str, start: datetime, roles: dict[str, str], *, consent: bool
) -> Iterator[Sendable]:
    """The session's events.

    Raises:
        ValueError: a speaker has no role.
    """
    for said in turns:
        if said.speaker is None or said.speaker not in roles:
            name = said.speaker or "(nobody named)"
            raise ValueError(f"who is {name}? Give --role '{name}=client' or '…=counsellor'")
        yield turn(
            session,
            roles[said.speaker],
            said.text,
            speaker_id=f"{session} {said.speaker}",
            occurred_at=start + timedelta(seconds=said.start),
            consent=consent or None,
            channel="voice",
        )
    if turns:
        yield end(session, occurred_at=start + timedelta(seconds=turns[-1].end))


def main(arguments: list[str], rapport: RapportClient) -> int:
    """Send a file; the number of turns.

    Raises:
        ValueError: the file or an option is not valid, or Rapport refused an event.
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
    turns = read(given.file)
    events = list(events_of(turns, given.session, given.start, roles, consent=given.consent))
    content = given.session.encode() + b"\0" + given.file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:32]
    results = rapport.send(*events, key=f"transcript {digest}")
    for result in results:
        if not result.accepted:
            raise ValueError(f"Rapport refused event {result.index + 1}: {result.detail}")
    return len(turns)


if __name__ == "__main__":
    with RapportClient(os.environ["RAPPORT_URL"], os.environ["RAPPORT_TOKEN"]) as client:
        try:
            print(main(sys.argv[1:], client), "turns sent")
        except (ValueError, OSError) as problem:
            sys.exit(str(problem))
