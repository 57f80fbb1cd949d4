"""Turns a transcript of a recorded conversation into the turns of a session."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from stream_app.client import end, turn
from stream_app.client.events import Sendable
from stream_app.contracts.events import ROLE_ALIASES
from stream_app.importers import cues
from stream_app.importers.imported import (
    ImportRefused,
    Report,
    Skipped,
    identifier,
    readable,
    role_of,
    unreported,
)
from stream_app.importers.labels import UNNAMED, Labels, Spoken, spoken
from stream_app.importers.names import bare, same
from stream_app.importers.sentences import ENGLISH, Fits, fits_default_bundle, spans

PAUSE: Final = 30.0
"""Seconds of silence after which the same speaker begins another turn."""
NOBODY: Final = "nobody"
"""Instead of a role: what this speaker says is left out."""
WORDS: Final = "words"
"""Instead of a role: the label is no speaker, but the begin of a sentence."""
_NUMBERED: Final = re.compile(
    r"(?:speaker|spk|participant|guest|unknown|user|host|teilnehmer|sprecher)?[ _-]*\w?\d*",
    re.IGNORECASE,
)
"""Labels that a recogniser gives again in each recording."""


class Said(Struct, frozen=True):
    """An utterance of one speaker; times in seconds from the recording's start."""

    speaker: str | None
    text: str
    start: float
    end: float


def read(
    file: Path,
    roles: Mapping[str, str] | None = None,
    fits: Fits | None = None,
    report: Report = unreported,
) -> list[Said]:
    """The turns of a file, by start.

    Captions of one speaker that follow each other are one turn, which is split at sentence ends
    where the model would not read it to its end.

    Args:
        file: WebVTT, SRT, SBV, Whisper's JSON, or the text of a meeting.
        roles: by speaker; a label with the value ``words`` begins a sentence.
        fits: whether the model reads a text to its end; by default, the default bundle.
        report: gets what is left out.

    Raises:
        ImportRefused: it is no transcript, or something in it cannot be read.
    """
    found = cues.read(file)
    given = {name: role.strip().lower() for name, role in (roles or {}).items()}
    words = [name for name, role in given.items() if role == WORDS]
    labels = Labels(found, [name for name in given if name not in words], words)
    fits = fits or fits_default_bundle()
    return [
        part
        for monologue in _monologues(spoken(found, labels, report))
        for part in _split(monologue, fits)
    ]


def events_of(
    said: Sequence[Said],
    session: str,
    start: datetime,
    roles: Mapping[str, str],
    *,
    consent: bool | None = None,
    ids: Mapping[str, str] | None = None,
    report: Report = unreported,
    **about: Any,
) -> Iterator[Sendable]:
    """The session's turns, and its end.

    Args:
        said: of ``read``.
        session: its id.
        start: of the recording.
        roles: by speaker: a role, or ``nobody`` to leave out what the speaker says.
        consent: the client agreed to the analysis.
        ids: ``speaker_id`` by speaker. Without one, a counsellor's name is the id, the same in all
            sessions, and everybody else's is of this session.
        report: gets what is left out.
        about: other fields of the turns, such as ``team``.

    Raises:
        ImportRefused: a speaker has no role, or an unknown one.
    """
    given = {same(name): role for name, role in roles.items()}
    named = {same(name): speaker_id for name, speaker_id in (ids or {}).items()}
    for each in said:
        speaker = each.speaker or UNNAMED
        role = _role(speaker, given)
        if role is None:
            report(Skipped(f"{each.start:.0f} s", f"{speaker} is nobody of this conversation"))
            continue
        yield turn(
            identifier(session),
            role,
            readable(each.text),
            speaker_id=named.get(same(speaker)) or _speaker_id(session, speaker, role),
            occurred_at=start + timedelta(seconds=each.start),
            consent=consent,
            **{"channel": "voice", **about},
        )
    if said:
        last = max(each.end for each in said)
        yield end(identifier(session), occurred_at=start + timedelta(seconds=last))


def key(session: str, file: Path) -> str:
    """The idempotency key of a file: sent again as the same session, it adds nothing."""
    content = session.encode() + b"\0" + file.read_bytes()
    return f"transcript {hashlib.sha256(content).hexdigest()[:32]}"


def _role(speaker: str, given: Mapping[str, str]) -> str | None:
    """The speaker's role; None if the words are left out."""
    role = given.get(same(speaker))
    valid = ", ".join([*ROLE_ALIASES, NOBODY, WORDS])
    if role is None:
        raise ImportRefused(
            f"who is {speaker}? Give --role '{speaker}=client' or '{speaker}=counsellor'; "
            f"'={NOBODY}' leaves the words out, '={WORDS}' says that this is no speaker's name"
        )
    if role.strip().lower() == NOBODY:
        return None
    found = role_of(role)
    if found is None:
        raise ImportRefused(f"{speaker} has an unknown role; one of {valid} is needed")
    return found.value


def _speaker_id(session: str, speaker: str, role: str) -> str:
    """A counsellor's name, so that the sessions of one person belong together; else per session."""
    name = bare(speaker)
    if role == "counsellor" and not _NUMBERED.fullmatch(name) and speaker != UNNAMED:
        return identifier(same(name))
    return identifier(f"{session} {name}")


def _monologues(spoken: Iterator[Spoken]) -> Iterator[list[Spoken]]:
    """Consecutive words of one speaker, without a long pause between them."""
    run: list[Spoken] = []
    for each in spoken:
        if run and (each.speaker != run[0].speaker or each.start - run[-1].end > PAUSE):
            yield run
            run = []
        run.append(each)
    if run:
        yield run


def _split(run: list[Spoken], fits: Fits) -> Iterator[Said]:
    """The parts of a monologue; each begins when the caption with its first word does."""
    text = " ".join(each.text for each in run)
    begins: list[tuple[int, Spoken]] = []
    at = 0
    for each in run:
        begins.append((at, each))
        at += len(each.text) + 1
    for begin, stop in spans(text, fits, ENGLISH):
        first = _at(begins, begin)
        last = max(_at(begins, stop - 1).end, first.end)
        yield Said(first.speaker, text[begin:stop], first.start, last)


def _at(begins: Sequence[tuple[int, Spoken]], position: int) -> Spoken:
    return next(each for at, each in reversed(begins) if at <= position)
