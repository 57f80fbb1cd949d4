"""The language of a turn: what its tag states, and what its text says of it.

A stated tag counts unless the text is clearly in another language. Without a tag the text decides;
one that says too little ("ok", a name, an emoji) is in the language of most turns before it. When
in doubt, a turn is in a language that is scored.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from msgspec import Struct

from stream_app.core.rules.languages import ANY, normalised

LEAST: Final = 0.01
"""Below this share a text is not in a language: unusual English has more."""
LEAST_OF_LONG: Final = 0.03
"""The same of a text of ``LONG`` words or more."""
LONG: Final = 6
MOST: Final = 0.5
"""From this share a text is in a language, and that language may be named."""
SURE: Final = 0.9
"""From this share a text in a language that is scored contradicts a tag."""
UNNAMED: Final = "mis"
"""The tag of a language that is none of the scored ones, and not known otherwise (ISO 639-2)."""


class LanguageReader(Protocol):
    """Reads which language a text is in; the same text always gives the same answer."""

    def shares(self, text: str) -> Mapping[str, float]:
        """The shares of all languages that it knows, by tag; empty if the text says too little."""


class NoLanguageReader:
    """Says nothing: only stated tags count."""

    def shares(self, text: str) -> Mapping[str, float]:  # noqa: ARG002
        """Nothing, whatever the text."""
        return {}


class SpokenIn(Struct, frozen=True):
    """A turn's language; ``tag`` is None if it is not known. ``clear``: its text says so."""

    tag: str | None = None
    clear: bool = False

    @property
    def name(self) -> str | None:
        """The tag, if it names a language."""
        return None if self.tag == UNNAMED else self.tag


UNKNOWN: Final = SpokenIn()


def spoken_in(
    shares: Mapping[str, float],
    words: int,
    stated: str | None,
    before: Mapping[str, int],
    ranges: Iterable[str],
) -> SpokenIn:
    """The language of a turn of so many words.

    ``before``: how many turns of the session were clearly in which language. ``ranges``: of the
    languages that are scored. If the reader does not know one of them, only tags count.

    >>> english, spanish = {"en": 0.97, "es": 0.03}, {"en": 0.001, "es": 0.999}
    >>> [spoken_in(spanish, 9, tag, {}, ["en"]).tag for tag in (None, "en-GB", "es-MX")]
    ['es', 'es', 'es-mx']
    >>> [spoken_in(english, 9, tag, {}, ["en"]).tag for tag in (None, "en-GB", "es", "tlh")]
    ['en', 'en-gb', 'es', 'tlh']
    >>> [spoken_in({}, 1, None, before, ["en"]).tag for before in ({}, {"en": 1, "es": 3})]
    [None, 'es']
    """
    tag = normalised(stated)
    scored = {primary(each) for each in map(normalised, ranges) if each is not None}
    if ANY in scored or (shares and not scored <= shares.keys()):
        return SpokenIn(tag)
    if not shares:
        return SpokenIn(tag or _usual(before, scored))
    least = LEAST if words < LONG else LEAST_OF_LONG
    if tag is not None:
        return _tagged(shares, least, tag, scored)
    return _untagged(shares, least, _usual(before, scored), scored)


def primary(tag: str) -> str:
    """The language of a normalised tag, without its region.

    >>> primary("de-at")
    'de'
    """
    return tag.partition("-")[0]


def _tagged(shares: Mapping[str, float], least: float, tag: str, scored: set[str]) -> SpokenIn:
    likely = max(shares, key=shares.__getitem__)
    agrees = shares.get(primary(tag), 1.0) >= least
    if agrees or (likely in scored and shares[likely] < SURE):
        return SpokenIn(tag, clear=primary(tag) == likely)
    return _named(likely, shares)


def _untagged(
    shares: Mapping[str, float], least: float, usual: str | None, scored: set[str]
) -> SpokenIn:
    likely = max(shares, key=shares.__getitem__)
    covered = sum(shares[each] for each in scored)
    if covered < least:
        return _named(likely, shares)
    if covered < MOST and usual is not None and usual not in scored:
        return SpokenIn(usual)
    clear = likely in scored and shares[likely] >= MOST
    return SpokenIn(likely, clear=True) if clear else UNKNOWN


def _named(likely: str, shares: Mapping[str, float]) -> SpokenIn:
    return SpokenIn(likely if shares[likely] >= MOST else UNNAMED, clear=True)


def _usual(before: Mapping[str, int], scored: set[str]) -> str | None:
    """The most frequent language so far; one that is not scored only if most turns are not."""
    known = [(turns, language in scored) for language, turns in before.items()]
    home = sum(turns for turns, is_scored in known if is_scored)
    away = sum(turns for turns, is_scored in known if not is_scored)
    own = {name: turns for name, turns in before.items() if (name in scored) == (home >= away)}
    return max(own, key=own.__getitem__, default=None)
