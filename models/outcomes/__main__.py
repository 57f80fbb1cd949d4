"""`python -m models.outcomes evaluate`, `fit` and `ratings`.

All read the fold models of `models.fit.crossvalidate` and `models.fit.perceived`. `evaluate` writes
docs/evaluation/outcomes.json, `ratings` writes perceived.json. `fit` fits the outcome models on all
sessions and writes them into a bundle's bundle.json, for its calibration of the heads.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import typer

from models.bundle import CARD, MANIFEST, write_manifest
from models.card import model_card
from models.data import annomi
from models.data.corpora import resolve_data_dir
from models.data.rated_sessions import RatedSession
from models.evaluate import annomi_quality
from models.evaluate.ratings import listener_report
from models.outcomes.evaluation import PROTOCOL, TARGETS, out_of_fold, report, shipped
from models.outcomes.folds import Collected, collect, load_folds
from models.outcomes.labels import SPECS
from models.outcomes.measure import paired_auroc
from stream_app.inference.bundles.bundle import load as load_bundle

app = typer.Typer(add_completion=False)
Folds = Annotated[Path, typer.Option(help="Folder with one model folder per fold.")]
Data = Annotated[Path | None, typer.Option(help="Folder with the corpora.")]
Out = Annotated[Path, typer.Option(help="File to write the figures to.")]
FIGURES = Path("docs/evaluation")
CHANCE = 0.5
"""AUROC of a random prediction."""


@app.command()
def evaluate(
    folds: Folds = Path("build/folds"),
    data_dir: Data = None,
    out: Out = FIGURES,
    ablations: Annotated[bool, typer.Option(help="Also ablate groups of features.")] = True,
) -> None:
    """Evaluate the outcome risks on unseen folds and topics."""
    started = time.monotonic()
    data = resolve_data_dir(data_dir)
    sessions, members = load_folds(folds, data)
    found = collect(sessions, members, {})
    print(f"features, {(time.monotonic() - started) / 60:.1f} minutes", flush=True)
    figures = report(found, sessions, ablations=ablations)
    figures["annomi_quality"] = annomi_quality.report(
        sessions, members, annomi_quality.annotated_codes(annomi.load(data))
    )
    _write(out / "outcomes.json", figures)
    for name, own in figures["outcomes"].items():
        end, alike = own["auroc"]["value"], own["equal_length"]["value"]
        print(f"{name}: AUROC {end:.3f} (target {TARGETS[name]}), at equal length {alike:.3f}")
    print(f"written to {out}, {(time.monotonic() - started) / 60:.1f} minutes")


@app.command()
def ratings(folds: Folds = Path("build/folds"), data_dir: Data = None, out: Out = FIGURES) -> None:
    """Correlate the perceived heads with listeners' ratings, on unseen folds."""
    sessions, members = load_folds(folds, resolve_data_dir(data_dir))
    _write(out / "perceived.json", listener_report(sessions, members))


@app.command()
def fit(
    bundle: Annotated[Path, typer.Option(help="Folder of the bundle.")] = Path(
        "stream_app/bundles/default"
    ),
    folds: Folds = Path("build/folds"),
    data_dir: Data = None,
) -> None:
    """Fit the outcome models on all sessions and write them into the bundle.

    An outcome that cannot be predicted on unseen folds (the interval of its AUROC contains 0.5) is
    left out: its domain gets no outcome risk.
    """
    content = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    sessions, members = load_folds(folds, resolve_data_dir(data_dir))
    heads = {head.name: head for head in load_bundle(bundle).manifest.heads}
    found = collect(sessions, members, heads)
    running, ended = shipped(found)
    held_out = _held_out(found, sessions)
    content["outcomes"] = {
        spec.name: msgspec.to_builtins(
            running[spec.name].outcome_model(spec, ended[spec.name].outcome_model(spec))
        )
        for spec in SPECS
        if spec.name in running and spec.name in ended and held_out[spec.name]["low"] > CHANCE
    }
    content["metrics"]["outcomes"] = {
        "protocol": PROTOCOL,
        "out_of_fold": held_out,
    }
    write_manifest(bundle, content)
    (bundle / CARD).write_text(model_card(content), encoding="utf-8")
    print(json.dumps(content["metrics"]["outcomes"]["out_of_fold"], indent=1))


def _held_out(found: Collected, sessions: list[RatedSession]) -> dict[str, Any]:
    """AUROC at the end with the shipped calibration; sessions held out, for AnnoMI too."""
    scores = {}
    for name, own in out_of_fold(found, sessions).items():
        known = [i for i in own if i in found.truth[name]]
        y = np.array([found.truth[name][i] for i in known], bool)
        scores[name] = paired_auroc(y, np.array([own[i].closing for i in known], float))
    return scores


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_without_nan(content), indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _without_nan(content: Any) -> Any:
    """Replace undefined values (NaN, such as a correlation with a constant) by null."""
    if isinstance(content, dict):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and math.isnan(content) else content


if __name__ == "__main__":
    app()
