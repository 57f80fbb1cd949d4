"""Names of people: given in an introduction, or mentioned where the words show a person."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from stream_app.redaction.lexicon import FEELINGS, Lexicon, lexicon
from stream_app.redaction.spans import Kind, Span
from stream_app.redaction.tokens import (
    APOSTROPHES,
    WORD,
    Token,
    beside,
    candidates,
    is_known,

    token_at,
)

_AP: Final = rf"[{APOSTROPHES}]?"
_NAME_IS = re.compile(
    rf"\b(?:(?:my|the) (?:(?:full|first|last|real|middle|given|maiden) )?name(?:{_AP}s| is| was)"
    rf"|mein name ist|ich hei(?:ß|ss)e|je m{_AP}appelle|me llamo|mi chiamo|ik heet|mam na imię"
    r"|nazywam się)[ ,:]{1,2}",
    re.IGNORECASE,
)
_CALLED = re.compile(
    rf"\b(?:i(?:{_AP}m| am) (?:called|known as)|call me|knows? me as|i go by"
    rf"|(?:speaking|talking) (?:to|with)|(?:best wishes|regards|yours|sincerely|signed|cheers)[,:])\s",
    re.IGNORECASE,
)
_I_AM = re.compile(rf"\b(?:i{_AP}m|i am|this is|it{_AP}s|it is|and i{_AP}m)\s", re.IGNORECASE)
_HERE = re.compile(rf"(?P<name>{WORD}(?: {WORD})?),? (?:here|speaking)(?![\w’'])")
_CLOSED = re.compile(
    r"\s*(?:$|[.,!?;()\n]|(?:and|from|here|speaking|but|again|by the way)\b)", re.IGNORECASE
)
_NEXT_NAME = re.compile(
    rf"[ -](?P<particle>(?:(?:van|von|de|der|den|del|della|di|da|do|dos|la|le|bin|al|el|zu|ten|ter)"
    rf" ){{1,2}})?(?:[A-Z]\. )?(?P<name>{WORD})"
)
_MOST_NAMES: Final = 3
"""Further words of a full name."""
_NEVER: Final = frozenset(
    "a about all also am an and any are as at be because but by can do for from had has have he her"
    " here him his how i if in is it its just like me my neither never no nobody none nor not"
    " nothing of ok okay on one only or our out really she so sorry still that the their there"
    " these they this those to too up very was we well were what when where which who why with"
    " would you your yes".split()
)
_NO_ADJECTIVE = re.compile(r".*(?:ed|ing|ful|less|ous|ive|ish|ian|able|ible|ist|ly|ness|ie?st)$")
_TITLES: Final = frozenset("mr mrs ms miss mx dr doctor prof professor sir herr frau señor señora"
    " monsieur madame signor signora officer nurse auntie aunty aunt uncle".split())
_NOT_FIRST: Final = _NEVER | _TITLES
_PERSON: Final = frozenset(
    "husband wife son daughter brother sister friend bestie boss partner ex boyfriend girlfriend"
    " fiancé fiancée fiance fiancee cousin niece nephew uncle aunt mother father mom mum stepdad"
    " stepmom stepmum stepfather stepmother stepson stepdaughter grandmother grandfather grandma"
    " grandpa grandson granddaughter twin baby kid child roommate flatmate housemate neighbour"
    " neighbor colleague coworker co-worker manager supervisor teacher therapist counsellor"
    " counselor psychologist psychiatrist lecturer classmate mate buddy landlord named name pastor"
    " coach carer dog cat puppy horse".split()
)
_TELLING: Final = frozenset(
    "told tell telling asked ask asking met meet married marry marrying texted texting phoned"
    " messaged emailed called dating dated hugged kissed divorced visited visiting invited thanked"
    " phoning seeing named marrying bullied blamed".split()
)
_WITH: Final = frozenset(
    "with saw miss love loved loves hate hated hates knew know and or by from about trust trusted"
    " forgave forgive left lost found remember want wanted hurt hurts because that since if when"
    " for to of is was dear hi hello hey says said why did does".split()
)
_SAYING: Final = frozenset("said says told tells asked asks texted called phoned replied".split())
_ACTING: Final = _SAYING | frozenset(
    "died left hit hits hurt cheated promised lied moved came went shouted yelled refuses refused"
    " thinks thought knows knew wants wanted loves loved hates hated kept keeps laughed cried cries"
    " drinks drank works worked lives lived doesn’t doesn't won’t won't didn’t didn't isn’t isn't"
    " wasn’t wasn't hasn’t hasn't".split()
)
_MONTHS: Final = frozenset("april may june august".split())


def people(text: str) -> Iterator[Span]:
    """Names in introductions, and names that are mentioned."""
    words = lexicon()
    yield from _introductions(text, words)
    yield from _mentions(text, candidates(text, words), words)


def _introductions(text: str, words: Lexicon) -> Iterator[Span]:
    for pattern, accepts in (
        (_NAME_IS, _may_be_called),
        (_CALLED, _is_name),
        (_I_AM, _is_introduced),
    ):
        for cue in pattern.finditer(text):
            found = token_at(text, cue.end())
            if found and found.key not in _NOT_FIRST and accepts(text, found, words):
                end = _whole_name(text, found, words)
                if pattern is _NAME_IS:
                    end = _with_any_surname(text, found, end)
                yield Span(found.start, end, Kind.INTRODUCED_NAME)
    for match in _HERE.finditer(text):
        found = token_at(text, match.start("name"))
        if found and found.capital and _is_name(text, found, words):
            if _whole_name(text, found, words) == match.end("name"):
                yield Span(*match.span("name"), Kind.INTRODUCED_NAME)


def _may_be_called(_: str, found: Token, words: Lexicon) -> bool:
    """After "my name is": any capitalised word; in lower case names and unknown words."""
    if found.capital or found.key in words.given or found.key in words.word_names:
        return True
    return len(found.key) > 2 and not is_known(found.key, words)


def _is_name(_: str, found: Token, words: Lexicon) -> bool:
    """After "call me": not what is an English word and no name."""
    if found.key in words.given:
        return True
    if found.key in words.word_names:
        return found.capital
    return len(found.key) > 2 and not is_known(found.key, words)


def _is_introduced(text: str, found: Token, words: Lexicon) -> bool:
    """After "I'm" and "this is", where feelings are more frequent than names."""
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


def _with_any_surname(text: str, first: Token, end: int) -> int:
    """After "my name is Joan": a capitalised word is a surname, even if it is an English word."""
    if end > first.end or not first.capital or text[end : end + 1] != " ":
        return end
    found = token_at(text, end + 1)
    surname = found and found.capital and found.word.istitle() and found.key not in _NEVER
    return found.end if found and surname else end


def _may_follow(found: Token, words: Lexicon) -> bool:
    if found.key in words.given:
        return True
    if not found.capital:
        return False
    if found.key in words.word_surnames or found.key in words.word_names:
        return found.key not in _NEVER and found.key not in _MONTHS
    return len(found.key) > 1 and not is_known(found.key, words)


def _mentions(text: str, tokens: Sequence[Token], words: Lexicon) -> Iterator[Span]:
    end = 0
    shouted = text.isupper()
    for at, found in enumerate(tokens):
        if found.start < end:
            continue
        before = tokens[at - 1] if at and beside(text, tokens[at - 1], found) else None
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
    if cue in _TITLES:
        return key not in words.words or key in words.word_surnames or key in words.word_names
    strict = key in FEELINGS or key in _MONTHS
    if key in words.word_names:
        return _is_person(text, found, before, strict)
    if is_known(key, words):
        return False
    return joined or cue in _PERSON or cue in _TELLING or _follows(text, found, _ACTING)


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


