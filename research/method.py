"""The contract of a method, so that one command runs them all and one table compares them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from models.data import Conversation, epitome, load_corpora
from models.data.corpora import resolve_data_dir

if TYPE_CHECKING:
    from models.probes.scorers import LevelScorer

RESULTS = Path("research/results")
PAGES = Path("docs/methods")
CHECKPOINTS = Path("build/methods/checkpoints")
Content = dict[str, Any]


class MethodError(ValueError):
    """A method, row or setting that does not exist, or settings that exclude each other."""


@dataclass(frozen=True)
class Row:
    """A variant of a method.

    `context` says what is read beside the response. A `compared` row has EPITOME's levels and
    stands in the table of all methods; a `scored` one has a scorer, so that its speed and memory
    are measured; without one they are those of the row `cost_of`. `needs` is a file that another
    command writes.
    """

    words: str
    context: str = "none"
    compared: bool = False
    scored: bool = False
    cost_of: str | None = None
    needs: Path | None = None


@dataclass(frozen=True)
class Inputs:
    """The corpora of a run, and the folder from which interrupted trainings continue.

    Raises:
        MissingCorpusError: a corpus is not in the folder.
    """

    data_dir: Path | None = None
    checkpoints: Path = CHECKPOINTS

    @cached_property
    def folder(self) -> Path:
        """Folder with the corpora."""
        return resolve_data_dir(self.data_dir)

    @cached_property
    def conversations(self) -> list[Conversation]:
        """Conversations of all labelled corpora."""
        return load_corpora(self.folder)

    @cached_property
    def pairs(self) -> list[Conversation]:
        """EPITOME's pairs; needs no other corpus."""
        return list(epitome.load(self.folder))


@dataclass(frozen=True)
class Run:
    """The figures of a method for one row on one fold, and how long it took."""

    fold: int
    minutes: float
    found: Any


class Method(ABC):
    """A published method; subclasses are dataclasses, whose fields are its settings.

    `name` is that of its result file; `page` that of its page in docs/methods and of the page's
    template, which methods may share; `folds` are those of a run that names none, of which there is
    but one unless `over_folds`; `file_folder` is where its results are stored.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    page: ClassVar[str | None] = None
    folds: ClassVar[tuple[int, ...]] = (0,)
    over_folds: ClassVar[bool] = True
    file_folder: ClassVar[Path] = RESULTS

    @abstractmethod
    def rows(self) -> dict[str, Row]:
        """The planned rows, by their names in result files and on the command line."""

    def row(self, key: str) -> Row:
        """One row.

        Raises:
            MethodError: there is no such row.
        """
        rows = self.rows()
        if key not in rows:
            raise MethodError(f"no row {key}; there are {', '.join(rows)}")
        return rows[key]

    @abstractmethod
    def run(self, row: str, fold: int, inputs: Inputs) -> Any:
        """Train and test a row on one fold; the figures, or what `stored` computes them from."""

    @abstractmethod
    def stored(self, content: Content, row: str, runs: Sequence[Run]) -> Content:
        """The result file with the row's figures over its folds; `content` is {} at first."""

    def values(self, results: Path) -> dict[str, Any] | None:
        """Values of the page's template from a folder of results; None if too few are there."""
        del results
        return None

    def scorer(self, row: str, training: list[Conversation]) -> LevelScorer:
        """Make a scorer from the training pairs of a fold, as fast and large as a trained one."""
        raise MethodError(f"{self.name} has no scorer of {row} from {len(training)} pairs")
