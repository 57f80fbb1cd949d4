"""The two copies of a text: everything in it in plain letters, and what the speaker says.

Most texts are plain already, and then both copies are the text itself.
"""

import re
from typing import Final

from stream_app.plain_text.characters import collapsed, plain_letters, visible_lines
from stream_app.plain_text.mapped import Mapped
from stream_app.plain_text.markup import (
    decoded,
    without_board_quotes,
    without_emphasis,
    without_tags,
)
from stream_app.plain_text.quotes import without_quotes

_NOT_PLAIN: Final = re.compile(r"[^ -~]|[&<>*_~`|\[\\]|  ")


def plain(text: str) -> Mapped:
    r"""All of the text in plain letters.

    >>> plain("I don&#39;t <b>sleep</b>\nany more").text
    "I don't sleep any more"
    """
    return _copy(text, quotes=True)


def spoken(text: str) -> Mapped:
    r"""Return the speaker's own words in plain letters, without quotations.

    >>> spoken("> Did you sleep?\n\nＮｏ, I don’t.").text
    "No, I don't."
    >>> copy = spoken("I feel &quot;<i>lost</i>&quot;")
    >>> copy.text, copy.span(8, 12)
    ('I feel "lost"', (16, 20))
    """
    return _copy(text, quotes=False)


def _copy(text: str, *, quotes: bool) -> Mapped:
    copy = Mapped(text, text)
    if not _NOT_PLAIN.search(text):
        return copy
    copy = without_tags(visible_lines(decoded(copy)), quotes=quotes)
    if not quotes:
        copy = without_quotes(without_board_quotes(copy))
    return collapsed(without_emphasis(plain_letters(copy)))
