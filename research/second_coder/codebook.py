"""Codebooks: YAML files with the definitions that people code by, and that become prompts."""

from __future__ import annotations

import hashlib
import string
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from models.agreement.ratings import Scale

FOLDER: Final = Path(__file__).parent / "codebooks"
LETTERS: Final = string.ascii_uppercase
"""Stand for the labels where the answer is one token."""
Text = Annotated[str, Meta(min_length=1, max_length=2000)]
Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[\w.-]+$")]


class CodebookError(ValueError):
    """A codebook cannot be read or contradicts itself."""


class Label(Struct, frozen=True, forbid_unknown_fields=True):
    """One value of a variable and its definition."""

    name: Name
    means: Text


class Variable(Struct, frozen=True, forbid_unknown_fields=True):
    """What is coded of one utterance; each utterance gets one of the labels.

    `role`: whose utterances are coded. `ordered`: the labels go from least to most. `evidence`: the
    coder quotes the words that justify any label but the first.
    """

    name: Name
    question: Text
    role: Literal["client", "counsellor"]
    ordered: bool
    labels: Annotated[tuple[Label, ...], Meta(min_length=2, max_length=len(LETTERS))]
    evidence: bool = False

    @property
    def values(self) -> tuple[str, ...]:
        """Names of the labels."""
        return tuple(label.name for label in self.labels)

    @property
    def scale(self) -> Scale:
        """The labels as a scale of agreement statistics."""
        return Scale(self.values, self.ordered)


class Codebook(Struct, frozen=True, forbid_unknown_fields=True):
    """A codebook; `source`: papers and passages; `setting`: who speaks with whom."""

    title: Text
    source: Text
    setting: Text
    variables: Annotated[tuple[Variable, ...], Meta(min_length=1)]


def names() -> list[str]:
    """The codebooks that come with the project."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def find(name: str) -> Path:
    """The file of a codebook that comes with the project, or the path of another one."""
    own = FOLDER / f"{name}.yaml"
    return own if name in names() else Path(name)


def read(path: Path) -> Codebook:
    """Read and check a codebook.

    Raises:
        CodebookError: the file is missing, no YAML or no codebook, with the place in it.
    """
    try:
        content = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except OSError as problem:
        known = ", ".join(names())
        reason = problem.strerror
        raise CodebookError(f"{path}: {reason}; there are the codebooks {known}") from None
    except (YAMLError, UnicodeDecodeError) as problem:
        raise CodebookError(f"{path} is not valid YAML: {problem}") from None
    try:
        book = msgspec.convert(content, Codebook)
    except msgspec.ValidationError as problem:
        raise CodebookError(f"{path}: {problem}") from None
    _check(path, "variable", [variable.name for variable in book.variables])
    for variable in book.variables:
        _check(path, f"label of {variable.name}", list(variable.values))
    return book


def _check(path: Path, kind: str, found: list[str]) -> None:
    for name in found:
        if found.count(name) > 1:
            raise CodebookError(f"{path}: the {kind} {name!r} occurs twice")


def digest(path: Path) -> str:
    """SHA-256 of the file, hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
