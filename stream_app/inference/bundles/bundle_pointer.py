"""A file that names the bundle in force, so that a bundle can be promoted and rolled back.

``RAPPORT_BUNDLE`` may name such a file instead of a folder. It is a stack: promoting puts a bundle
on top, rolling back takes it off. Every entry has the digest of the bundle's manifest, and only
this bundle is accepted.
"""

import os
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from stream_app.errors import BundleError

FORMAT: Final = 1
LONGEST: Final = 50
"""Bundles that the file keeps; the oldest ones are dropped first."""


class Promoted(Struct, frozen=True):
    """A bundle that was promoted: its folder, digest and id, by whom, when and why."""

    folder: str
    digest: str
    bundle: str
    person: str
    at: datetime
    reason: str


class Pointer(Struct, frozen=True):
    """The file's content; the last entry is in force."""

    format: int
    bundles: list[Promoted]


def read(file: Path) -> list[Promoted]:
    """The promoted bundles, the one in force last.

    Raises:
        BundleError: the file cannot be read, or is not such a file.
    """
    try:
        pointer = msgspec.json.decode(file.read_bytes(), type=Pointer)
    except OSError as problem:
        raise BundleError(f"no model bundle at {file}: {problem.strerror}") from problem
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BundleError(
            f"no model bundle at {file}: it is neither a folder nor a file that `rapport bundle "
            "promote` has written"
        ) from problem
    if pointer.format != FORMAT or not pointer.bundles:
        raise BundleError(
            f"no model bundle at {file}: promote one again with this release of `rapport bundle "
            "promote`"
        )
    return pointer.bundles


def write(file: Path, bundles: list[Promoted]) -> None:
    """Replace the file as a whole.

    Raises:
        BundleError: it cannot be written.
    """
    content = msgspec.json.encode(Pointer(FORMAT, bundles[-LONGEST:]))
    try:
        descriptor, scratch = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(msgspec.json.format(content, indent=1) + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
            Path(scratch).chmod(0o644)
            Path(scratch).replace(file)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise BundleError(f"{file} cannot be written: {problem.strerror}") from problem
