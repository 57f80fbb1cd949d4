"""Reads the cues of a transcript: WebVTT, SRT, SBV, Whisper's JSON, and meetings as plain text.

The captions' times and payload are parsed by ``webvtt-py``, cue by cue: as a whole it leaves out
what it cannot read, and nobody would notice.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import webvtt
from msgspec import Struct, structs

from stream_app.importers.imported import ImportRefused
from stream_app.importers.names import looks_like_name

FORMATS: Final = (
    "give a WebVTT, SRT or SBV file, the JSON of Whisper or WhisperX, or the text of a Zoom, Teams "
    "or Meet transcript"
)
ARROW: Final = "-->"
SILENCE: Final = "-"
"""Text of a cue without one, which the library would leave out."""
_ASIDE: Final = re.compile(r"(NOTE|STYLE|REGION)(\s|$)")
_ALMOST_TIME: Final = re.compile(
    r"\s*(?:\d+:)+\d+[.,]\d+\s*(?:[-–—=~]*(?:>|&gt;|→|to)|[-–—]+)\s*(?:\d+:)+\d+[.,]\d+\s*"
)
"""A line that was meant to be a cue's time, as far as people and programs get it wrong."""
_SHORT_TIME: Final = re.compile(r"\b(\d):(\d{1,2}):(\d{1,2})(?=[.,]\d)")
"""A time as Teams once wrote it, in which seconds go over 59."""
_WEBEX: Final = re.compile(r'\d+ "(?P<name>[^"]+)" \(\d+\)')
"""The form of Webex's identifiers of cues."""
_SBV: Final = re.compile(r"(\d+:\d{2}:\d{2}\.\d{3}),(\d+:\d{2}:\d{2}\.\d{3})")
_PRINTED: Final = re.compile(r"\[([\d:.]+ --> [\d:.]+)\]\s*(.*)")
"""A line as Whisper prints it while it listens."""
_WORD_TIME: Final = re.compile(r"<\d+:\d\d[:.\d]*>")
_CLOCK: Final = r"(?P<clock>(?:\d{1,2}:)?\d{1,2}:\d{2}(?:[.,]\d{1,3})?)"
_CLOCK_ALONE: Final = re.compile(rf"\[?{_CLOCK}\]?")
_BRACKETED: Final = re.compile(rf"\[(?P<name>[^\]]+)\]\s+{_CLOCK}")
_NAMED: Final = re.compile(rf"(?P<name>[^\s\d:][^:]{{0,60}}?)\s+\(?{_CLOCK}\)?:?")
_INLINE: Final = re.compile(rf"\[?{_CLOCK}\]?[\s\-–]+(?P<text>(?P<name>[^:]{{1,60}}):\s.*)")
_MARKUP: Final = re.compile(r"</?[A-Za-z][^>]*>|<\d+:\d\d[:.\d]*>|<>")


class Cue(Struct, frozen=True):
    """A caption. ``number``: its place in the file, from 1; times in seconds from the start.

    ``markup``: the text has tags and entities of WebVTT. ``speaker``: named outside of the text;
    empty if others are.
    """

    number: int
    start: float
    end: float
    text: str
    markup: bool = True
    speaker: str | None = None


def read(file: Path) -> list[Cue]:
    """The cues of a file in the order of their start.

    Raises:
        ImportRefused: it is no transcript, or one of its cues cannot be read.
    """
    text = decoded(file)
    lines = text.lstrip().split("\n")
    if text.lstrip().startswith("WEBVTT"):
        cues = list(_without_rolling(_captions(lines, "vtt"), text))
    elif text.lstrip().startswith(("{", "[{")):
        cues = _of_json(text, file)
    elif any(_PRINTED.fullmatch(line) for line in lines):
        printed = "\n".join(_PRINTED.sub(r"\1\n\2\n", line) for line in lines)
        cues = list(_captions(["WEBVTT", "", *printed.split("\n")], "vtt"))
    elif any(ARROW in line for line in lines):
        cues = list(_captions(lines, "srt"))
    elif any(_SBV.fullmatch(line.strip()) for line in lines):
        cues = list(_captions([_SBV.sub(rf"\1 {ARROW} \2", line) for line in lines], "srt"))
    else:
        cues = list(_of_meeting(lines))
    if not cues:
        raise ImportRefused(f"{file} is not a transcript: {FORMATS}")
    return sorted(cues, key=lambda cue: cue.start)


def decoded(file: Path) -> str:
    """The text of a file in UTF-8, UTF-16 or UTF-32, with or without a byte order mark.

    Raises:
        ImportRefused: it cannot be read, or has another encoding.
    """
    try:
        raw = file.read_bytes()
    except OSError as problem:
        raise ImportRefused(f"{file} cannot be read: {problem.strerror}") from None
    try:
        text = raw.decode(json.detect_encoding(raw[:4]))
    except UnicodeDecodeError:
        raise ImportRefused(
            f"{file} is not in UTF-8: save it in UTF-8 (iconv -f WINDOWS-1252 -t UTF-8)"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _captions(lines: Sequence[str], kind: str) -> Iterator[Cue]:
    """Captions of WebVTT or SRT; a paragraph without a time continues the cue before it."""
    number = 0
    timing: str | None = None
    payload: list[str] = []
    speaker: str | None = None
    aside = kind == "vtt"  # in the header or a comment, which end with a blank line
    for index, line in enumerate(lines):
        after_blank = index == 0 or not lines[index - 1].strip()
        before_time = index + 1 < len(lines) and ARROW in lines[index + 1]
        comment = kind == "vtt" and after_blank and bool(_ASIDE.match(line))
        if ARROW in line or comment:
            if timing is not None:
                yield _caption(number, timing, payload, kind, speaker)
            timing, payload, aside = None if comment else line.strip(), [], comment
            named = _WEBEX.fullmatch(lines[index - 1].strip()) if index else None
            speaker = named["name"] if named else None
            number += not comment
        elif not line.strip():
            aside = False
        elif _ALMOST_TIME.fullmatch(line):
            raise _unreadable(number + 1, kind)
        elif aside or (before_time and _is_identifier(line, kind, after_blank, payload)):
            continue
        elif timing is None:
            raise ImportRefused(f"line {index + 1} is in no cue: write a time before it")
        else:
            payload.append(line)
    if timing is not None:
        yield _caption(number, timing, payload, kind, speaker)


def _is_identifier(line: str, kind: str, after_blank: bool, payload: list[str]) -> bool:
    """Whether the line before a time names its cue, and is not the text of a cue without one."""
    if line.strip().isdigit() or _WEBEX.fullmatch(line.strip()):
        return True
    return kind == "vtt" and after_blank and (bool(payload) or " " not in line.strip())


def _caption(number: int, timing: str, payload: list[str], kind: str, speaker: str | None) -> Cue:
    """One cue, as the library reads it.

    Raises:
        ImportRefused: its time cannot be read.
    """
    timing = _SHORT_TIME.sub(_carried, timing)
    block = [*(("WEBVTT", "") if kind == "vtt" else ("1",)), timing, *(payload or [SILENCE])]
    try:
        found = webvtt.from_buffer((f"{line}\n" for line in block), format=kind).captions
    except (webvtt.errors.MalformedFileError, webvtt.errors.MalformedCaptionError):
        found = []
    if len(found) != 1:
        raise _unreadable(number, kind)
    [caption] = found
    start, end = (time.in_milliseconds() / 1000 for time in (caption.start_time, caption.end_time))
    if end < start:
        raise ImportRefused(f"cue {number} ends before it starts")
    return Cue(number, start, end, caption.raw_text if payload else "", speaker=speaker)


def _unreadable(number: int, kind: str) -> ImportRefused:
    mark = "." if kind == "vtt" else ","
    example = f"00:01:02{mark}500 --> 00:01:04{mark}000"
    return ImportRefused(f"cue {number} cannot be read: its time should be as in {example}")


def _carried(clock: re.Match[str]) -> str:
    """The usual form of a time of Teams."""
    seconds = (int(clock[1]) * 60 + int(clock[2])) * 60 + int(clock[3])
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _without_rolling(cues: Iterator[Cue], text: str) -> Iterator[Cue]:
    """Captions without the lines that a rolling display repeats, as YouTube's automatic ones do."""
    if not _WORD_TIME.search(text):
        yield from cues
        return
    shown: list[str] = []
    for cue in cues:
        lines = [line for line in map(_bare, cue.text.split("\n")) if line]
        same = next(
            n
            for n in range(min(len(shown), len(lines)), -1, -1)
            if shown[len(shown) - n :] == lines[:n]
        )
        shown = lines
        yield Cue(cue.number, cue.start, cue.end, "\n".join(lines[same:]))


def _bare(line: str) -> str:
    return " ".join(_MARKUP.sub("", line).split())


def _of_json(text: str, file: Path) -> list[Cue]:
    """Segments of Whisper, WhisperX, OpenAI's diarised answers (seconds) or whisper.cpp (ms)."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ImportRefused(f"{file} is not valid JSON: {FORMATS}") from None
    parts: Any = found
    if isinstance(found, dict):
        parts = found.get("segments", found.get("transcription"))
    if not isinstance(parts, list):
        raise ImportRefused(f"{file} has no list `segments`: {FORMATS}")
    cues = [_segment(number, part) for number, part in enumerate(parts, 1)]
    named = any(cue.speaker for cue in cues)  # then one without a speaker is not the one before
    return [structs.replace(cue, speaker=cue.speaker or "") if named else cue for cue in cues]


def _segment(number: int, part: Any) -> Cue:
    try:
        if "offsets" in part:
            start, end = (float(part["offsets"][name]) / 1000 for name in ("from", "to"))
        else:
            start, end = float(part["start"]), float(part["end"])
        text, speaker = part["text"], part.get("speaker")
    except (TypeError, KeyError, ValueError, AttributeError):
        start, end, text, speaker = 0.0, -1.0, None, None
    if not 0 <= start <= end < float("inf") or not isinstance(text, str):
        raise ImportRefused(f"segment {number} cannot be read: it needs start, end and text")
    named = str(speaker) if isinstance(speaker, str | int) and str(speaker).strip() else None
    return Cue(number, start, end, text, markup=False, speaker=named)


def _of_meeting(lines: Sequence[str]) -> Iterator[Cue]:
    """Paragraphs under a clock: Zoom's `[Name] 10:02:13`, Teams' `Name 0:03`, Meet's `00:05:00`."""
    number = 0
    head: tuple[str | None, float] | None = None
    payload: list[str] = []
    blank = True
    first: float | None = None
    for line in [*lines, "0:00"]:
        bare = line.strip()
        inline = _INLINE.fullmatch(bare)
        said = inline is not None and looks_like_name(inline["name"])
        found = _head(inline["clock"] if said and inline else bare, after_blank=blank)
        blank = not bare
        if found is None:
            payload += [bare] if bare and head is not None else []
            continue
        if head is not None and payload:
            number += 1
            yield Cue(number, head[1], head[1], "\n".join(payload), markup=False, speaker=head[0])
        name, at = found
        first = at if first is None else first
        head, payload = (name, max(0.0, at - first)), [inline["text"]] if said and inline else []


def _head(line: str, *, after_blank: bool) -> tuple[str | None, float] | None:
    """Speaker, if named, and seconds of a line that begins a paragraph."""
    if found := _BRACKETED.fullmatch(line):
        return found["name"], _seconds(found["clock"])
    if found := _CLOCK_ALONE.fullmatch(line):
        return None, _seconds(found["clock"])
    if after_blank and (found := _NAMED.fullmatch(line)) and looks_like_name(found["name"]):
        return found["name"], _seconds(found["clock"])
    return None


def _seconds(clock: str) -> float:
    total = 0.0
    for part in clock.replace(",", ".").split(":"):
        total = total * 60 + float(part)
    return total
