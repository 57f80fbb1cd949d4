"""Finds what a message only quotes: lines after ``>``, earlier and forwarded mails, signatures.

How mail programs of several languages introduce an earlier mail is known to mail-parser-reply. Its
patterns are tried on single short lines, which bounds their cost.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from mailparser_reply.constants import MAIL_LANGUAGES

from stream_app.plain_text.mapped import Mapped, Span

_LONGEST: Final = 200
"""Characters of a line, or of two that were wrapped, that can introduce a mail."""
_MOST_TRIED: Final = 50
"""Lines of a text on which the patterns are tried."""
_MOST_SIGNED: Final = 12
"""Lines of a signature."""
_QUOTED: Final = re.compile(r"[ \t]*(?:>[ \t]*)+(?:[^\W_]|[\"'“”‘’(\[*@<•…&]|\Z)")
_EMOTICON: Final = re.compile(r"[ \t]*>(?:\d|[:;=<]|\.[<>])")
_FORWARD: Final = re.compile(
    r"[ \t>]*(?:-{3,} ?(?:{0}) ?-{3,}|(?:{0}):)[ \t]*\Z".replace(
        "{0}",
        "(?:Begin )?forwarded (?:message|by .{1,60})|original (?:message|appointment)"
        "|Anfang der weitergeleiteten (?:E-Mail|Nachricht)|weitergeleitete Nachricht"
        "|ursprüngliche Nachricht|début du message (?:réexpédié|transféré)|message (?:transféré"
        "|d'origine)|(?:inicio del )?mensaje reenviado|mensaje original"
        "|(?:begin )?doorgestuurd bericht|oorspronkelijk bericht",
    ),
    re.IGNORECASE,
)
_HEADER: Final = re.compile(
    r"[ \t>*]*(?:from|sent|to|subject|date|cc|von|gesendet|an|betreff|datum|de|envoyé|à|objet"
    r"|para|enviado|asunto|fecha|da|inviato|a|oggetto|van|verzonden|aan|onderwerp)[ \t*]*:",
    re.IGNORECASE,
)
_RULE: Final = re.compile(r"[ \t]*[_-]{10,}[ \t]*\Z")
_SIGNED: Final = re.compile(r"[ \t]*--[ \t]*\Z")
_COLON: Final = re.compile(r"[:：]\s*\Z")
_DATED: Final = re.compile(r"[\d@]")


class _Line(NamedTuple):
    start: int
    end: int
    text: str

    @property
    def quotes(self) -> bool:
        """Whether it stands after ``>``."""
        return bool(_QUOTED.match(self.text)) and not _EMOTICON.match(self.text)


def without_quotes(text: Mapped) -> Mapped:
    """Remove what the speaker only quotes, and signatures.

    A long text of one line has lost its line breaks: only its beginning may be quoted.
    """
    said = text.text
    if "\n" not in said and (">" not in said or len(said) > _LONGEST):
        return text
    return text.without(_quoted(_lines(said)))


def _lines(text: str) -> list[_Line]:
    found, start = [], 0
    for line in text.split("\n"):
        end = start + len(line)
        found.append(_Line(start, end, line))
        start = end + 1
    return found


def _quoted(lines: Sequence[_Line]) -> list[Span]:
    found: list[Span] = []
    tried, at = 0, 0
    while at < len(lines):
        line, end = lines[at], at
        if line.quotes or _is_sent_from(lines, at):
            end = at + 1
        elif _ends_message(lines, at):
            end = len(lines)
        elif line.text.strip() and tried < _MOST_TRIED:
            tried += _COLON.search(line.text) is not None
            end = _end_of_introduced(lines, at)
        if end > at:
            found.append((line.start, lines[end - 1].end))
        at = max(end, at + 1)
    return found


def _end_of_introduced(lines: Sequence[_Line], at: int) -> int:
    """Where an introduction that begins here ends, with all that it introduces; ``at`` if none.

    Lines after ``>`` are found by themselves, and words below them are the speaker's.
    """
    behind = at + _introduction(lines, at)
    if behind == at:
        return at
    following = next((one for one in lines[behind:] if one.text.strip()), None)
    if following is not None and following.quotes:
        return behind
    return len(lines) if any(_DATED.search(one.text) for one in lines[at:behind]) else at


def _ends_message(lines: Sequence[_Line], at: int) -> bool:
    """Whether all that follows is a forwarded mail, an earlier one or a signature."""
    text = lines[at].text
    if _FORWARD.match(text):
        return True
    if _SIGNED.match(text):
        return len(lines) - at <= _MOST_SIGNED and any(one.text.strip() for one in lines[:at])
    if _RULE.match(text):
        at += 1
    headers = lines[at : at + 3]
    return (
        len(headers) == 3
        and all(_HEADER.match(one.text) for one in headers)
        and any(_DATED.search(one.text) for one in headers)
    )


def _introduction(lines: Sequence[_Line], at: int) -> int:
    """Over how many lines a mail is introduced that begins here: "On … wrote:"; 0 if none is."""
    text = ""
    for number, line in enumerate(lines[at : at + 2], 1):
        text = f"{text} {line.text.strip()}".strip()
        if not line.text.strip() or len(text) > _LONGEST:
            return 0
        if _COLON.search(text):
            return number if any(each.match(text) for each in _introductions()) else 0
    return 0


def _is_sent_from(lines: Sequence[_Line], at: int) -> bool:
    """Whether it is the last line, which a mail program has added."""
    line = lines[at].text
    if len(line) > _LONGEST or not _sent_from().fullmatch(line.strip()):
        return False
    return not any(one.text.strip() for one in lines[at + 1 :])


@cache
def _introductions() -> list[re.Pattern[str]]:
    known = [language.get("wrote_header") for language in MAIL_LANGUAGES.values()]
    return [re.compile(each, re.IGNORECASE) for each in known if each]


@cache
def _sent_from() -> re.Pattern[str]:
    known = [language.get("sent_from") for language in MAIL_LANGUAGES.values()]
    return re.compile(rf"(?:{'|'.join(filter(None, known))})\b.{{0,60}}", re.IGNORECASE)
