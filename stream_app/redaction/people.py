"""Names of people: given in an introduction, or mentioned where the words show a person."""

import re
from collections.abc import Iterator
from typing import Final

from stream_app.redaction.lexicon import FEELINGS, Lexicon
from stream_app.redaction.near import matches, near_words
from stream_app.redaction.spans import Kind, Span
from stream_app.redaction.tokens import (
    APOSTROPHES,
    WORD,
    Token,
    Tokens,
    is_known,
    token_at,
)
from stream_app.redaction.vocabulary import vocabulary

_AP: Final = rf"[{APOSTROPHES}]?"
_NAME_IS = re.compile(
    rf"\b(?:(?:my|the) (?:(?:full|first|last|real|middle|given|maiden) )?name(?:{_AP}s| is| was)"
    rf"|mein name ist|ich hei(?:ß|ss)e|je m{_AP}appelle|me llamo|mi chiamo|ik heet|mam na imię"
    r"|nazywam się|(?<![\w ] )(?<!\w)(?:(?:full|first|last) )?name(?=:))[ ,:]{1,2}",
    re.IGNORECASE,
)
_CALLED = re.compile(
    rf"\b(?:i(?:{_AP}m| am) (?:called|known as)|call me|knows? me as|i go by"
    r"|(?:speaking|talking) (?:to|with)"
    r"|(?:best wishes|regards|yours|sincerely|signed|cheers)[,:])\s",
    re.IGNORECASE,
)
_I_AM = re.compile(
    # no leading \b: a pattern that begins with characters is searched several times faster
    rf"(?:[iI](?<!\w.)(?:{_AP}[mM]| [aA][mM]|[tT]{_AP}[sS]|[tT] [iI][sS])"
    rf"|[tT](?<!\w.)(?:his|HIS) (?:is|IS))\s(?=[^\W\d_a-z][^\W\d_]|[^\W\d_]{{5}})"
)
_NAME_IS_CUES: Final = (
    "name",
    "ich hei",
    "appelle",
    "me llamo",
    "mi chiamo",
    "ik heet",
    "mam na imi",
    "nazywam si",
)
_CALLED_CUES: Final = (
    *("called", "known as", "call me", "me as", "go by", "king to", "king with", "wishes"),
    *("regards", "yours", "sincerely", "signed", "cheers"),
)
_I_AM_CUES: Final = ("m ", "this is", "s ", "it is")
_HERE = re.compile(
    rf"(?<![\w{APOSTROPHES}-])(?P<name>{WORD}(?: {WORD})?),? (?:here|speaking)(?![\w{APOSTROPHES}])"
)
_CLOSED = re.compile(
    r"\s*(?:$|[.,!?;()\n]|(?:and|from|here|speaking|but|again|by the way)\b)", re.IGNORECASE
)
_NEXT_NAME = re.compile(
    rf"[ -](?P<particle>(?:(?:van|von|de|der|den|del|della|di|da|do|dos|la|le|bin|al|el|zu|ten|ter)"
    rf" ){{1,2}})?(?:[A-Z]\. )?(?P<name>{WORD})"
)
_MOST_NAMES: Final = 3
"""Further words of a full name."""
_NEVER: Final = vocabulary("people", "never")
_NO_ADJECTIVE = re.compile(r".*(?:ed|ing|ful|less|ous|ive|ish|ian|able|ible|ist|ly|ness|ie?st)$")
_TITLES: Final = vocabulary("people", "titles")
_NOT_FIRST: Final = _NEVER | _TITLES
_PERSON: Final = vocabulary("people", "person")
_TELLING: Final = vocabulary("people", "telling")
_WITH: Final = vocabulary("people", "with")
_SAYING: Final = vocabulary("people", "saying")
_ACTING: Final = _SAYING | vocabulary("people", "acting")
_MONTHS: Final = vocabulary("people", "months")


def people(text: str, tokens: Tokens, words: Lexicon) -> Iterator[Span]:
    """Names in introductions, and names that are mentioned."""
    yield from _introductions(text, words)
    yield from _mentions(text, tokens, words)


def _introductions(text: str, words: Lexicon) -> Iterator[Span]:
    for pattern, cues, accepts in (
        (_NAME_IS, _NAME_IS_CUES, _may_be_called),
        (_CALLED, _CALLED_CUES, _is_name),
        (_I_AM, _I_AM_CUES, _is_introduced),
    ):
        for cue in matches(pattern, text, near_words(text, cues, 30, 40)):
            found = token_at(text, cue.end())
            if found and found.key not in _NOT_FIRST and accepts(text, found, words):
                end = _with_any_surname(text, found, _whole_name(text, found, words), words)
                yield Span(found.start, end, Kind.INTRODUCED_NAME)
    for match in matches(_HERE, text, near_words(text, (" here", " speaking"), 60, 12)):
        found = token_at(text, match.start("name"))
        whole = found and _whole_name(text, found, words) == match.end("name")
        if found and whole and found.capital and _is_name(text, found, words):
            yield Span(*match.span("name"), Kind.INTRODUCED_NAME)


def _may_be_called(_: str, found: Token, words: Lexicon) -> bool:
    """Accept after "my name is" any capitalised word; in lower case names and unknown words."""
    if found.capital or found.key in words.given or found.key in words.word_names:
        return True
    return len(found.key) > 2 and not is_known(found.key, words)


def _is_name(_: str, found: Token, words: Lexicon) -> bool:
    """Accept after "call me" what is not an English word and no name."""
    if found.key in words.given:
        return True
    if found.key in words.word_names:
        return found.capital
    return len(found.key) > 2 and not is_known(found.key, words)


def _is_introduced(text: str, found: Token, words: Lexicon) -> bool:
    """Accept names after "I'm" and "this is", where feelings are more frequent."""
    if found.key in words.given:
        return found.capital or found.key in words.english_given or len(found.key) > 4
    if not found.capital:
        return False
    end = _whole_name(text, found, words)
    if found.key in words.word_names:
        return end > found.end or (
            bool(_CLOSED.match(text, end))
            and found.key not in _MONTHS
            and (found.key not in FEELINGS or "name" in text)
        )
    if is_known(found.key, words) or found.word.isupper() or _NO_ADJECTIVE.match(found.key):
        return False
    return len(found.key) > 2 and (end > found.end or bool(_CLOSED.match(text, end)))


def _whole_name(text: str, first: Token, words: Lexicon) -> int:
    """Where the name ends that begins with this word."""
    end, capital = first.end, first.capital
    if text[end : end + 1] in APOSTROPHES:
        return end
    for _ in range(_MOST_NAMES):
        match = _NEXT_NAME.match(text, end)
        if not match:
            break
        found = token_at(text, match.start("name"))
        if not found or found.capital != capital or not _may_follow(found, words):
            break
        end = found.end
        if found.end < match.end():
            break
    return end


def _with_any_surname(text: str, first: Token, end: int, words: Lexicon) -> int:
    """A capitalised word that closes "my name is Joan …" is a surname, even an English word.

    In small letters an unknown word is, too, and a surname of the list that closes it.
    """
    if text[end : end + 1] != " ":
        return end
    found = token_at(text, end + 1)
    if found and not first.capital and not found.capital:
        listed = found.key in words.word_surnames and _CLOSED.match(text, found.end)
        unknown = len(found.key) > 3 and not is_known(found.key, words)
        return found.end if (listed or unknown) and found.key not in _NEVER else end
    if end > first.end or not first.capital:
        return end
    if not found or not found.word.istitle() or found.key in _NEVER | words.not_names:
        return end
    return found.end if _CLOSED.match(text, found.end) else end


def _may_follow(found: Token, words: Lexicon) -> bool:
    if found.key in words.given:
        return True
    if not found.capital:
        return False
    if found.key in words.word_surnames or found.key in words.word_names:
        return found.key not in _NEVER and found.key not in _MONTHS
    return len(found.key) > 1 and not is_known(found.key, words)


def _mentions(text: str, tokens: Tokens, words: Lexicon) -> Iterator[Span]:
    end = 0
    shouted = text.isupper()
    for at, found in tokens.candidates():
        if found.start < end:
            continue
        before = tokens.before(at)
        joined = bool(before and before.key in {"and", "or"} and end and before.start <= end + 1)
        if _is_mentioned(text, found, before, joined, shouted, words):
            end = _whole_name(text, found, words)
            yield Span(found.start, end, Kind.MENTIONED_NAME)


def _is_mentioned(
    text: str, found: Token, before: Token | None, joined: bool, shouted: bool, words: Lexicon
) -> bool:
    key, cue = found.key, before.key if before else ""
    if not found.capital:
        return key in words.english_given or (
            key in words.given and len(key) > 3 and cue in _PERSON
        )
    acronym = found.word.isupper() and not shouted
    if key in words.given:
        return not acronym or len(key) > 3
    if key in _NEVER or acronym or len(key) < 3:
        return False
    if cue in _TITLES and (key not in words.words or key in words.word_surnames):
        return True
    if key in words.word_names:
        return _is_person(text, found, before, key in FEELINGS or key in _MONTHS)
    unknown = not is_known(key, words)
    person = joined or cue in _PERSON or cue in _TELLING or _follows(text, found, _ACTING)
    return unknown and person


def _is_person(text: str, found: Token, before: Token | None, strict: bool) -> bool:
    """Whether what stands beside a name that is also a word shows that it is a name."""
    if before and (before.key in _PERSON or before.key in _TELLING):
        return True
    if _follows(text, found, _SAYING if strict else _ACTING):
        return True
    return bool(not strict and before and before.word in _WITH)


def _follows(text: str, found: Token, verbs: frozenset[str]) -> bool:
    behind = token_at(text, found.end + 1) if text[found.end : found.end + 1] == " " else None
    return bool(behind and behind.key in verbs)
