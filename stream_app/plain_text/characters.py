"""One form for characters that look alike: compatibility forms, apostrophes, dashes, white space.

What cannot be seen (soft hyphens, zero-width characters, marks of direction) is left out.
"""

import re
import unicodedata
from string import ascii_uppercase
from typing import Final

from stream_app.plain_text.mapped import Mapped

_LINE_END: Final = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0"
    "\ufff9-\ufffb\U000e0000-\U000e0fff]+|(?<=[A-Za-z])\ufe0f"
)
_APOSTROPHE: Final = re.compile(  # the last: UTF-8 as cp1252
    r"[’‘‛ʼʻʹ＇ꞌ՚‵]|\\(?=['’])|(?:(?<=[^\W\d_])|(?<=[\u0300-\u036f]))[`´′｀](?=[^\W\d_])|â€[™˜]"
)
_DASH: Final = re.compile("[‐‑‒–—―−﹘﹣－]")
_MARKS: Final = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f\u11a8-\u11ff"
_CLUSTER: Final = re.compile(
    rf"(?:[^\x00-\x7f]|[\x21-\x7e](?=[{_MARKS}]))[\u1161-\u11a7]?[{_MARKS}]*"
)
"""A letter outside ASCII or with marks on it, as far as it can become one character."""
_STYLED: Final = {
    **dict(zip(map(ord, "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ"), "abcdefghijklmnoprstuvwyz", strict=True)),
    **{
        first + number: letter
        for first in (0x1F150, 0x1F170)  # white on a disc and on a square
        for number, letter in enumerate(ascii_uppercase)
    },
}
"""Letters of ornamental alphabets that have no compatibility form."""
_LATIN: Final = re.compile("[A-Za-z]")
_FOREIGN: Final = re.compile("[Ͱ-Ͽ\u0400-\u052f]")
_LOOKALIKES: Final = dict(
    zip(
        "аеорсухіјѕԁһԛԝӏкмтАВЕКМНОРСТХІЈЅԌԚԜУαορνιΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
        "aeopcyxijsdhqwlkmtABEKMHOPCTXIJSGQWYaopviABEZHIKMNOPTYX",
        strict=True,
    )
)
_WORD: Final = re.compile(r"[^\W\d_]+")
_BLANKS: Final = re.compile(r"[^\S\n]+")
_LINES: Final = re.compile(r" ?\n ?(?:\n ?)*")
_EDGES: Final = re.compile(r"\A\s+|\s+\Z")
_BREAK: Final = re.compile(r"(?<=\S)\n(?=\S)")
_SENTENCE_END: Final = re.compile(r"""[.!?…:;][\"'”’)\]]*\Z""")
_WRAPPED_FROM: Final = 50
"""Characters of a line without a sentence's end that only a program breaks."""


def visible_lines(text: Mapped) -> Mapped:
    """Only characters that can be seen, and one form of line ends."""
    return text.replaced(_LINE_END, "\n").replaced(_INVISIBLE, "")


def plain_letters(text: Mapped) -> Mapped:
    """One form of letters, apostrophes and dashes."""
    text = text.replaced(_APOSTROPHE, lambda match: "" if match[0] == "\\" else "'")
    text = text.replaced(_DASH, "-")
    text = text.replaced(_CLUSTER, lambda match: _compatible(match[0]))
    return _without_lookalikes(text)


def collapsed(text: Mapped) -> Mapped:
    """Single spaces, at most one blank line, no break within a sentence."""
    text = text.replaced(_BLANKS, " ")
    text = text.replaced(_LINES, lambda match: "\n" if match[0].count("\n") == 1 else "\n\n")
    text = text.replaced(_EDGES, "")
    begins_large = text.text[:1].isupper()
    return text.replaced(
        _BREAK,
        lambda match: " " if _is_wrapped(match.string, match.start(), begins_large) else "\n",
    )


def _compatible(cluster: str) -> str:
    """The compatibility form; marks of ASCII letters that have none with them are left out."""
    found = unicodedata.normalize("NFKC", cluster).translate(_STYLED)
    if found[0] == " " and len(found) > 1:  # accents that stand alone
        return cluster
    return found[0] if len(found) > 1 and found[0].isascii() and len(cluster) > 1 else found


def _without_lookalikes(text: Mapped) -> Mapped:
    """Latin letters for Cyrillic and Greek ones of the same look, in words of a Latin text.

    A word of such letters alone is changed only if the text has no other letters of that script.
    """
    foreign = set(_FOREIGN.findall(text.text))
    if not foreign or not _LATIN.search(text.text):
        return text
    alone = foreign <= _LOOKALIKES.keys()

    def latin(match: re.Match[str]) -> str:
        word = match[0]
        if not word.isascii() and (alone or _LATIN.search(word)):
            return "".join(_LOOKALIKES.get(letter, letter) for letter in word)
        return word

    return text.replaced(_WORD, latin)


def _is_wrapped(text: str, at: int, begins_large: bool) -> bool:
    """Whether the line break at this place lies within a sentence.

    In a text that does without capital letters, a break may be all that ends a sentence.
    """
    before = text[text.rfind("\n", 0, at) + 1 : at]
    if _SENTENCE_END.search(before[-8:]):
        return False
    if text[at + 1].islower():
        return begins_large or len(before) >= _WRAPPED_FROM
    return before.endswith(",") or (len(before) >= _WRAPPED_FROM and text[at + 1].isalnum())
