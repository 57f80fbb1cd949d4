"""A head bundle: the task heads of a team or channel on the encoder of another bundle.

A folder with a head graph, probes and the manifest ``bundle.json``, which has no encoder and no
tokeniser but names the digests of those that it was made for. ``python -m export.heads`` writes it.
"""

import hashlib
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from stream_app.core.measures.empathy import EmpathyModel
from stream_app.core.measures.outcomes import OutcomeModel
from stream_app.core.measures.perceived import PerceivedValues
from stream_app.errors import BundleError
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.bundle import (
    LANGUAGES,
    Bundle,
    HeadGraphSpec,
    HeadSpec,
    Manifest,
    ProbeSpec,
    WindowSpec,
)


class SharedEncoder(Struct, frozen=True):
    """SHA-256 of the encoder graph and the tokeniser, and the id of a bundle that has them."""

    sha256: str
    tokenizer_sha256: str
    bundle: str


class HeadManifest(Struct, frozen=True):
    """The content of a head bundle's ``bundle.json``; fields as in ``bundle.Manifest``."""

    format: int
    name: str
    version: str
    shared_encoder: SharedEncoder
    head: HeadGraphSpec
    window: WindowSpec
    heads: list[HeadSpec]
    files: dict[str, str]
    empathy: EmpathyModel | None = None
    outcomes: dict[str, OutcomeModel] = field(default_factory=dict)
    distress: ProbeSpec | None = None
    crisis: ProbeSpec | None = None
    perceived: PerceivedValues | None = None
    training: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    languages: list[str] = field(default_factory=lambda: list(LANGUAGES))

    def on(self, base: Manifest) -> Manifest:
        """The manifest of a whole bundle with the encoder of ``base``."""
        return Manifest(
            format=self.format,
            name=self.name,
            version=self.version,
            profile=base.profile,
            encoder=base.encoder,
            head=self.head,
            tokenizer=base.tokenizer,
            window=self.window,
            heads=self.heads,
            files=self.files,
            empathy=self.empathy,
            outcomes=self.outcomes,
            distress=self.distress,
            crisis=self.crisis,
            reader=base.reader,
            perceived=self.perceived,
            training=self.training,
            metrics=self.metrics,
            languages=self.languages,
        )


def encoder_of(base: Manifest) -> SharedEncoder:
    """How head bundles name the encoder of this bundle."""
    files = base.files
    return SharedEncoder(files[base.encoder.file], files[base.tokenizer.file], base.bundle_id)


def is_head_bundle(path: Path) -> bool:
    """Whether the manifest in this folder is a head bundle's.

    Raises:
        BundleError: there is none, or it is not valid.
    """
    raw = bundles.read_manifest(bundles.folder_of(path))
    return bundles.decode_manifest(path, raw, _Kind).shared_encoder is not None


def read(path: Path) -> HeadManifest:
    """The manifest of a head bundle, without a check of its files.

    Raises:
        BundleError: there is none, or it is not valid.
    """
    return bundles.decode_manifest(path, bundles.read_manifest(path), HeadManifest)


def load(path: Path, base: Bundle, pinned: str = "") -> Bundle:
    """Read and check a head bundle for the encoder of ``base``.

    ``pinned``: the only accepted digest of the manifest; empty accepts all.

    Raises:
        BundleError: as ``bundle.load``, or it was made for another encoder.
    """
    raw = bundles.read_manifest(bundles.folder_of(path))
    digest = hashlib.sha256(raw).hexdigest()
    if pinned and digest != pinned:
        raise BundleError(f"{path} has the digest {digest}, not the accepted one, {pinned}")
    found = bundles.decode_manifest(path, raw, HeadManifest)
    wanted, own = found.shared_encoder, encoder_of(base.manifest)
    for what, theirs, ours in (
        ("encoder", wanted.sha256, own.sha256),
        ("tokeniser", wanted.tokenizer_sha256, own.tokenizer_sha256),
    ):
        if theirs != ours:
            raise BundleError(
                f"{path} was made for another {what} ({wanted.bundle}, SHA-256 {theirs[:12]}…) "
                f"than that of {own.bundle} ({ours[:12]}…): train its heads on this encoder "
                "(python -m export.heads)"
            )
    manifest = found.on(base.manifest)
    bundles.check_content(path, manifest, {manifest.head.file})
    return Bundle(path, manifest, digest)


class _Kind(Struct, frozen=True):
    shared_encoder: Any = None
