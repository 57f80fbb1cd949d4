"""Speakers of a cue: voices of WebVTT, and the labels that recognisers write into the text."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from html import unescape
from typing import Final

from msgspec import Struct, structs

from stream_app.importers.cues import Cue
from stream_app.importers.imported import ImportRefused, Report, Skipped, unreported
from stream_app.importers.names import bare, looks_like_name, may_be_name, same

UNNAMED: Final = "(nobody named)"
"""A speaker whom the transcript tells from the others, but does not name."""
NOTICE: Final = re.compile(
    r"(?:note:\s*)?(?:this meeting is being|recording(?: is)?(?: has been)?) "
    r"(?:recorded|paused|resumed|started|stopped|in progress)\W*"
    r"|meeting ended after .*|transcribed by \S+|this editable transcript was computer generated.*"
    r"|\[(?:blank_audio|silence|music|no speech)\]",
    re.IGNORECASE,
)
"""A line that a program wrote."""
_VOICE: Final = re.compile(r"<v(?:\.[\w.-]+)*(?:[ \t]+([^>]*))?>")
_TAG: Final = re.compile(r"</?[A-Za-z][^>]*>|<\d+:\d\d[:.\d]*>|<>|\{\\[^}]*\}")
_SPEAKER: Final = re.compile(
    r"(?:speaker|spk|participant|teilnehmer|sprecher)[ _-]?\w*", re.IGNORECASE
)
_BRACKET: Final = re.compile(r"[\[(](?P<label>[^\])\n]{1,60})[\])](?P<colon>\s*[:：])?\s*")
_COLON: Final = re.compile(r"(?P<label>[^\s:：\[(<][^:：\n]{0,60}?)\s*(?::(?=\s)|：)\s*")
_TURN: Final = re.compile(r"\s*>>+\s*|\s*[-–—]\s+")
_TURN_AFTER: Final = re.compile(r"\s*\[SPEAKER_TURN\]\s*", re.IGNORECASE)


class Spoken(Struct, frozen=True):
    """Words and who says them; None if nobody is named. ``cue``: its number."""

    speaker: str | None
    text: str
    start: float
    end: float
    cue: int


class Labels:
    """Which labels of a transcript name speakers.

    ``names``: speakers that the user named. ``words``: labels that are words of a sentence.
    """

    def __init__(
        self, cues: Sequence[Cue], names: Collection[str] = (), words: Collection[str] = ()
    ) -> None:
        self._names = {same(name) for name in names}
        self._words = {same(label) for label in words}
        self._often = Counter(
            same(found["label"])
            for cue in cues
            for line in _plain(cue).split("\n")
            if (found := _COLON.match(_TURN.sub("", line, count=1)))
        )

    def of(self, line: str) -> tuple[str, str] | None:
        """Speaker and rest of a line that begins with a label."""
        if (found := _BRACKET.match(line)) and self._is_bracketed(found):
            return bare(found["label"]), line[found.end() :]
        if (found := _COLON.match(line)) and self._is_name(found["label"]):
            return bare(found["label"]), line[found.end() :]
        return None

    def _is_bracketed(self, found: re.Match[str]) -> bool:
        label = same(found["label"])
        if label in self._words:
            return False
        if label in self._names or _SPEAKER.fullmatch(label):
            return True
        return found["colon"] is not None

    def _is_name(self, label: str) -> bool:
        key = same(label)
        if key in self._words:
            return False
        if key in self._names or _SPEAKER.fullmatch(key) or looks_like_name(label):
            return True
        return self._often[key] > 1 and may_be_name(label)


def spoken(cues: Sequence[Cue], labels: Labels, report: Report = unreported) -> Iterator[Spoken]:
    """The words of cues in order; without a label, the speaker before goes on.

    Raises:
        ImportRefused: the speaker changes within a cue, and nobody says to whom.
    """
    speaker: str | None = None
    for cue in cues:
        lines = cue.text.split("\n")
        words = [line for line in lines if not NOTICE.fullmatch(_without_tags(line).strip())]
        if len(words) < len(lines):
            report(Skipped(f"cue {cue.number}", "a notice of the recording, nobody's words"))
        for named, text in _in_cue(structs.replace(cue, text="\n".join(words)), labels):
            speaker = named or speaker
            if said := " ".join(text.split()):
                yield Spoken(speaker, said, cue.start, cue.end, cue.number)


def _in_cue(cue: Cue, labels: Labels) -> Iterator[tuple[str | None, str]]:
    """Speakers and texts; None continues the speaker before."""
    if cue.speaker is not None:
        yield bare(cue.speaker) or UNNAMED, _plain(cue)
        return
    if cue.markup and _VOICE.search(cue.text):
        before, *found = _VOICE.split(cue.text)
        yield None, _without_tags(before)
        for name, text in zip(found[::2], found[1::2], strict=True):
            yield bare(unescape(name or "")) or UNNAMED, _without_tags(text)
        return
    lines = _plain(cue).split("\n")
    marked = sum(bool(_TURN.match(line)) for line in lines)
    for line in lines:
        turn = _TURN.match(line)
        rest = line[turn.end() :] if turn else line
        label = labels.of(rest)
        new = turn is not None and (marked > 1 or turn[0].strip().startswith(">"))
        if (new and label is None) or _TURN_AFTER.search(line):
            raise ImportRefused(
                f"cue {cue.number} changes the speaker without a name: write who speaks, and a "
                "colon, before the words"
            )
        yield label or (None, rest)


def _plain(cue: Cue) -> str:
    return _without_tags(cue.text) if cue.markup else cue.text


def _without_tags(text: str) -> str:
    return unescape(_TAG.sub("", text))
