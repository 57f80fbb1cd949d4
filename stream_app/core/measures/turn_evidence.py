"""The evidence of one turn, packed: open sessions keep that of their latest turns.

A dictionary takes several times as much, for names, which all turns of a role share, and for one
object a number.
"""

import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

Parts = tuple[tuple[str, ...], tuple[int, ...]]
"""The names and the numbers of evidence."""
NAMES_KEPT = 256
"""Lists of names that are remembered: a few for each role of a bundle in force would do."""


class Evidence(Mapping[str, int]):
    """Numbers by name, in order; unchangeable. ``names`` is shared by all with the same names."""

    __slots__ = ("_packed", "names")

    names: tuple[str, ...]

    def __init__(self, names: Sequence[str], numbers: Sequence[int]) -> None:
        """``numbers``: as many as names, of at most 64 bits.

        Raises:
            struct.error: a number is larger.
        """
        self.names = shared_names(tuple(names))
        try:
            self._packed = struct.pack(f"<{len(self.names)}i", *numbers)
        except struct.error:
            self._packed = struct.pack(f"<{len(self.names)}q", *numbers)

    def numbers(self) -> tuple[int, ...]:
        """The numbers in the order of ``names``."""
        count = len(self.names)
        kind = "i" if len(self._packed) == 4 * count else "q"
        return struct.unpack(f"<{count}{kind}", self._packed)

    def __getitem__(self, name: str) -> int:
        try:
            place = self.names.index(name)
        except ValueError:
            raise KeyError(name) from None
        return self.numbers()[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Evidence({dict(zip(self.names, self.numbers(), strict=True))})"


def parts(evidence: Mapping[str, int]) -> Parts:
    """The names and the numbers of evidence, which in stored states of early releases is a dict."""
    if isinstance(evidence, Evidence):
        return evidence.names, evidence.numbers()
    return tuple(evidence), tuple(evidence.values())


@lru_cache(NAMES_KEPT)
def places(names: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[int | None, ...]:
    """Where these names are; None for those that are missing."""
    return tuple(names.index(name) if name in names else None for name in wanted)


@lru_cache(NAMES_KEPT)
def shared_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """One tuple, of interned names, for all open sessions."""
    return tuple(map(sys.intern, names))
