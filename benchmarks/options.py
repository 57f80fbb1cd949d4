"""Options of a benchmark run."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from stream_app.bootstrap import usable_cores
from stream_app.inference.bundles import bundle as bundles

T = TypeVar("T")


class Options(Struct, frozen=True):
    """Options of a run.

    ``quick``: smoke-test sizes, whose figures mean nothing. ``turns``: sizes of the platforms for
    the part analytics; empty: the usual ones.
    """

    bundle: Path
    rounds: int
    quick: bool = False
    kafka: bool = False
    cores: int = usable_cores()
    turns: tuple[int, ...] = ()
    say: Callable[[str], None] = lambda _: None

    def size(self, full: T, quick: T) -> T:
        """Choose the full or the quick size."""
        return quick if self.quick else full

    def other_bundles(self) -> list[Path]:
        """Shipped bundles other than the given one."""
        folders = (bundles.SHIPPED / name for name in bundles.shipped())
        return [folder for folder in folders if folder != self.bundle]
