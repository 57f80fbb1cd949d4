"""Loads the bundles of the routes file: each is used or refused on its own.

A head bundle uses the encoder of the default bundle, or of another bundle in the file. A bundle
with an encoder that is already loaded shares it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from stream_app.contracts.events import SCORED_ROLES, Role
from stream_app.contracts.scores import Stage
from stream_app.core.measures.window import ScoringRequest, WindowTurn
from stream_app.core.rules.routing import RoutedBundle
from stream_app.errors import BundleError, RapportError
from stream_app.inference import head_bundle
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.bundle import Bundle, Manifest
from stream_app.inference.devices.provider_choice import Provider
from stream_app.inference.head_bundle import encoder_of
from stream_app.inference.scorer import OnnxScorer

_ANY_TIME = datetime.fromtimestamp(0, UTC)
TRIAL_TEXT = "That sounds hard. What keeps you awake?"


class LoadedBundle(Struct, frozen=True, eq=False):
    """A routed bundle; ``encoder`` and ``languages`` as in ``core.scoring_bundles``."""

    scorer: OnnxScorer
    encoder: str
    languages: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of its manifest."""
        return self.scorer.bundle.digest


class Refusal(Struct, frozen=True):
    """A bundle of the file that is not used, and why."""

    name: str
    problem: str


class Loading(Struct, frozen=True):
    """The loaded and the refused bundles of a file, by their names there."""

    loaded: Mapping[str, LoadedBundle]
    refused: Sequence[Refusal]


class BundleLoader:
    """Loads bundles beside a default one.

    ``turns``: the number of neighbouring turns that the service's window has.
    """

    def __init__(self, base: OnnxScorer, provider: Provider, threads: int, turns: int) -> None:
        self._base = base
        self._provider = provider
        self._threads = threads
        self._turns = turns

    def load(
        self, wanted: Sequence[RoutedBundle], known: Mapping[str, LoadedBundle] | None = None
    ) -> Loading:
        """Load these bundles; those in ``known`` with the same digest are used again."""
        loaded: dict[str, LoadedBundle] = {}
        refused: list[Refusal] = []
        whole: list[tuple[OnnxScorer, str]] = [(self._base, "")]
        for item in sorted(wanted, key=_has_no_encoder):
            try:
                found = self._loaded(item, whole, (known or {}).get(item.name))
                _check_id(found, [self._base, *(each.scorer for each in loaded.values())])
            except RapportError as problem:
                refused.append(Refusal(item.name, str(problem)))
                continue
            loaded[item.name] = found
            if not _has_no_encoder(item):
                whole.append((found.scorer, found.encoder))
        order = {item.name: place for place, item in enumerate(wanted)}
        return Loading(
            {name: loaded[name] for name in sorted(loaded, key=order.__getitem__)},
            sorted(refused, key=lambda refusal: order[refusal.name]),
        )

    def _loaded(
        self,
        item: RoutedBundle,
        whole: Sequence[tuple[OnnxScorer, str]],
        known: LoadedBundle | None,
    ) -> LoadedBundle:
        folder = bundles.find(item.folder)
        if head_bundle.is_head_bundle(folder):
            base, encoder = _base_of(folder, whole)
            found = head_bundle.load(folder, base.bundle, item.digest)
            shared: OnnxScorer | None = base
        else:
            found = bundles.load(folder, item.digest, "its `digest` in the file of routes")
            key = _encoder_key(found.manifest)
            same = [each for each in whole if _encoder_key(each[0].bundle.manifest) == key]
            shared, encoder = same[0] if same else (None, key)
        self._check_window(folder, found.manifest)
        languages = item.languages or tuple(found.manifest.languages)
        if known is not None and known.digest == found.digest and known.encoder == encoder:
            return LoadedBundle(known.scorer, encoder, languages)
        scorer = self._opened(found, shared)
        return LoadedBundle(scorer, encoder, languages)

    def _opened(self, found: Bundle, shared: OnnxScorer | None) -> OnnxScorer:
        """Open the graphs and try them, so that a bundle that cannot score takes no session."""
        try:
            scorer = OnnxScorer(
                found,
                self._provider,
                self._threads,
                shared=shared,
                mask=self._base.mask,
                device=self._base.device,
            )
            [encoding] = scorer.encode([TRIAL_TEXT], [Role.COUNSELLOR])
            for role in SCORED_ROLES:
                turn = WindowTurn(0, role, _ANY_TIME, 0, 0, encoding.vectors, encoding.rationales)
                scorer.score([ScoringRequest(turn, Stage.FINAL, [])])
        except RapportError:
            raise
        except Exception as problem:  # ONNX Runtime's errors have no common base class
            reason = str(problem).partition("\n")[0] or type(problem).__name__
            raise BundleError(f"{found.path} cannot score: {reason}") from problem
        return scorer

    def _check_window(self, folder: Path, manifest: Manifest) -> None:
        if self._turns > manifest.head.slots:
            raise BundleError(
                f"{folder} supports windows of {manifest.head.slots} neighbouring turns; those of "
                f"the service have {self._turns}"
            )


def _has_no_encoder(item: RoutedBundle) -> bool:
    try:
        return head_bundle.is_head_bundle(bundles.find(item.folder))
    except BundleError:
        return False  # it is refused when it is loaded


def _base_of(folder: Path, whole: Sequence[tuple[OnnxScorer, str]]) -> tuple[OnnxScorer, str]:
    """The scorer with the encoder of a head bundle; the default one if none has it."""
    wanted = head_bundle.read(folder).shared_encoder
    for scorer, key in whole:
        own = encoder_of(scorer.bundle.manifest)
        if (own.sha256, own.tokenizer_sha256) == (wanted.sha256, wanted.tokenizer_sha256):
            return scorer, key
    return whole[0]


def _encoder_key(manifest: Manifest) -> str:
    """Identifies encoder, tokeniser and reader, with what else changes encodings."""
    own, spec = encoder_of(manifest), manifest.encoder
    reader = manifest.files.get(manifest.reader.file, "") if manifest.reader is not None else ""
    parts = own.sha256, own.tokenizer_sha256, str(spec.max_tokens), reader
    return hashlib.sha256("/".join(parts).encode()).hexdigest()


def _check_id(found: LoadedBundle, others: Sequence[OnnxScorer]) -> None:
    for other in others:
        if other.bundle_id == found.scorer.bundle_id:
            raise BundleError(
                f"{found.scorer.bundle.path} has the id {other.bundle_id}, as "
                f"{other.bundle.path}: scores need a name or version of their own"
            )
