"""Writes an adapted bundle: the parent's files, a new manifest and a card that comes first."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from stream_app.adaptation.comparison import Comparison
from stream_app.adaptation.outcome_risks import rescaled
from stream_app.core.measures.empathy import EmpathyModel
from stream_app.core.measures.outcomes import OutcomeModel
from stream_app.errors import BundleError
from stream_app.inference.bundles.adaptations import Adaptation, Recalibration
from stream_app.inference.bundles.bundle import ADAPTED_FORMAT, MANIFEST, Bundle, Manifest, load

CARD: Final = "MODEL_CARD.md"


@dataclass(frozen=True, slots=True)
class DataCounts:
    """Description of the judgements that the adaptation was fitted on; no text and no names.

    ``first``, ``last``: times of the oldest and newest judgement used.
    """

    ratings: int
    blind: int
    disputes: int
    raters: int
    counsellors: int
    sessions: int
    first: datetime | None
    last: datetime | None
    wordings: tuple[str, ...]
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Changes:
    """Parts that the new bundle has instead of the parent's.

    ``recalibrations`` by head. ``head_graph``: a head graph in which the heads that passed the gate
    have other weights; their earlier recalibrations are dropped.
    """

    recalibrations: Mapping[str, Recalibration]
    head_graph: Path | None = None

    @property
    def words(self) -> str:
        """Words for cards."""
        if self.head_graph is None:
            return "Encoder and head graph are the parent's."
        return (
            "Encoder and rationales are the parent's; in the head graph, the task networks of the "
            "heads marked as adapted have other weights."
        )


def version_of(manifest: Manifest, day: datetime) -> str:
    """The parent's version with the day; of an adapted parent, the day replaces its own.

    >>> from datetime import UTC
    >>> "2.1.0.20261124".removesuffix(".20261124") + f".{datetime(2026, 12, 1, tzinfo=UTC):%Y%m%d}"
    '2.1.0.20261201'
    """
    base = manifest.version
    if manifest.adaptations:
        base = base.rpartition(".")[0] or base
    return f"{base}.{day:%Y%m%d}"


def write(
    parent: Bundle,
    out: Path,
    name: str | None,
    changes: Changes,
    comparison: Comparison,
    counts: DataCounts,
    command: Sequence[str],
    now: datetime,
) -> Bundle:
    """Write the folder as a whole or not at all, and load it again.

    Only what passed the gate differs from the parent.

    Raises:
        BundleError: ``out`` exists, cannot be written, or the id is the parent's.
    """
    if out.exists():
        raise BundleError(f"{out} exists: name another folder with --out, or move this one away")
    content = _manifest(parent, name, changes, comparison, counts, command, now)
    if (made := msgspec.convert(content, Manifest)).bundle_id == parent.manifest.bundle_id:
        raise BundleError(f"{made.bundle_id} is the parent's id: give the new bundle a --name")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        try:
            for file in parent.manifest.files:
                shutil.copyfile(parent.file(file), scratch / file)
            if changes.head_graph is not None:
                shutil.copyfile(changes.head_graph, scratch / parent.manifest.head.file)
            text = msgspec.json.format(msgspec.json.encode(content), indent=1)
            (scratch / MANIFEST).write_bytes(text + b"\n")
            digest = sha256(text + b"\n").hexdigest()
            card = _card(parent, made, changes, comparison, counts, command, now)
            (scratch / CARD).write_text(card, encoding="utf-8")
            load(scratch, digest)
            scratch.chmod(0o755)
            scratch.rename(out)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
    except OSError as problem:
        raise BundleError(f"{out} cannot be written: {problem.strerror}") from problem
    return load(out, digest)


def _manifest(
    parent: Bundle,
    name: str | None,
    changes: Changes,
    comparison: Comparison,
    counts: DataCounts,
    command: Sequence[str],
    now: datetime,
) -> dict[str, Any]:
    """The parent's manifest as it stands in the file, with the changes."""
    content: dict[str, Any] = msgspec.json.decode((parent.path / MANIFEST).read_bytes())
    manifest = parent.manifest
    content["format"] = ADAPTED_FORMAT
    content["version"] = version_of(manifest, now)
    if name:
        content["name"] = name
    by_name = {one.head: one for one in comparison.heads if one.passes}
    for entry in content["heads"]:
        one = by_name.get(entry["name"])
        if one is not None and one.fitted is not None:
            entry["offsets"] = list(one.fitted.offsets)
            if one.abstain_below is not None:
                entry["abstain_below"] = one.abstain_below
    content["empathy"] = msgspec.to_builtins(_empathy(manifest.empathy, comparison))
    content["outcomes"] = msgspec.to_builtins(_outcomes(manifest.outcomes, comparison))
    adaptation = Adaptation(
        parent=manifest.bundle_id,
        parent_digest=parent.digest,
        heads=dict(changes.recalibrations),
        record={
            "at": now.isoformat(),
            "command": list(command),
            "data": msgspec.to_builtins(counts),
            **comparison.record(),
        },
    )
    earlier = content.get("adaptations", [])
    if changes.head_graph is not None:
        content["files"][manifest.head.file] = sha256(changes.head_graph.read_bytes()).hexdigest()
        for entry in earlier:
            entry["heads"] = {k: v for k, v in entry["heads"].items() if k not in by_name}
    content["adaptations"] = [
        *earlier,
        msgspec.to_builtins(adaptation),
    ]
    return content


def _empathy(model: EmpathyModel | None, comparison: Comparison) -> EmpathyModel | None:
    changed = {one.domain: one.reference for one in comparison.references if one.passes}
    if model is None or not changed:
        return model
    return msgspec.structs.replace(model, domains=model.domains | changed)


def _outcomes(
    models: Mapping[str, OutcomeModel], comparison: Comparison
) -> dict[str, OutcomeModel]:
    found = dict(models)
    for one in comparison.outcomes:
        if one.result.passes and one.result.fitted is not None:
            name = one.definition.risk
            found[name] = rescaled(found[name], one.result.fitted.fit)
    return found


def _card(
    parent: Bundle,
    made: Manifest,
    changes: Changes,
    comparison: Comparison,
    counts: DataCounts,
    command: Sequence[str],
    now: datetime,
) -> str:
    left_out = "; ".join(f"{number} {reason}" for reason, number in sorted(counts.left_out.items()))
    period = f"{counts.first:%Y-%m-%d} to {counts.last:%Y-%m-%d}" if counts.first else "–"
    own = f"""\
# {made.name} {made.version} ({made.profile})

`{parent.manifest.bundle_id}`, adapted to the judgements of one installation on {now:%Y-%m-%d}. \
{changes.words} It is right for the raters below, and for nobody else until that is measured.

## Adaptation

- Parent: `{parent.manifest.bundle_id}`, digest `{parent.digest}`.
- Judgements: {counts.ratings} rated turns ({counts.blind} of them blind) by {counts.raters} \
people, {counts.disputes} decided disputes, of {counts.sessions} sessions by \
{counts.counsellors} counsellors, {period}.
- Consent: wordings {", ".join(counts.wordings)}.
- Left out: {left_out or "none"}.
- Command: `{" ".join(command)}`

Cross-validated by counsellor, the choice of model included; differences are adapted - parent with \
95 % intervals. A head is adapted only if the interval of its log-loss difference lies below 0 and \
its agreement is not lower. Ratings given with the score in view are close to the parent's scores, \
so they make the parent look better than it is.

{comparison.markdown()}

Ratings are of turns that people chose or that samples drew. Where such turns are not like all \
turns, kappa and the thresholds of abstention are not those of all turns.

---

The rest of this card is the parent's.
"""
    try:
        rest = (parent.path / CARD).read_text("utf-8")
    except OSError:
        rest = "The parent's folder has no card.\n"
    return f"{own}\n{rest}"
