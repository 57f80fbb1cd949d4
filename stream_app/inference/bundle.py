"""A model bundle: a folder with two ONNX graphs, a tokeniser and the manifest ``bundle.json``.

``export/`` writes bundles, this module reads them and checks every file against its SHA-256.
"""

import hashlib
import re
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from stream_app.contracts.events import Role
from stream_app.contracts.scores import TOTAL
from stream_app.core.empathy import CLIENT_FEATURES, COUNSELLOR_FEATURES, EmpathyModel
from stream_app.core.heads import LEVELS, Dimension, Head, HeadKind
from stream_app.core.outcomes import OutcomeModel
from stream_app.core.perceived import PerceivedValues
from stream_app.errors import BundleError

FORMAT: Final = 2
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MANIFEST: Final = "bundle.json"
SHIPPED: Final = Path(__file__).parents[1] / "bundles"
"""Holds a folder for each bundle that comes with Rapport."""
DEFAULT_BUNDLE: Final = SHIPPED / "default"


class RationaleSpec(Struct, frozen=True):
    """Which channel of the encoder's ``rationale_logits`` belongs to a head."""

    index: int
    threshold: float


class HeadSpec(Head, frozen=True):
    """A head with what turns its logits into probabilities.

    Its logits are the head graph's output of the same name.
    Probabilities are ``softmax(logits / temperature + bias)``. A level is the largest log
    probability after ``offsets``, which leave the probabilities as they are. Both lists have one
    number for each label, or none.
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
            raise ValueError(f"{self.name}: a head of levels has {len(LEVELS)} labels")
        stated = self.labels[-1:] if self.dimension is Dimension.PERCEIVED else self.labels
        if unknown := set(self.evidence) - set(stated):
            raise ValueError(f"{self.name}: not to be evidence: {', '.join(sorted(unknown))}")


class EncoderSpec(Struct, frozen=True):
    """``batch_independent`` false: a turn's result depends on its batch, so batches are of one.

    ``packed``: the graph lays the tokens of a batch end to end, so that padding costs little.
    """

    file: str
    hidden_size: int
    max_tokens: int
    batch_independent: bool
    packed: bool = False


class HeadGraphSpec(Struct, frozen=True):
    """``slots``: how many neighbours the head graph is fed with."""

    file: str
    slots: int


class TokenizerSpec(Struct, frozen=True):
    """The Hugging Face ``tokenizer.json``."""

    file: str


class ProbeSpec(Struct, frozen=True):
    """A NumPy array in a file: weights for a turn's vectors, then the bias."""

    file: str


class WindowSpec(Struct, frozen=True):
    """Turns before and after that the model was trained with."""

    before: int
    after: int


class Manifest(Struct, frozen=True):
    """The content of ``bundle.json``."""

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
    perceived: PerceivedValues | None = None
    training: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)

    @property
    def bundle_id(self) -> str:
        """What score rows are keyed with."""
        return f"{self.name}-{self.version}-{self.profile}"


class _Format(Struct, frozen=True):
    """What every manifest states, also one whose other fields have another shape."""

    format: int


class Bundle(Struct, frozen=True):
    """A checked bundle on disk; ``digest`` is the SHA-256 of its manifest."""

    path: Path
    manifest: Manifest
    digest: str

    def file(self, name: str) -> Path:
        """Path of one of the bundle's files."""
        return self.path / name


def shipped() -> list[str]:
    """The names of the bundles that come with Rapport."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{MANIFEST}"))


def find(name: Path | str) -> Path:
    """The folder of a shipped bundle by its name; anything else is taken for a folder itself.

    A folder of the same name in the working directory is meant by ``./nano``.

    >>> find("default") == DEFAULT_BUNDLE, find("/srv/own")
    (True, PosixPath('/srv/own'))
    """
    return SHIPPED / name if str(name) in shipped() else Path(name)


def load(path: Path = DEFAULT_BUNDLE) -> Bundle:
    """Read and check the bundle in the folder ``path``.

    Raises:
        BundleError: the folder or a file is missing, the manifest is of another format, or a file
            does not have the hash that the manifest states.
    """
    manifest_path = path / MANIFEST
    try:
        raw = manifest_path.read_bytes()
    except OSError as problem:
        raise BundleError(
            f"no model bundle at {path}: {problem.strerror}. --bundle and RAPPORT_BUNDLE take a "
            f"shipped bundle's name ({', '.join(shipped())}) or a folder that holds {MANIFEST}; "
            "without them the default bundle is used."
        ) from problem
    try:
        _check_format(path, msgspec.json.decode(raw, type=_Format).format)
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BundleError(f"{manifest_path} is not a bundle manifest: {problem}") from problem
    _check(path, manifest)
    return Bundle(path, manifest, hashlib.sha256(raw).hexdigest())


def _check_format(path: Path, found: int) -> None:
    if found != FORMAT:
        raise BundleError(
            f"{path} has bundle format {found}; this release reads {FORMAT}. "
            "Export the bundle again with this release."
        )


def _check_empathy(path: Path, model: EmpathyModel) -> None:
    """Refuse what would otherwise end a worker at its first turn."""
    references = [*model.domains.values(), *model.approaches.values()]
    named = {name for here in references for name in (*here.opportunity, *here.answer.weights)}
    if unknown := sorted(named - {*CLIENT_FEATURES, *COUNSELLOR_FEATURES}):
        raise BundleError(
            f"{path}: the empathy index weighs unknown features: {', '.join(unknown)}"
        )
    spreads = [value for here in references for value in (here.between, here.within)]
    if model.default not in model.domains or not 0 < model.change < 1 or min(spreads) <= 0:
        raise BundleError(
            f"{path}: the empathy index needs a reference for its default domain, a probability of "
            "change between 0 and 1, and spreads above 0: fit it again"
        )


def _check_heads(path: Path, heads: list[HeadSpec]) -> None:
    """Refuse names that would make scores ambiguous or that a rule could not write."""
    names = [head.name for head in heads]
    if TOTAL in names:
        raise BundleError(
            f"{path} has a head {TOTAL}; that is the sum of the mechanisms' levels: "
            "give the head another name"
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BundleError(f"{path} has more than one head called {', '.join(twice)}")
    for head in heads:
        words = [head.name, *head.evidence]
        if wrong := [word for word in words if not _NAME.fullmatch(word)]:
            raise BundleError(
                f"{path}: the names of heads and of labels that are evidence are letters, digits "
                f"and _: {', '.join(wrong)}"
            )
        of_client = head.roles == [Role.CLIENT]
        if head.dimension is Dimension.OUTCOME and not of_client:
            raise BundleError(f"{path}: {head.name}: a head of outcomes scores the client's turns")


def _check_perceived(path: Path, heads: list[HeadSpec], values: PerceivedValues) -> None:
    known = {head.name for head in heads if head.dimension is Dimension.PERCEIVED}
    members = [name for group in values.groups for name in group.members]
    elsewhere = any(group.shown not in group.members for group in values.groups)
    if elsewhere or set(members) - known or len(members) > len(set(members)):
        raise BundleError(
            f"{path}: groups of perceived heads have to name perceived heads of the bundle, each "
            f"once, and to show a member: run python -m models.multitrait --bundle {path}"
        )


def _check(path: Path, manifest: Manifest) -> None:
    needed = {manifest.encoder.file, manifest.head.file, manifest.tokenizer.file}
    if manifest.distress is not None:
        needed.add(manifest.distress.file)
    if missing := sorted(needed - manifest.files.keys()):
        raise BundleError(f"{path / MANIFEST} states no SHA-256 for {', '.join(missing)}")
    if manifest.empathy is not None:
        _check_empathy(path, manifest.empathy)
    _check_heads(path, manifest.heads)
    if manifest.perceived is not None:
        _check_perceived(path, manifest.heads, manifest.perceived)
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
