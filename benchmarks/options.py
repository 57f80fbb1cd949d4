"""How much is measured, with what."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from benchmarks.machine import cores

T = TypeVar("T")


class Options(Struct, frozen=True):
    """``quick``: sizes that only show that everything runs; their figures mean nothing."""

    bundle: Path
    rounds: int
    quick: bool = False
    kafka: bool = False
    cores: int = cores()
    say: Callable[[str], None] = lambda _: None

    def size(self, full: T, quick: T) -> T:
        """One of the two sizes."""
        return quick if self.quick else full
