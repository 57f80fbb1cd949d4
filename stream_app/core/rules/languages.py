"""Language tags of turns and the languages of bundles (BCP 47: RFC 5646 and RFC 4647).

Tags come from producers: their case varies, some write ``en_GB``, and any text of 35 characters is
valid on the wire. A tag is only ever compared, never used as a label of a metric.
"""

from collections.abc import Iterable
from typing import Final

from stream_app.core.rules.language_names import with_short_code

ANY: Final = "*"
"""The language range that every tag matches (RFC 4647, section 2.1)."""
UNDETERMINED: Final = "und"


def normalised(tag: str | None) -> str | None:
    """The tag for comparisons; None if the language is not stated.

    >>> [normalised(tag) for tag in ("de-AT", "EN_gb", "eng", "English", "", " und ", None)]
    ['de-at', 'en-gb', 'en', 'en', None, None, None]
    """
    text = (tag or "").strip().replace("_", "-")
    if text.isascii():  # others are no tags, and some would become ASCII letters
        text = with_short_code(text.lower())
    return text if text and text.partition("-")[0] != UNDETERMINED else None


def covers(ranges: Iterable[str], tag: str | None) -> bool:
    """Whether one of the language ranges matches the tag (RFC 4647, section 3.3.1).

    A range matches its own subtags: ``de`` matches ``de-AT``, but not ``den``. A turn whose
    language is not stated is covered by every bundle.

    >>> [covers(["de", "fr-CA"], tag) for tag in ("de-AT", "DE", "den", "fr", "fr-ca", None)]
    [True, True, False, False, True, True]
    >>> covers(["*"], "tlh")
    True
    """
    found = normalised(tag)
    if found is None:
        return True
    known = (normalised(each) for each in ranges)
    return any(each in (ANY, found) or found.startswith(f"{each}-") for each in known)
