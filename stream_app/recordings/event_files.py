"""Reads events from files: JSON lines, the shipped sample sessions, and ConvoKit folders."""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from stream_app.contracts.plausible import EARLIEST
from stream_app.errors import RapportError
from stream_app.importers import convokit
from stream_app.importers.imported import ImportRefused
from stream_app.recordings.json_lines import read_lines

DEMO_TEAM: Final = "south"
"""The team of the demo's counsellor account, which speaks as its first counsellor."""
SAMPLE_FOLDER: Final = Path(__file__).parents[1] / "samples"
_SAMPLE_HEADER: Final = {"session_id", "domain", "channel", "team"}


class TimedEvent(Struct, frozen=True):
    """A record for the turns topic and when to send it, in seconds from the start."""

    at: float
    key: bytes
    value: bytes


class InputError(RapportError):
    """A file cannot be read or written, or does not contain events."""


class NoEvents(InputError):
    """The files do not contain a valid event."""

    def __init__(self, paths: Sequence[Path], dead_letters: int) -> None:
        found = f"none of its {dead_letters} events is valid" if dead_letters else "it is empty"
        names = ", ".join(map(str, paths))
        super().__init__(f"{names} has no events to score: {found}")


def raw_events(path: Path, on_read: Callable[[int], object] = lambda _: None) -> Iterator[bytes]:
    """The events of a file of JSON lines or a ConvoKit folder, as bytes of the wire contract.

    See ``json_lines`` for what is read of a file.

    A sample session's file begins with a line about the session; its events count from EARLIEST.
    A blank line is yielded as ``b""``, so that the index of an event is its line number.
    ``on_read`` gets the number of bytes of each line before its event.
    """
    if path.is_dir():
        try:
            yield from convokit.events(path, on_read)
        except ImportRefused as problem:
            raise InputError(str(problem)) from None
        return
    sample: dict[str, Any] | None = None
    try:
        for number, line in enumerate(read_lines(path, on_read)):
            if number == 0 and (sample := _sample_header(line)) is not None:
                yield b""
            elif sample is not None and line:
                yield _line_of_sample(sample, line, f"{path}, line {number + 1}")
            else:
                yield line
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}") from problem


def size(path: Path) -> int | None:
    """The number of bytes that ``raw_events`` reports; None if it cannot be known."""
    file = path / convokit.UTTERANCES if path.is_dir() else path
    return file.stat().st_size if file.is_file() else None


def timed_events(path: Path) -> Iterator[TimedEvent]:
    """The events of a file in order, timed by their ``occurred_at``; bytes unchanged."""
    start: datetime | None = None
    at = 0.0
    for value in filter(None, raw_events(path)):
        key, moment = _key_and_time(value)
        if moment is not None:
            start = start or moment
            at = max(at, (moment - start).total_seconds())
        yield TimedEvent(at, key, value)


def sample_sessions() -> list[Path]:
    """The shipped sample sessions, alternating domains; the one with broken events last."""
    return sorted(SAMPLE_FOLDER.glob("*.jsonl"), key=_sample_order)


def _sample_order(path: Path) -> tuple[bool, str, str]:
    number = next(part for part in path.stem.split("-") if part.isdigit())
    return path.stem.startswith("broken"), number, path.stem


def sample_events(
    path: Path, session_id: str, start: datetime, speed: float, counsellor: int | None = None
) -> list[TimedEvent]:
    """The events of one sample session.

    Args:
        path: a file of ``sample_sessions``.
        session_id: the session's new id.
        start: time of its first turn.
        speed: factor; 2 halves all pauses, also in ``occurred_at``.
        counsellor: number of the team's counsellor; by default one who has only this session.
    """
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]
    session = lines[0]
    speakers = _sample_speakers(session_id)
    if counsellor is not None:
        speakers["counsellor"] = sample_counsellor(session["team"], counsellor)
    events = []
    for line in lines[1:]:
        at = line["offset_s"] / speed
        occurred_at = (start + timedelta(seconds=at)).isoformat()
        events.append(
            TimedEvent(
                at,
                session_id.encode(),
                _sample_value(line, session, session_id, occurred_at, speakers),
            )
        )
    return events


def _sample_header(line: bytes) -> dict[str, Any] | None:
    """The first line of a sample session's file; None if it is of another file."""
    try:
        header = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    is_sample = isinstance(header, dict) and header.get("type") == "session"
    return header if is_sample and header.keys() >= _SAMPLE_HEADER else None


def _line_of_sample(session: dict[str, Any], raw: bytes, place: str) -> bytes:
    """The event of a later line of a sample session's file."""
    session_id = str(session["session_id"])
    try:
        line = json.loads(raw)
        occurred_at = EARLIEST + timedelta(seconds=line["offset_s"])
        speakers = _sample_speakers(session_id)
        return _sample_value(line, session, session_id, occurred_at.isoformat(), speakers)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as problem:
        raise InputError(
            f"{place}: not a line of a sample session ({type(problem).__name__})"
        ) from None


def _sample_speakers(session_id: str) -> dict[str, str]:
    return {role: f"{session_id}/{role}" for role in ("client", "counsellor")}


def sample_counsellor(team: str, number: int) -> str:
    """The ``speaker_id`` of a team's counsellor in the sample sessions."""
    return f"{team}/{number}"


def _sample_value(
    line: dict[str, Any],
    session: dict[str, Any],
    session_id: str,
    occurred_at: str,
    speakers: dict[str, str],
) -> bytes:
    common = {"session_id": session_id, "occurred_at": occurred_at}
    match line["type"]:
        case "raw" if "base64" in line:
            return base64.b64decode(line["base64"])
        case "raw":
            return str(line["text"]).encode()
        case "turn":
            body = {
                "type": "turn",
                **common,
                "seq": line["seq"],
                "speaker_id": speakers[line["speaker"]],
                "role": line["role"],
                "text": line["text"],
                "domain": session["domain"],
                "channel": session["channel"],
                "team": session["team"],
                "lang": "en",
                "consent": True,
            }
        case "session_end":
            body = {"type": "session_end", **common, "reason": line["reason"]}
        case _:
            body = {"type": "outcome", **common, "kind": line["kind"], "value": line["value"]}
    return msgspec.json.encode(body)


def _key_and_time(value: bytes) -> tuple[bytes, datetime | None]:
    """Key and time of an event, which may be invalid."""
    try:
        body = msgspec.json.decode(value)
        key, moment = str(body["session_id"]).encode(), datetime.fromisoformat(body["occurred_at"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, RecursionError):
        return b"", None
    return key, moment if moment.tzinfo else None
