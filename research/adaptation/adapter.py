"""Train adapters from judged turns: `python -m research.adaptation.adapter FILE --bundle FOLDER`.

`FILE` comes from `rapport bundle adapt --export`. For each head with judgements the task network
gets a low-rank update (`research.adaptation.low_rank`); what passes the gate of `rapport bundle
adapt` is written as a new bundle with the parent's encoder, fusion and all other heads as they are.
Needs no database, no keys and no text. Minutes on one core.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from models.fit.train import command_line
from models.model.head_graph import read_head, write_task
from models.model.heads import ContextHead
from models.model.onnx_model import TOLERANCE, session
from research.adaptation.low_rank import LOW_RANK, Learnt, VectorData
from research.adaptation.task_inputs import TaskInputs, task_inputs, task_of
from stream_app.adaptation import judged_vectors
from stream_app.adaptation.choosing import RECALIBRATION
from stream_app.adaptation.comparison import Comparison
from stream_app.adaptation.fitting import Floats
from stream_app.adaptation.head_results import HeadResult, evaluated
from stream_app.adaptation.judged_vectors import JudgedVectors
from stream_app.adaptation.new_bundle import Changes, write
from stream_app.core.measures.heads import HeadKind
from stream_app.errors import BundleError, RapportError
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.adaptations import inputs_of
from stream_app.inference.bundles.bundle import Bundle, HeadSpec, Manifest
from stream_app.inference.bundles.calibration import calibrated
from stream_app.inference.head import Feeds

HALF_TOLERANCE = 5e-3
"""Largest change of a logit by storing weights as 16-bit floats."""


@dataclass(frozen=True)
class Found:
    """What was learnt: the adapters' comparison, the recalibrations', and the new bundle if any."""

    adapters: Comparison
    recalibrations: Comparison
    bundle: Bundle | None


def adapt(parent: Bundle, judged: JudgedVectors, out: Path, name: str | None = None) -> Found:
    """Learn, cross-validate, and write the new bundle if a head passes the gate.

    Raises:
        BundleError: the file was made with another bundle, or the folder cannot be written.
    """
    manifest = parent.manifest
    if (judged.bundle, judged.digest) != (manifest.bundle_id, parent.digest):
        raise BundleError(
            f"the judgements were exported with {judged.bundle} ({judged.digest[:12]}…), not with "
            f"{manifest.bundle_id} ({parent.digest[:12]}…): name that bundle, or export again"
        )
    if out.exists():
        raise BundleError(f"{out} exists: name another folder with --out")
    graph = parent.file(manifest.head.file)
    head = read_head(graph)
    logits = logits_of(graph, judged.windows)
    inputs = task_inputs(head, judged.windows)
    results: list[HeadResult[Learnt]] = []
    simpler: list[HeadResult[Any]] = []
    for spec in manifest.heads:
        if spec.name not in judged.heads:
            continue
        data = data_of(judged, manifest, spec, calibrated(manifest, logits), inputs, head)
        simpler.append(evaluated(data, RECALIBRATION, judged.counts.raters))
        readers = read_by(manifest, spec.name)
        results.append(
            HeadResult(
                spec.name,
                simpler[-1].ratings,
                simpler[-1].disputes,
                simpler[-1].counsellors,
                f"as shipped: {', '.join(readers)} was adapted to read this head",
            )
            if readers
            else evaluated(data, LOW_RANK, judged.counts.raters)
        )
    found = Comparison(results, [], [])
    recalibrations = Comparison(simpler, [], [])
    learnt = {one.head: one.fitted.fit for one in results if one.passes and one.fitted}
    if not learnt:
        return Found(found, recalibrations, None)
    with tempfile.TemporaryDirectory() as scratch:
        changed = Path(scratch) / graph.name
        write_graph(graph, learnt, changed, judged.windows, inputs)
        made = write(
            parent,
            out,
            name,
            Changes({}, changed),
            found,
            judged.counts,
            command_line().split(),
            datetime.now(UTC),
        )
    return Found(found, recalibrations, made)


def data_of(
    judged: JudgedVectors,
    manifest: Manifest,
    spec: HeadSpec,
    probabilities: Mapping[str, Floats],
    inputs: TaskInputs,
    head: ContextHead,
) -> VectorData:
    """The judgements of one head, with the probabilities of the bundle and the task's inputs."""
    given = judged.heads[spec.name]
    rows = torch.from_numpy(given.rows)
    return VectorData(
        head=spec.name,
        labels=tuple(spec.labels),
        ordered=spec.kind is HeadKind.LEVEL,
        offsets=tuple(spec.offsets),
        probabilities={
            one.name: probabilities[one.name][given.rows] for one in inputs_of(spec, manifest.heads)
        },
        target=given.target,
        weight=np.ones(len(given.rows)),
        group=given.group,
        disputed=given.disputed,
        blind=given.blind,
        task=task_of(head, spec),
        inputs=TaskInputs(*(part[rows] for part in inputs)),
    )


def read_by(manifest: Manifest, head: str) -> list[str]:
    """Other heads that an earlier adaptation lets read this one: they would change with it."""
    return sorted(
        {
            name
            for adaptation in manifest.adaptations
            for name, change in adaptation.heads.items()
            if name != head and head in change.weights
        }
    )


def logits_of(graph: Path, windows: Feeds) -> dict[str, np.ndarray]:
    """Logits [n, labels] of every head."""
    opened = session(graph)
    names = [output.name for output in opened.get_outputs()]
    return dict(zip(names, opened.run(names, windows), strict=True))


def write_graph(
    graph: Path, learnt: Mapping[str, Learnt], out: Path, windows: Feeds, inputs: TaskInputs
) -> None:
    """Write the graph with the new task networks and check it on the judged turns.

    Raises:
        BundleError: another head changed, or an adapted one does not score as it was learnt.
    """
    shutil.copyfile(graph, out)
    for name, found in learnt.items():
        write_task(out, name, found.network)
    before, after = logits_of(graph, windows), logits_of(out, windows)
    for name, values in after.items():
        expected, tolerance = before[name], TOLERANCE
        if name in learnt:
            expected, tolerance = learnt[name].logits(inputs), HALF_TOLERANCE
        gap = float(np.abs(values - expected).max())
        if gap > tolerance:
            raise BundleError(f"the new graph's {name} differs by {gap:.2g} from what was learnt")


def main(
    file: Annotated[Path, typer.Argument(help="File of `rapport bundle adapt --export`.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the new bundle.")],
    bundle: Annotated[
        Path, typer.Option(help="The bundle of the export: a shipped one's name, or a folder.")
    ] = bundles.DEFAULT_BUNDLE,
    name: Annotated[
        str | None, typer.Option(help="Name of the new bundle; default: the parent's.")
    ] = None,
    threads: int = 1,
) -> None:
    """Train adapters on a bundle's frozen encoder from people's judgements.

    Exit status 1: nothing passes the gate, and no bundle is written.
    """
    torch.set_num_threads(threads)
    try:
        judged = judged_vectors.read(file)
        found = adapt(bundles.load(bundles.find(bundle)), judged, out, name)
    except RapportError as problem:
        raise SystemExit(f"error: {problem}") from problem
    print(f"Adapters\n\n{found.adapters.markdown()}\n")
    print(
        "Recalibration of the same heads (rapport bundle adapt)\n\n"
        f"{found.recalibrations.markdown()}\n"
    )
    if found.bundle is None:
        raise SystemExit("nothing passes the gate: no bundle was written")
    print(f"{found.bundle.manifest.bundle_id} written to {out}")
    print(f"RAPPORT_BUNDLE_DIGEST={found.bundle.digest}")


if __name__ == "__main__":
    typer.run(main)
