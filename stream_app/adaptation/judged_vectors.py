"""The file of ``rapport bundle adapt --export``: judged turns as vectors to train adapters from.

It has no text, names or ids of sessions. Vectors say something about the text that they were
computed from (Morris et al. 2023), so that the file has to be kept as the database is.
"""

import os
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from stream_app.adaptation.fitting import Floats, Ints
from stream_app.adaptation.new_bundle import DataCounts
from stream_app.errors import RapportError
from stream_app.inference.head import Feeds

FORMAT: Final = 1
_ABOUT: Final = "about"
_FEED: Final = "window"
_JUDGED: Final = "judged"
_VECTORS: Final = ("target", "context")
"""Inputs that are half floats in a worker, and in the file."""


class VectorFileError(RapportError):
    """A file of judged vectors cannot be written, or is none."""


@dataclass(frozen=True, slots=True)
class HeadJudgements:
    """Judgements of one head; ``rows`` [n]: of the windows; the others as in ``HeadData``."""

    rows: Ints
    target: Floats
    group: Ints
    disputed: npt.NDArray[np.bool_]
    blind: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class JudgedVectors:
    """Judged turns of one bundle: ``windows`` are inputs of its head graph, a row for each turn.

    ``digest``: the bundle's. ``gap``: mean difference of the judged heads' probabilities from the
    stored ones: masked personal details and turns that came late make them differ.
    """

    bundle: str
    digest: str
    counts: DataCounts
    gap: float
    windows: Feeds
    heads: Mapping[str, HeadJudgements]


class _About(msgspec.Struct, frozen=True):
    format: int
    bundle: str
    digest: str
    counts: DataCounts
    gap: float


def write(found: JudgedVectors, file: Path) -> None:
    """Write the file as a whole or not at all, readable by its owner alone.

    Raises:
        VectorFileError: it exists, or cannot be written.
    """
    if file.exists():
        raise VectorFileError(f"{file} exists: name another file with --export")
    about = _About(FORMAT, found.bundle, found.digest, found.counts, found.gap)
    arrays: dict[str, Any] = {_ABOUT: np.frombuffer(msgspec.json.encode(about), np.uint8)}
    for name, values in found.windows.items():
        arrays[f"{_FEED}.{name}"] = values.astype(np.float16) if name in _VECTORS else values
    for head, judged in found.heads.items():
        for part in HeadJudgements.__slots__:
            arrays[f"{_JUDGED}.{head}.{part}"] = getattr(judged, part)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent) as scratch:
            np.savez(scratch, **arrays)
            scratch.flush()
            os.link(scratch.name, file)  # fails if it exists by now
    except OSError as problem:
        raise VectorFileError(f"{file} cannot be written: {problem.strerror}") from problem


def read(file: Path) -> JudgedVectors:
    """Read a file.

    Raises:
        VectorFileError: it is missing or damaged, or another release wrote it.
    """
    try:
        with np.load(file, allow_pickle=False) as loaded:
            arrays = dict(loaded)
        about = msgspec.json.decode(arrays.pop(_ABOUT).tobytes(), type=_About)
        if about.format != FORMAT:
            raise VectorFileError(
                f"{file} has format {about.format}; this release reads {FORMAT}: export it again"
            )
        windows: Feeds = {}
        heads: dict[str, dict[str, Any]] = {}
        for key, values in arrays.items():
            kind, _, rest = key.partition(".")
            if kind == _FEED:
                windows[rest] = values.astype(np.float32) if rest in _VECTORS else values
            else:
                head, _, part = rest.rpartition(".")
                heads.setdefault(head, {})[part] = values
        judged = {head: HeadJudgements(**parts) for head, parts in heads.items()}
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as problem:
        raise VectorFileError(
            f"{file} is no file of rapport bundle adapt --export: {type(problem).__name__}"
        ) from problem
    except msgspec.DecodeError as problem:
        raise VectorFileError(
            f"{file} is no file of rapport bundle adapt --export: {problem}"
        ) from problem
    return JudgedVectors(about.bundle, about.digest, about.counts, about.gap, windows, judged)
