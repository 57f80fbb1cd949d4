"""A model bundle: a folder with ONNX graphs, a tokeniser and the manifest ``bundle.json``.

``export/`` writes bundles, this module reads them and checks every file against its SHA-256.
"""

import hashlib
import re
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field, structs

from stream_app.contracts.events import Role
from stream_app.contracts.scores import TOTAL
from stream_app.core.measures.empathy import CLIENT_FEATURES, COUNSELLOR_FEATURES, EmpathyModel
from stream_app.core.measures.heads import LEVELS, Dimension, Head, HeadKind
from stream_app.core.measures.outcomes import OutcomeModel
from stream_app.core.measures.perceived import PerceivedValues
from stream_app.errors import BundleError
from stream_app.inference.bundles import adaptations, bundle_pointer
from stream_app.inference.bundles.adaptations import Adaptation

T = TypeVar("T")
FORMAT: Final = 2
ADAPTED_FORMAT: Final = 3
"""Format of bundles with adaptations, which a release that ignores them must not read."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MANIFEST: Final = "bundle.json"
SHIPPED: Final = Path(__file__).parents[2] / "bundles"
"""Contains a folder for each bundle shipped with Rapport."""
DEFAULT_BUNDLE: Final = SHIPPED / "default"
LANGUAGES: Final = ("en",)
"""Languages of manifests that name none: all were trained on English corpora (``models.data``)."""


class RationaleSpec(Struct, frozen=True):
    """The head's channel in the encoder's ``rationale_logits``, and its threshold."""

    index: int
    threshold: float


class HeadSpec(Head, frozen=True):
    """A head with the parameters of its calibration.

    Its logits are the head graph's output of the same name, its probabilities are
    ``softmax(logits / temperature + bias)``. A level is the label with the largest log probability
    after adding ``offsets``, which do not change the probabilities. Both lists have one number per
    label, or are empty.
    """

    temperature: float = 1.0
    abstain_below: float = 0.0
    rationale: RationaleSpec | None = None
    bias: list[float] = field(default_factory=list)
    offsets: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        for values in (self.bias, self.offsets):
            if values and len(values) != len(self.labels):
                raise ValueError(
                    f"{self.name}: {len(values)} numbers for {len(self.labels)} labels"
                )
        if self.kind is HeadKind.LEVEL and len(self.labels) != len(LEVELS):
            raise ValueError(f"{self.name}: a head of kind level needs {len(LEVELS)} labels")
        possible = self.labels[-1:] if self.dimension is Dimension.PERCEIVED else self.labels
        if unknown := set(self.evidence) - set(possible):
            raise ValueError(f"{self.name}: not possible as evidence: {', '.join(sorted(unknown))}")


class EncoderSpec(Struct, frozen=True):
    """The encoder graph; unless ``batch_independent``, it encodes one text at a time.

    ``packed``: the graph concatenates the tokens of a batch, so that padding costs little.
    """

    file: str
    hidden_size: int
    max_tokens: int
    batch_independent: bool
    packed: bool = False


class ReaderSpec(Struct, frozen=True):
    """The reader graph and the layout of its input.

    ``start``, then for every preceding turn its role's ids and its own, ``between``, then the same
    of the turn that is read, ``end``. There are at most ``turns`` preceding turns; the oldest are
    cut so that all have ``context_tokens``. The turn that is read is cut to ``target_tokens``, a
    client turn without context to ``client_tokens``. ``batch_independent``: as for encoders.
    """

    file: str
    start: int
    end: int
    between: list[int]
    roles: dict[Role, list[int]]
    turns: int
    context_tokens: int
    target_tokens: int
    client_tokens: int
    batch_independent: bool

    @property
    def most_tokens(self) -> int:
        """Length of the longest input."""
        role = max(len(ids) for ids in self.roles.values())
        own = max(self.context_tokens + self.target_tokens, self.client_tokens)
        return own + role + len(self.between) + 2


class HeadGraphSpec(Struct, frozen=True):
    """The head graph; ``slots``: number of neighbouring turns in its input."""

    file: str
    slots: int


class TokenizerSpec(Struct, frozen=True):
    """The Hugging Face ``tokenizer.json``."""

    file: str


class ProbeSpec(Struct, frozen=True):
    """A NumPy array in a file: weights for a turn's vectors, then the bias."""

    file: str


class WindowSpec(Struct, frozen=True):
    """Number of preceding and following turns that the model was trained with."""

    before: int
    after: int


class Manifest(Struct, frozen=True):
    """The content of ``bundle.json``; ``adaptations`` are applied in their order.

    ``languages``: BCP 47 ranges of what it was trained on.
    """

    format: int
    name: str
    version: str
    profile: str
    encoder: EncoderSpec
    head: HeadGraphSpec
    tokenizer: TokenizerSpec
    window: WindowSpec
    heads: list[HeadSpec]
    files: dict[str, str]
    empathy: EmpathyModel | None = None
    outcomes: dict[str, OutcomeModel] = field(default_factory=dict)
    distress: ProbeSpec | None = None
    crisis: ProbeSpec | None = None
    reader: ReaderSpec | None = None
    perceived: PerceivedValues | None = None
    adaptations: list[Adaptation] = field(default_factory=list)
    training: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    languages: list[str] = field(default_factory=lambda: list(LANGUAGES))

    @property
    def bundle_id(self) -> str:
        """The key of the bundle's scores: name, version and profile."""
        return f"{self.name}-{self.version}-{self.profile}"


class _Format(Struct, frozen=True):
    """The field that manifests of all formats have; head bundles name a shared encoder."""

    format: int
    shared_encoder: Any = None


class Bundle(Struct, frozen=True):
    """A checked bundle on disk; ``digest`` is the SHA-256 of its manifest."""

    path: Path
    manifest: Manifest
    digest: str

    def file(self, name: str) -> Path:
        """Path of one of the bundle's files."""
        return self.path / name


def share_encoder(one: Manifest, other: Manifest) -> bool:
    """Whether two bundles encode texts alike: equal encoder, tokeniser and reader."""

    def encoder(manifest: Manifest) -> tuple[str, str, EncoderSpec, str | None]:
        files, spec = manifest.files, structs.replace(manifest.encoder, file="")
        reader = files.get(manifest.reader.file) if manifest.reader is not None else None
        return files[manifest.encoder.file], files[manifest.tokenizer.file], spec, reader

    return encoder(one) == encoder(other)


def shipped() -> list[str]:
    """Names of the bundles shipped with Rapport."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{MANIFEST}"))


def find(name: Path | str) -> Path:
    """The folder of a shipped bundle by name; any other value is returned as a path.

    For a folder with the name of a shipped bundle, write ``./nano``.

    >>> find("default") == DEFAULT_BUNDLE, find("/srv/own")
    (True, PosixPath('/srv/own'))
    """
    return SHIPPED / name if str(name) in shipped() else Path(name)


def folder_of(path: Path) -> Path:
    """The bundle's folder: ``path`` itself, or the one that the file ``path`` names.

    Raises:
        BundleError: it is a file that names none (``bundle_pointer``).
    """
    return Path(bundle_pointer.read(path)[-1].folder) if path.is_file() else path


def load(
    path: Path = DEFAULT_BUNDLE, pinned: str = "", by: str = "RAPPORT_BUNDLE_DIGEST"
) -> Bundle:
    """Read and check the bundle in the folder ``path``, or that the file ``path`` names.

    ``pinned``: the only accepted digest of the manifest; empty accepts all. ``by``: what sets it. A
    file has a digest of its own.

    Raises:
        BundleError: the folder or a file is missing, the manifest is of another format or has
            another digest, or a file does not match the SHA-256 in the manifest.
    """
    if path.is_file():
        promoted = bundle_pointer.read(path)[-1]
        found = load(Path(promoted.folder), pinned or promoted.digest, by)
        if found.digest != promoted.digest:
            raise BundleError(f"{promoted.folder} is not the bundle that {path} names")
        return found
    raw = read_manifest(path)
    digest = hashlib.sha256(raw).hexdigest()
    if pinned and digest != pinned:
        raise BundleError(
            f"the bundle {path} has the digest {digest}, but {by} accepts only "
            f"{pinned}. If you trust this bundle, set it to what `rapport bundle check {path}` "
            "prints"
        )
    manifest = decode_manifest(path, raw, Manifest)
    graphs = {manifest.encoder.file, manifest.head.file, manifest.tokenizer.file}
    if manifest.reader is not None:
        graphs.add(manifest.reader.file)
    check_content(path, manifest, graphs)
    return Bundle(path, manifest, digest)


def read_manifest(path: Path) -> bytes:
    """The bytes of the manifest in a folder; BundleError if there is none."""
    try:
        return (path / MANIFEST).read_bytes()
    except OSError as problem:
        raise BundleError(
            f"no model bundle at {path}: {problem.strerror}. --bundle and RAPPORT_BUNDLE take a "
            f"shipped bundle's name ({', '.join(shipped())}) or a folder with a {MANIFEST}; "
            "without them the default bundle is used."
        ) from problem


def decode_manifest(path: Path, raw: bytes, kind: type[T]) -> T:
    """Decode a manifest of this format; BundleError if it is none."""
    try:
        known = msgspec.json.decode(raw, type=_Format)
        _check_format(path, known.format)
        if known.shared_encoder is not None and kind is Manifest:
            raise BundleError(
                f"{path} is a head bundle, which has no encoder of its own: name it in the file "
                "RAPPORT_BUNDLE_ROUTES (docs/bundles.md)"
            )
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BundleError(f"{path / MANIFEST} is not a bundle manifest: {problem}") from problem


def _check_format(path: Path, found: int) -> None:
    if found not in (FORMAT, ADAPTED_FORMAT):
        raise BundleError(
            f"{path} has bundle format {found}; this release reads {FORMAT} and {ADAPTED_FORMAT}. "
            "Export the bundle again with this release."
        )


def _check_empathy(path: Path, model: EmpathyModel) -> None:
    """Reject models that would crash a worker at its first turn."""
    references = [*model.domains.values(), *model.approaches.values()]
    named = {name for here in references for name in (*here.opportunity, *here.answer.weights)}
    if unknown := sorted(named - {*CLIENT_FEATURES, *COUNSELLOR_FEATURES}):
        raise BundleError(f"{path}: the empathy index uses unknown features: {', '.join(unknown)}")
    spreads = [value for here in references for value in (here.between, here.within)]
    if model.default not in model.domains or not 0 < model.change < 1 or min(spreads) <= 0:
        raise BundleError(
            f"{path}: the empathy index needs a reference for its default domain, a probability of "
            "change between 0 and 1, and spreads above 0: fit it again"
        )


def _check_heads(path: Path, heads: list[HeadSpec]) -> None:
    """Reject names that are ambiguous in scores, or not valid in rules."""
    names = [head.name for head in heads]
    if TOTAL in names:
        raise BundleError(
            f"{path} has a head {TOTAL}, a name reserved for the sum of the mechanisms' levels: "
            "give the head another name"
        )
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise BundleError(f"{path} has more than one head named {', '.join(repeated)}")
    for head in heads:
        words = [head.name, *head.evidence]
        if wrong := [word for word in words if not _NAME.fullmatch(word)]:
            raise BundleError(
                f"{path}: names of heads and of evidence labels may only contain letters, digits "
                f"and _: {', '.join(wrong)}"
            )
        of_client = head.roles == [Role.CLIENT]
        if head.dimension is Dimension.OUTCOME and not of_client:
            raise BundleError(f"{path}: {head.name}: an outcome head must have the role client")


def _check_perceived(path: Path, heads: list[HeadSpec], values: PerceivedValues) -> None:
    known = {head.name for head in heads if head.dimension is Dimension.PERCEIVED}
    members = [name for group in values.groups for name in group.members]
    elsewhere = any(group.shown not in group.members for group in values.groups)
    if elsewhere or set(members) - known or len(members) > len(set(members)):
        raise BundleError(
            f"{path}: groups must name perceived heads of the bundle, each once, and show one of "
            f"their members: run python -m models.evaluate.multitrait --bundle {path}"
        )


def check_content(path: Path, manifest: Manifest, graphs: set[str]) -> None:
    """Check what the manifest says, and every file against its SHA-256.

    ``graphs``: the files that the folder must have besides probes.

    Raises:
        BundleError: something does not fit.
    """
    needed = set(graphs)
    needed.update(probe.file for probe in (manifest.distress, manifest.crisis) if probe)
    if missing := sorted(needed - manifest.files.keys()):
        raise BundleError(f"{path / MANIFEST} has no SHA-256 for {', '.join(missing)}")
    if manifest.empathy is not None:
        _check_empathy(path, manifest.empathy)
    _check_heads(path, manifest.heads)
    if manifest.perceived is not None:
        _check_perceived(path, manifest.heads, manifest.perceived)
    if manifest.adaptations and manifest.format != ADAPTED_FORMAT:
        raise BundleError(f"{path}: a bundle with adaptations needs format {ADAPTED_FORMAT}")
    adaptations.check(manifest.heads, manifest.adaptations, str(path))
    for name, expected in manifest.files.items():
        file = path / name
        if Path(name).name != name or not file.is_file():
            raise BundleError(f"{file} is missing; copy or export the bundle again")
        with file.open("rb") as stream:
            actual = hashlib.file_digest(stream, "sha256").hexdigest()
        if actual != expected:
            raise BundleError(
                f"{file} is damaged: SHA-256 {actual[:12]}… instead of {expected[:12]}…; "
                "copy or export the bundle again"
            )
