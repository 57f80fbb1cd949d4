"""`python -m models.sessions evaluate` and `fit`: the session risk, measured and shipped.

`evaluate` reads the fold models that `models.crossvalidate` and `models.perceived` left, and writes
docs/evaluation/perceived.json, sessions.json and two pictures. `fit` fits the risk on all rated
sessions, each with the outputs of the fold model that left it out, and writes it into a bundle's
bundle.json, with the calibration and the offsets of the bundle's heads.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from export.bundle import CARD, MANIFEST, write_manifest
from export.card import model_card
from models import quality
from models.additive import AdditiveRecipe
from models.data import annomi
from models.data.corpora import resolve_data_dir
from models.data.listeners import HeardSession, load_sessions
from models.perceived import OUTCOMES, SERVICE_DIALOGUES, Outcomes, share_of
from models.ratings import Fold, listener_report
from models.risk_pictures import draw_by_turn, draw_calibration
from models.session_risk import (
    ABLATIONS,
    EXIT_RATIO,
    FALSE_ALARMS,
    MOMENTS,
    Collected,
    RiskRecipe,
    Series,
    auroc_at,
    collect,
    operating_point,
    out_of_fold,
    risk_report,
    shipped,
    threshold,
)
from models.words import risk_by_words
from stream_app.inference.bundle import load as load_bundle

app = typer.Typer(add_completion=False)
Folds = Annotated[Path, typer.Option(help="Holds a folder for each fold's model.")]
Data = Annotated[Path | None, typer.Option(help="Folder with the corpora.")]
TARGETS = {"end": 0.92, "after_10": 0.86, "after_6": 0.80}
PROTOCOL = {
    "low": "seeker's empathy rating 1 or 2, or a chat of the failed file",
    "good": "seeker's empathy rating 4 or 5; a 3 or no rating in the ordinary files is left out",
    "turns": "counsellor turns; a session that has ended before counts with its closing risk, and "
    "*_running leaves such sessions out",
    "end": "the closing risk, fitted on whole sessions, with the client's last words",
    "nesting": "the fold's sessions are unknown to the encoder, to all heads, to the risk, to its "
    "scaling and to the alert thresholds; the risk learns from outcome heads that did not learn "
    "from the session at hand",
    "features": "stream_app.core.risk.features, through the service's pipeline",
}


def load_folds(folder: Path, data_dir: Path) -> tuple[list[HeardSession], list[Fold]]:
    """The sessions, and every fold whose outcome heads are there."""
    folds, dialogues = [], SERVICE_DIALOGUES
    for path in sorted(folder.glob(f"*/{OUTCOMES}")):
        about = json.loads((path.parent / "training.json").read_text(encoding="utf-8"))
        dialogues = int(about["outcomes"]["service_dialogues"])
        folds.append(Fold(int(path.parent.name), share_of(about), Outcomes.read(path)))
    if not folds:
        raise SystemExit(
            f"error: no fold in {folder} has {OUTCOMES}: run python -m models.perceived --model "
            f"{folder}/K for each of them"
        )
    sessions = load_sessions(data_dir, dialogues)
    keys = [session.key for session in sessions]
    for fold in folds:
        if fold.outcomes.keys != keys:
            raise SystemExit(f"error: fold {fold.number} was run on other sessions: run it again")
    return sessions, folds


@app.command()
def evaluate(
    folds: Folds = Path("build/folds"),
    data_dir: Data = None,
    out: Annotated[Path, typer.Option(help="Where the figures are written.")] = Path(
        "docs/evaluation"
    ),
    ablations: Annotated[bool, typer.Option(help="Also leave groups of features out.")] = True,
) -> None:
    """Measure perceived heads, session risk and AnnoMI quality on unseen folds."""
    started = time.monotonic()
    sessions, members = load_folds(folds, resolve_data_dir(data_dir))
    out.mkdir(parents=True, exist_ok=True)
    _write(out / "perceived.json", listener_report(sessions, members))
    print(f"perceived.json, {(time.monotonic() - started) / 60:.1f} minutes", flush=True)
    found = collect(sessions, members, {})
    series = out_of_fold(found, RiskRecipe())
    report = {
        "protocol": PROTOCOL,
        "targets": TARGETS,
        "folds": [fold.number for fold in members],
        "sessions": len(series),
        "low": sum(item.low for item in series),
        "recipe": asdict(AdditiveRecipe()),
        **risk_report(series),
        "ablations": _ablations(found) | risk_by_words(sessions, found.low, found.own)
        if ablations
        else {},
        "annomi_quality": quality.report(
            sessions, members, quality.annotated_codes(annomi.load(resolve_data_dir(data_dir)))
        ),
    }
    _write(out / "sessions.json", report)
    draw_by_turn(report, out / "risk-by-turn.svg")
    draw_calibration(report, out / "risk-calibration.svg")
    for name in MOMENTS:
        print(name, round(report["auroc"][name]["pooled"]["value"], 4))
    print(f"written to {out}, {(time.monotonic() - started) / 60:.1f} minutes")


def _ablations(found: Collected) -> dict[str, Any]:
    """AUROC of the risk with groups of features."""
    recipes = {name: RiskRecipe(keep=keep) for name, keep in ABLATIONS.items()}
    return {name: _early(out_of_fold(found, recipe)) for name, recipe in recipes.items()}


def _early(series: list[Series]) -> dict[str, Any]:
    return {name: auroc_at(series, k)["pooled"] for name, k in MOMENTS.items()}


@app.command()
def fit(
    bundle: Annotated[Path, typer.Option(help="Folder of the bundle.")] = Path(
        "stream_app/bundles/default"
    ),
    folds: Folds = Path("build/folds"),
    data_dir: Data = None,
) -> None:
    """Fit the risk on all rated sessions and write it into the bundle."""
    content = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    sessions, members = load_folds(folds, resolve_data_dir(data_dir))
    manifest = {head.name: head for head in load_bundle(bundle).manifest.heads}
    found = collect(sessions, members, manifest)
    series = out_of_fold(found, RiskRecipe())
    points = [operating_point(series, share) for share in FALSE_ALARMS]
    enter = threshold(series, FALSE_ALARMS[-1])
    running, ended = shipped(found, RiskRecipe())
    content["risk"] = msgspec.to_builtins(
        msgspec.structs.replace(
            running.risk_model(),
            enter=enter,
            exit=enter * EXIT_RATIO,
            alerts=points,
            closing=ended.risk_model(),
        )
    )
    content["metrics"]["risk"] = {"protocol": PROTOCOL, "out_of_fold": _early(series)}
    write_manifest(bundle, content)
    (bundle / CARD).write_text(model_card(content), encoding="utf-8")
    print(json.dumps({"enter": enter, "alerts": points}, indent=1))


def _write(path: Path, content: object) -> None:
    text = json.dumps(_without_nan(content), indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _without_nan(content: Any) -> Any:
    """The same with null for what is not defined (a correlation with a constant, say)."""
    if isinstance(content, dict):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and math.isnan(content) else content


if __name__ == "__main__":
    app()
