"""Which words before a colon name a speaker, and when two labels name the same one."""

import re
import unicodedata
from typing import Final

_PARTICLES: Final = "al bin d da das de del della den der di dos du el la le ter van von y"
_SENTENCE_STARTS: Final = """
actually again also and anyway basically because besides but date e.g eg er erm example fact finally
first fourth from he her here his honestly how however i i.e ie if it last later let listen look
mean meaning my n.b nb next no note now oh ok okay one or our p.s plus point ps re remember reminder
say second seriously she so sorry subject that the their then there they thing third this time to
today tomorrow tonight truth two uh um update warning we well what when where which who why yeah yes
yesterday yet you your monday tuesday wednesday thursday friday saturday sunday
"""
_IN_NAMES: Final = frozenset(_PARTICLES.split())
_NOT_NAMES: Final = frozenset(_SENTENCE_STARTS.split())
_PART: Final = re.compile(r"[^\W\d_][\w.'’\-]*,?|\d{1,4}|[A-Z]+_\d+", re.UNICODE)
_ASIDE: Final = re.compile(
    r"\s*\((?:guest|contractor|external|extern|unverified|host|co-host|organi[sz]er|presenter|you|"
    r"\w+/\w+(?:/\w+)?)\)\s*$",
    re.IGNORECASE,
)
_IN_BRACKETS: Final = re.compile(r"\s*\([^()]*\)$")
MAX_PARTS: Final = 6


def looks_like_name(label: str) -> bool:
    """Whether a label has the form of a name or of a numbered speaker, not of a sentence's start.

    >>> [looks_like_name(each) for each in ("Dr. K. Rao", "Ludwig van Dyk", "SPEAKER_00", "Client")]
    [True, True, True, True]
    >>> [looks_like_name(each) for each in ("I mean", "Note", "My doctor said", "It is this")]
    [False, False, False, False]
    """
    words = _IN_BRACKETS.sub("", bare(label)).split()
    if not 1 <= len(words) <= MAX_PARTS or words[0].lower().rstrip(".,") in _NOT_NAMES:
        return False
    return all(_is_part(word, first=number == 0) for number, word in enumerate(words))


def may_be_name(label: str) -> bool:
    """Whether a label in small letters may be a name: one word that begins no sentence.

    >>> may_be_name("anna"), may_be_name("honestly"), may_be_name("my mum")
    (True, False, False)
    """
    word = bare(label)
    return " " not in word and word.lower() not in _NOT_NAMES and bool(_PART.fullmatch(word))


def bare(label: str) -> str:
    """The label without what a meeting adds to it, such as `(Guest)`.

    >>> bare(" Tom  Hale (Contractor)"), bare("Ana (she/her)"), bare("Tom (Berlin)")
    ('Tom Hale', 'Ana', 'Tom (Berlin)')
    """
    text = unicodedata.normalize("NFC", " ".join(label.split()))
    while (shorter := _ASIDE.sub("", text)) not in (text, ""):
        text = shorter
    return text


def same(label: str) -> str:
    """Return a key that is equal for all labels of one speaker.

    >>> same("Tom  HALE (Guest)") == same("Tom Hale")
    True
    """
    return bare(label).casefold()


def _is_part(word: str, *, first: bool) -> bool:
    if not first and word.lower() in _IN_NAMES:
        return True
    return bool(_PART.fullmatch(word)) and not word[0].islower()
