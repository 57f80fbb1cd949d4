"""Makes text safe to open in a spreadsheet, which runs cells that look like a formula.

Where a cell begins depends on the separator that the spreadsheet assumes, and some programs drop
leading spaces and quotation marks, or treat full-width signs like ASCII. So every place where a
cell might begin is treated.
"""

import re
import unicodedata
from typing import Final

import msgspec

SIGNS: Final = "=+-@\uff1d\uff0b\uff0d\uff20"
"""Characters that start a formula, ASCII and full-width."""
SEPARATORS: Final = ";,|\t\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_INVISIBLE: Final = "".join(c for c in map(chr, range(0x10000)) if unicodedata.category(c) == "Cf")
_SKIPPED: Final = rf"\s\"\x00-\x1f\x7f-\xa0{_INVISIBLE}"
"""Characters that a program may drop before the first one of a cell."""
_FORMULA: Final = re.compile(rf"((?:^|[{SEPARATORS}])[{_SKIPPED}]*)([{re.escape(SIGNS)}])")
_JSON_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_IN_JSON: Final = re.compile(
    rf"((?:^\"|[{SEPARATORS}]|\\[nrtfb\"]|\\u[0-9a-f]{{4}})(?:[{_SKIPPED}]|\\.)*)"
    rf"([{re.escape(SIGNS)}])"
)


def safe_text(text: str) -> str:
    """Put an apostrophe before each character that might start a formula.

    >>> safe_text("=1+1"), safe_text("yes; @SUM(A1)"), safe_text("well-known")
    ("'=1+1", "yes; '@SUM(A1)", 'well-known')
    """
    safe = _FORMULA.sub(r"\1'\2", text)
    return f"'{safe}" if safe.startswith(("\t", "\r")) else safe


def safe_json(value: object) -> str:
    r"""Encode as JSON in which such characters are escaped; it decodes to the same value.

    >>> safe_json(["=1+1", -2])
    '["\\u003d1+1",-2]'
    """
    text = msgspec.json.encode(value).decode()
    return _JSON_STRING.sub(lambda match: _IN_JSON.sub(_escaped, match[0]), text)


def _escaped(match: re.Match[str]) -> str:
    return f"{match[1]}\\u{ord(match[2]):04x}"
