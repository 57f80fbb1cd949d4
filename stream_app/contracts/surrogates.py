"""Lone surrogates in JSON: half an emoji, written as an escape, which no text can contain."""

import re
from typing import Final

_SURROGATES: Final = re.compile(
    rb"(?:\\\\)++"
    rb"|(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})++"
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""Escaped backslashes, pairs of surrogates, or a lone one."""


def masked(raw: bytes) -> bytes:
    r"""The JSON with question marks for lone surrogates; as long.

    >>> masked(rb'["\ud83d", "\ud83d\ude00"]').decode()
    '["\\u003f", "\\ud83d\\ude00"]'
    """
    if rb"\ud" not in raw.lower():
        return raw
    return _SURROGATES.sub(lambda found: rb"\u003f" if found["lone"] else found[0], raw)
