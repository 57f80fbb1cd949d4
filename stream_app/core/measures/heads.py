"""The heads of a bundle, as described by its manifest; the only source of lists of heads.

The index, the MITI summary, the feedback and the outcome models use certain heads by name. Only
these names and their display words are defined here.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from stream_app.contracts.events import Role

PERCEIVED: Final = ("engagement", "understanding", "sympathy", "helpfulness")
"""Heads of perceived empathy that the outcome models read (Xu & Jiang, section 3)."""
SATISFACTION: Final = "satisfaction"
TALK: Final = "talk_type"
CONDUCT: Final = {
    "question": ("open", "closed"),
    "reflection": ("simple", "complex"),
    "input": ("advice", "information"),
}
"""Labels whose probabilities the session keeps, by head of the counsellor's turns."""
STRATEGY: Final = "strategy"
LEVELS: Final = ("none", "weak", "strong")
"""Levels 0, 1 and 2 of a head of levels (Sharma et al. 2020, section 3)."""


class Dimension(Enum):
    """The dimension of a head; expressed and perceived empathy are never mixed.

    ``outcome``: how the session may end for the client. Such a head scores the client's turns and
    stands with the client's heads, but a single turn says too little to be shown.
    """

    EXPRESSED = "expressed"
    PERCEIVED = "perceived"
    CLIENT = "client"
    OUTCOME = "outcome"


class HeadKind(Enum):
    """``level``: ordered labels 0-2; ``categorical``: one of several; ``binary``: no, yes."""

    LEVEL = "level"
    CATEGORICAL = "categorical"
    BINARY = "binary"


class HeadWords(Struct, frozen=True):
    """Display words of a head; empty ones are derived from its name.

    ``badge``: a few letters that mark its words in a text. ``labels``: those that need other words
    than their names.
    """

    title: str = ""
    badge: str = ""
    labels: Mapping[str, str] = {}


WORDS: Final[Mapping[str, HeadWords]] = {
    "emotional_reactions": HeadWords("Emotional reactions", "ER"),
    "interpretations": HeadWords("Interpretations", "IP"),
    "explorations": HeadWords("Explorations", "EX"),
    **{name: HeadWords(name.capitalize()) for name in PERCEIVED},
    TALK: HeadWords("talk"),
}
"""The words of heads that are read by name; also where a manifest has none for them."""


class Head(Struct, frozen=True):
    """One head of a bundle.

    ``evidence``: labels whose probabilities a session keeps, so that rules and outcome models may
    use them (``docs/rules.md``). What is read by name is kept whatever it says.
    """

    name: str
    dimension: Dimension
    kind: HeadKind
    roles: list[Role]
    labels: list[str]
    words: HeadWords = HeadWords()
    evidence: list[str] = []

    @property
    def title(self) -> str:
        """The head in words."""
        known = WORDS.get(self.name, HeadWords())
        return self.words.title or known.title or in_words(self.name)

    @property
    def badge(self) -> str:
        """Its letters."""
        known = WORDS.get(self.name, HeadWords())
        return self.words.badge or known.badge or initials(self.name)

    def label(self, name: str) -> str:
        """One of its labels in words."""
        return self.words.labels.get(name) or in_words(name)


def in_words(name: str) -> str:
    """A name as people read it, where nobody has given it other words.

    >>> in_words("reflection_of_feelings")
    'reflection of feelings'
    """
    return name.replace("_", " ")


def title_of(name: str) -> str:
    """A head by its name alone, where no manifest is at hand.

    >>> title_of("emotional_reactions"), title_of("warm_tone")
    ('Emotional reactions', 'warm tone')
    """
    known = WORDS.get(name)
    return known.title if known else in_words(name)


def badge_of(name: str) -> str:
    """A head's letters by its name alone.

    >>> badge_of("interpretations"), badge_of("warm_tone"), badge_of("warmth")
    ('IP', 'WT', 'WA')
    """
    known = WORDS.get(name)
    return known.badge if known and known.badge else initials(name)


def initials(name: str) -> str:
    """The first letters of a name's words, or the first two of its only one."""
    parts = [part for part in name.split("_") if part]
    letters = parts[0][:2] if len(parts) == 1 else "".join(part[0] for part in parts[:3])
    return letters.upper()


class Kept(Struct, frozen=True):
    """Labels of a head that a session keeps because its manifest says so, with their places."""

    head: str
    dimension: Dimension
    labels: tuple[tuple[int, str], ...]


def kept(heads: Iterable[Head]) -> tuple[Kept, ...]:
    """The evidence of the heads beyond what sessions keep of those that are read by name."""
    found = []
    for head in heads:
        own = head.labels if head.name in (STRATEGY, TALK) else CONDUCT.get(head.name, ())
        wanted = [name for name in head.evidence if name not in own]
        labels = tuple((place, name) for place, name in enumerate(head.labels) if name in wanted)
        if labels:
            found.append(Kept(head.name, head.dimension, labels))
    return tuple(found)
