"""HTML and Markdown as the text that a reader sees."""

import html
import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from stream_app.plain_text.mapped import Mapped, Span

QUOTE: Final = "\n>\n"
"""Placeholder of an element that quotes."""

_ENTITY: Final = re.compile(
    r"&(?:amp;){0,4}(?P<name>#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
    r"|&(?P<bare>#\d{2,5}(?![\d;])|(?:nbsp|amp|lt|gt|quot)(?![A-Za-z0-9=;]))"  # as browsers do
)
_BLOCK: Final = (
    "address|article|aside|blockquote|body|br|center|dd|details|div|dl|dt|fieldset|figcaption"
    "|figure|footer|form|h[1-6]|header|hr|html|li|main|mx-reply|nav|ol|p|pre|section|summary|table"
    "|tbody|tfoot|thead|tr|ul"
)
_INLINE: Final = (
    "a|abbr|acronym|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|img|ins|kbd|label|mark|o:p|q|s"
    "|samp|small|span|strike|strong|sub|sup|time|tt|u|var|wbr"
)
_UNSEEN: Final = "head|script|style|title"
_QUOTING: Final = frozenset(("blockquote", "mx-reply"))
_TAG: Final = re.compile(
    r"<!--(?:(?!<!--|-->).){0,8000}-->|<!doctype[^<>]{0,200}>"
    rf"|<(?P<close>/?)(?P<name>(?P<block>{_BLOCK})|(?P<cell>td|th)|{_INLINE}|{_UNSEEN})"
    r"(?P<rest>\s*/?|\s[^<>=]{0,200}=[^<>]{0,4000})>",  # not "<I mean it>"
    re.DOTALL | re.IGNORECASE,
)
_BOARD_QUOTE: Final = re.compile(
    r"\[quote(?:=[^\]\n]{0,200})?\](?:(?!\[quote).){0,8000}?\[/quote\]", re.DOTALL | re.IGNORECASE
)
_EMPHASIS: Final = re.compile(
    r"(?<![\w*~`|\\])(?P<mark>\*{1,3}|_{1,3}|~~|\|\||`{1,3})"
    r"(?=[\w\"'“‘(¿¡&])(?P<words>[^\n*_~`|]{1,400})(?<=[\w\"'”’).,!?…;:])(?P=mark)(?![\w*~`|])"
)
_BOARD_TAG: Final = re.compile(
    r"\[(?P<tag>b|i|u|s|color|size|font|url)(?:=[^\]\n]{1,200})?\]"
    r"(?P<words>[^\[\]\n]{1,400})\[/(?P=tag)\]",
    re.IGNORECASE,
)
_LINK: Final = re.compile(r"!?\[(?P<words>[^\[\]\n]{1,400})\]\([^()\s]{1,2000}\)")
_NESTED: Final = 3
"""How deep emphasis is read, as in ``**_words_**``."""
_QUOTING_CLASS: Final = re.compile(
    r"\sclass\s*=\s*[\"']?[^\"'>]{0,200}\b"
    r"(?:gmail_quote|yahoo_quoted|protonmail_quote|tutanota_quote|moz-cite-prefix)",
    re.IGNORECASE,
)
"""Classes that mail programs give to the mail that is answered."""


def decoded(text: Mapped) -> Mapped:
    """Decode HTML's entities, also if they were escaped repeatedly."""
    return text.replaced(
        _ENTITY, lambda match: html.unescape(f"&{match['name'] or match['bare']};")
    )


def without_board_quotes(text: Mapped) -> Mapped:
    """Put ``QUOTE`` for what stands between ``[quote]`` and ``[/quote]``."""
    return text.replaced(_BOARD_QUOTE, QUOTE) if "[" in text.text else text


def without_tags(text: Mapped, *, quotes: bool = True) -> Mapped:
    """Remove HTML tags; without ``quotes``, put ``QUOTE`` for each element that quotes."""
    if "<" not in text.text:
        return text
    return text.changed(_tags(text.text, quotes=quotes))


def without_emphasis(text: Mapped) -> Mapped:
    """Remove the emphasis of Markdown and of boards, and keep a link's words alone."""
    for pattern in (_LINK, *[_BOARD_TAG] * _NESTED, *[_EMPHASIS] * _NESTED):
        text = text.without(chain.from_iterable(map(_marks, pattern.finditer(text.text))))
    return text


def _marks(match: re.Match[str]) -> tuple[Span, Span]:
    """The places before and after a match's words."""
    return (match.start(), match.start("words")), (match.end("words"), match.end())


def _tags(text: str, *, quotes: bool) -> Iterator[tuple[int, int, str]]:
    """The tags, and what stands for each; what a reader does not see goes with them."""
    inside, depth, start = "", 0, 0
    for match in _TAG.finditer(text):
        name = (match["name"] or "").lower()
        closes, single = bool(match["close"]), (match["rest"] or "").endswith("/")
        if inside:
            if name == inside and not single:
                depth += -1 if closes else 1
            if depth == 0:
                yield start, match.end(), "" if inside in _UNSEEN.split("|") else QUOTE
                inside = ""
        elif not closes and not single and _is_left_out(name, match["rest"], quotes=quotes):
            inside, depth, start = name, 1, match.start()
        else:
            yield *match.span(), "\n" if match["block"] else " " if match["cell"] else ""
    if inside:
        yield start, len(text), "" if inside in _UNSEEN.split("|") else QUOTE


def _is_left_out(name: str, rest: str | None, *, quotes: bool) -> bool:
    if name in _UNSEEN.split("|"):
        return True
    return not quotes and (name in _QUOTING or _QUOTING_CLASS.search(rest or "") is not None)
