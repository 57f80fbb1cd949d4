"""How much is measured, with what."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from benchmarks.machine import cores
from stream_app.inference import bundle as bundles

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

    def other_bundles(self) -> list[Path]:
        """Shipped bundles beside the one asked for."""
        folders = (bundles.SHIPPED / name for name in bundles.shipped())
        return [folder for folder in folders if folder != self.bundle]
