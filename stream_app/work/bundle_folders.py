"""Bundles in folders of this machine, which an administrator may bring into force."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stream_app.errors import BundleError
from stream_app.inference.bundles import bundle, bundle_pointer
from stream_app.inference.bundles.bundle import MANIFEST, SHIPPED, Manifest
from stream_app.inference.bundles.bundle_pointer import Promoted

CARD: Final = "MODEL_CARD.md"


@dataclass(frozen=True, slots=True)
class BundleFolder:
    """A folder with a bundle's manifest; ``digest``: of the manifest. Its files are not checked."""

    path: Path
    manifest: Manifest
    digest: str

    @property
    def card(self) -> str | None:
        """The model card (Markdown)."""
        try:
            return (self.path / CARD).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None


def read(path: Path) -> BundleFolder | None:
    """The bundle in a folder, or that a file names; None if there is none."""
    try:
        folder = bundle.folder_of(path)
        raw = bundle.read_manifest(folder)
        manifest = bundle.decode_manifest(folder, raw, Manifest)
    except BundleError:
        return None
    return BundleFolder(folder, manifest, hashlib.sha256(raw).hexdigest())


def promoted(pointer: Path) -> list[Promoted]:
    """The bundles that this file names, the one in force last; none if it cannot be read."""
    try:
        return bundle_pointer.read(pointer) if pointer.is_file() else []
    except BundleError:
        return []


def choices(pointer: Path) -> list[BundleFolder]:
    """Bundles to choose from: shipped ones, promoted ones, and those in the folders next to these.

    Other folders are left to the command line, because a bundle's files are run.
    """
    before = promoted(pointer)
    in_force = before[-1].digest if before else None
    found = {each.digest: each for each in map(read, _folders(pointer, before)) if each}
    found.pop(in_force or "", None)
    return sorted(found.values(), key=lambda each: each.manifest.bundle_id)


def _folders(pointer: Path, before: Sequence[Promoted]) -> Iterator[Path]:
    for parent in {SHIPPED, pointer.parent, *(Path(each.folder).parent for each in before)}:
        yield from sorted(file.parent for file in parent.glob(f"*/{MANIFEST}"))
