"""`python -m models.construct evaluate` and `fit`: evaluate and fit the empathy index.

`evaluate` needs the fold models (`models.fit.crossvalidate`, `models.fit.perceived`) and writes
docs/evaluation/construct.json: every session is scored by the fold model that did not train on it,
with a calibration and an index fitted on the other folds. `fit` fits the index on all folds and
writes it into a bundle's bundle.json.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold

from models.bundle import CARD, MANIFEST, head_entry, write_manifest
from models.card import model_card
from models.construct import figures
from models.construct.benchmark import (
    DOMAINS_COMPOSED,
    BenchmarkSessions,
    build_benchmark,
    of_fold,
    of_held_out_tenth,
)
from models.construct.bundle_scores import score_both_views, score_with_bundle
from models.construct.fit import Part, fit, labelled_answers
from models.construct.memory import memory_rows
from models.construct.plain import SPANS
from models.construct.scoring import Scored, score
from models.construct.traces import SessionTrace, trace_sessions, turn_features
from models.data import load_for_command
from models.data.corpora import resolve_data_dir
from models.data.rated_sessions import RatedSession, load_sessions
from models.data.split import DESCRIPTION
from models.evaluate.annomi_quality import topic_of
from models.evaluate.folds import Fold, load_folds, plan
from models.evaluate.resampling import interval, spearman
from models.fit.calibrate import Calibration, crossfitted, fitted
from models.labels import COUNSELLOR, HEADS, RATED
from models.pages.low_empathy import targets
from stream_app.contracts.events import Approach
from stream_app.contracts.scores import MECHANISMS, Stage
from stream_app.core.measures.empathy import EmpathyModel
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.bundles.bundle import HeadSpec

app = typer.Typer(add_completion=False)
Folds = Annotated[Path, typer.Option(help="Folder with one model folder per fold.")]
Data = Annotated[Path | None, typer.Option(help="Folder with the corpora.")]
Manifest = Mapping[str, HeadSpec]
TOPIC_SPLITS, TOPIC_REPEATS = 5, 3
PROTOCOL = {
    "nesting": "no session was seen by the encoder or the heads that score it; calibration, answer "
    "weights, references and thresholds are fitted on the other folds",
    "risk": "by the service's own pipeline, after every counsellor turn, provisional scores "
    "included",
    "composed": "six exchanges of EPITOME; truth is the mean labelled total; low is the lowest "
    "quarter",
    "misplaced": "two sessions of six strongly empathic answers of EPITOME swap their answers; the "
    "control is the same sessions with their own answers, so that labels and lengths are the same",
    "lengths": "three, six and twelve exchanges of EPITOME, all answers without a mechanism, all "
    "strong (total of at least 3), or any",
    "plain": "means of expected EPITOME totals of all, the last five and the last three counsellor "
    "turns, from the scores known at that turn, on the same sessions",
    "degraded": "counsellor turns from the onset on replaced; the control has the same turns "
    "replaced by strongly empathic answers; all replacements are as long as the control's",
    "intervals": "95 %, sessions (pairs of sessions) resampled",
}


@dataclass(frozen=True)
class Loaded:
    """One fold: its sessions, its model's scores, and the calibration fitted on the others."""

    number: int
    benchmark: BenchmarkSessions
    scored: Scored
    manifest: Manifest

    def part(self) -> Part:
        """The inputs of the fit."""
        features = turn_features(self.benchmark, self.scored, self.manifest, Stage.FINAL)
        return Part(self.benchmark, self.scored.starts, features)

    def watched(self, model: EmpathyModel) -> list[SessionTrace]:
        """Run the sessions through the service's pipeline."""
        return trace_sessions(self.benchmark, self.scored, self.manifest, model)


def manifest_of(calibration: Calibration) -> Manifest:
    """The heads as a bundle with this calibration would declare them."""
    return {head.name: msgspec.convert(head_entry(head, calibration), HeadSpec) for head in HEADS}


def load(folds: Path, data_dir: Path) -> tuple[list[Loaded], Calibration]:
    """Load every trained fold, and the calibration fitted on all of them."""
    conversations = load_for_command(data_dir)
    trained: list[Fold] = load_folds(folds, conversations)
    if not trained:
        raise SystemExit(
            f"error: {folds} contains no trained fold: run python -m models.fit.crossvalidate"
        )
    found = []
    count, seed = plan(folds)
    for fold, calibration in zip(trained, crossfitted(trained), strict=True):
        made = build_benchmark(data_dir, of_fold(fold.number, count, seed), fold.number, seed)
        scored = score(folds / str(fold.number), made.sessions, data_dir)
        found.append(Loaded(fold.number, made, scored, manifest_of(calibration)))
        print(f"fold {fold.number}: {len(made.sessions)} sessions", flush=True)
    return found, fitted(trained)


@app.command()
def evaluate(
    folds: Folds = Path("build/folds"),
    data_dir: Data = None,
    out: Annotated[Path, typer.Option(help="File to write the figures to.")] = Path(
        "docs/evaluation/construct.json"
    ),
) -> None:
    """Evaluate the index and its risk on sessions of known empathy."""
    started = time.monotonic()
    folder = resolve_data_dir(data_dir)
    loaded, _ = load(folds, folder)
    parts = {fold.number: fold.part() for fold in loaded}
    watched: list[SessionTrace] = []
    enter: dict[int, float] = {}
    for fold in loaded:
        others = [part for number, part in parts.items() if number != fold.number]
        model = fit(others or list(parts.values()), 0.5, 0.4)
        watched += fold.watched(model)
    controls = [w for w in watched if figures.is_control(w) and w.known.domain == "peer-support"]
    for fold in loaded:
        rest = [w for w in controls if w.known.fold != fold.number]
        enter[fold.number] = figures.threshold(rest or controls)
    heard = load_sessions(folder, 1)
    report = {
        "protocol": PROTOCOL,
        "folds": [fold.number for fold in loaded],
        "one_answer": one_answer(list(parts.values())),
        "rated": rated(list(parts.values())),
        **by_measure(watched, figures.by_risk),
        "plain": {span: by_measure(watched, figures.by_plain_mean(span)) for span in SPANS},
        "alerts": {d: figures.alerts(watched, enter, d) for d in DOMAINS_COMPOSED},
        "annomi_quality": annomi_quality(loaded, parts, heard),
        "surveys": {
            source: figures.survey(
                watched,
                {s.key: s.empathy for s in heard if s.source == source and s.empathy is not None},
                source,
            )
            for source in ("esconv", "esconv_failed")
        },
    }
    out.write_text(json.dumps(_without_nan(report), indent=1, allow_nan=False) + "\n")
    print(json.dumps(_without_nan(_short(report)), indent=1))
    print(f"written to {out}, {(time.monotonic() - started) / 60:.1f} minutes")


@app.command()
def shipped(
    bundle: Annotated[Path, typer.Option(help="Folder of the bundle.")] = Path(
        "stream_app/bundles/default"
    ),
    data_dir: Data = None,
    out: Annotated[Path, typer.Option(help="File to write the figures to.")] = Path(
        "docs/evaluation/construct_shipped.json"
    ),
) -> None:
    """Evaluate a bundle as it ships, on the conversations that its training left out."""
    found = bundles.load(bundle)
    manifest, model = found.manifest, found.manifest.empathy
    if model is None or manifest.training.get("split") != DESCRIPTION:
        raise SystemExit(f"error: {bundle} has no empathy index, or left out no tenth in training")
    seed = int(manifest.training["seed"])
    made = build_benchmark(resolve_data_dir(data_dir), of_held_out_tenth(seed), 0, seed)
    scored = score_both_views(found, made.sessions)
    heads = {head.name: head for head in manifest.heads}
    part = Part(made, scored.starts, turn_features(made, scored, heads, Stage.FINAL))
    watched = trace_sessions(made, scored, heads, model)
    report = {
        "bundle": f"{manifest.name} {manifest.version}",
        "one_answer": one_answer([part]),
        **({"rated": rated([part])} if RATED in heads else {}),
        **by_measure(watched, figures.by_risk),
        "plain": {span: by_measure(watched, figures.by_plain_mean(span)) for span in SPANS},
        "alerts": {d: figures.alerts(watched, {0: model.enter}, d) for d in DOMAINS_COMPOSED},
        "memory": memory_rows(made, scored, heads, model),
    }
    out.write_text(json.dumps(_without_nan(report), indent=1, allow_nan=False) + "\n")
    print(targets(report, None))


def by_measure(watched: Sequence[SessionTrace], measure: figures.Measure) -> dict[str, Any]:
    """The figures that the risk and the plain means share."""
    composed = DOMAINS_COMPOSED
    return {
        "composed": {d: figures.composed(watched, d, measure) for d in composed},
        "lengths": {d: figures.lengths(watched, d, measure) for d in composed},
        "misplaced": {d: figures.misplaced(watched, d, measure) for d in composed},
        "degraded": {d: figures.degraded(watched, d, measure) for d in composed},
        "confounds": {
            d: figures.confounds(watched, d, measure) for d in (*composed, "customer-service")
        },
    }


def one_answer(parts: Sequence[Part]) -> dict[str, Any]:
    """Spearman of EPITOME's labelled total with the expected total, per answer."""
    expected, total = [], []
    for part in parts:
        x, labels = labelled_answers([part])
        expected.append(2.0 * x[:, : len(MECHANISMS)].sum(1))
        total.append(labels)
    x, y = np.concatenate(expected), np.concatenate(total)
    return {"answers": len(y), **interval(np.arange(len(y)), lambda r: spearman(x[r], y[r]))}


def rated(parts: Sequence[Part]) -> dict[str, Any]:
    """Spearman of 1-5 ratings with the head `empathy`, plain and with length held constant.

    The ratings seem to be of conversations: the answers of one have the same rating (`one_rating`
    counts these). So intervals resample conversations, and `conversations` compares the mean rating
    of each with the mean of the head over its answers.
    """
    of, found, given, words = [], [], [], []
    for part in parts:
        for session, known, rows in part.chosen(lambda _, known: known.kind == "rated"):
            places = session.positions[COUNSELLOR]
            for place, rating in zip(places, known.totals, strict=True):
                of.append(session.key)
                found.append(part.features.counsellor[RATED][rows[place]])
                given.append(float(rating))
                words.append(float(len(session.turns[place].text.split())))
    groups = np.unique(of, return_inverse=True)[1]
    x, y, length = np.array(found), np.array(given), np.array(words)
    sizes = np.bincount(groups)
    mean_x, mean_y, mean_length = (np.bincount(groups, each) / sizes for each in (x, y, length))
    return {
        "answers": len(x),
        **_correlations(x, y, length, groups),
        "conversations": {
            "number": len(sizes),
            "one_rating": sum(len({*y[groups == each]}) == 1 for each in range(len(sizes))),
            **_correlations(mean_x, mean_y, mean_length, np.arange(len(sizes))),
        },
    }


def _correlations(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    length: NDArray[np.float64],
    groups: NDArray[np.int64],
) -> dict[str, Any]:
    return {
        "spearman": interval(groups, lambda r: spearman(x[r], y[r])),
        "at_equal_length": interval(groups, lambda r: figures.partial(x[r], y[r], [length[r]])),
        "length_alone": spearman(length, y),
    }


def _outside(held: set[str]) -> Callable[[RatedSession], bool]:
    return lambda session: session.key not in held


def annomi_quality(
    loaded: Sequence[Loaded], parts: Mapping[int, Part], heard: Sequence[RatedSession]
) -> dict[str, Any]:
    """AUROC of low quality, topics held out, with the sessions declared as MI."""
    own = [s for s in heard if s.source == "annomi"]
    low = {s.key: s.quality == "low" for s in own}
    topics = np.unique([topic_of(s) for s in own], return_inverse=True)[1]
    truth = np.array([low[s.key] for s in own])
    repeats: list[list[SessionTrace]] = []
    for seed in range(TOPIC_REPEATS):
        splitter = StratifiedGroupKFold(TOPIC_SPLITS, shuffle=True, random_state=seed)
        found: list[SessionTrace] = []
        for _, test in splitter.split(truth, truth, topics):
            held = {own[i].key for i in test}
            model = fit(list(parts.values()), 0.5, 0.4, _outside(held))
            for fold in loaded:
                chosen = [
                    place
                    for place, (session, known) in enumerate(
                        zip(fold.benchmark.sessions, fold.benchmark.known, strict=True)
                    )
                    if known.kind == "real" and session.key in held
                ]
                found += trace_sessions(
                    fold.benchmark,
                    fold.scored,
                    fold.manifest,
                    model,
                    chosen=chosen,
                    approach=Approach.MOTIVATIONAL_INTERVIEWING,
                )
        repeats.append(found)
    rows = [figures.quality(found, low) for found in repeats]
    return {**rows[0], "repeats": [row["value"] for row in rows],
            "mean_of_repeats": float(np.mean([row["value"] for row in rows]))}  # fmt: skip


@app.command(name="fit")
def fit_bundle(
    bundle: Annotated[Path, typer.Option(help="Folder of the bundle.")] = Path(
        "stream_app/bundles/default"
    ),
    folds: Folds = Path("build/folds"),
    data_dir: Data = None,
    figures_file: Annotated[Path, typer.Option(help="What `evaluate` wrote.")] = Path(
        "docs/evaluation/construct.json"
    ),
    own: Annotated[
        bool, typer.Option(help="Compute the reference distribution from this bundle's own scores.")
    ] = False,
) -> None:
    """Fit the index on all folds and write it into the bundle.

    With `--own` the reference distribution comes from the bundle's own scores, for a bundle other
    than the fold models' (the small one); answer weights are learned on the folds alone.
    """
    loaded, calibration = load(folds, resolve_data_dir(data_dir))
    manifest = manifest_of(calibration)
    parts = [Loaded(fold.number, fold.benchmark, fold.scored, manifest).part() for fold in loaded]
    measured = json.loads(figures_file.read_text(encoding="utf-8"))
    by_fold = measured["alerts"]["peer-support"]["enter_by_fold"].values()
    enter = round(float(np.median(list(by_fold))), 4)
    references = [score_with_bundle(bundle, fold.benchmark) for fold in loaded] if own else None
    leave = round(enter * figures.EXIT_RATIO, 4)
    model = fit(parts, enter, leave, references=references)
    content = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    content["empathy"] = msgspec.to_builtins(model)
    content["metrics"]["construct"] = _short(measured)
    write_manifest(bundle, content)
    (bundle / CARD).write_text(model_card(content), encoding="utf-8")
    print(json.dumps(content["empathy"], indent=1))


def _short(report: Mapping[str, Any]) -> dict[str, Any]:
    """Headline figures for the terminal."""
    return {
        "one_answer": report["one_answer"]["value"],
        "rated": {name: report["rated"][name]["value"] for name in ("spearman", "at_equal_length")},
        "composed": {
            domain: {
                name: found[name]["value"]
                for name in ("spearman", "auroc_after_six", "auroc_after_three")
            }
            for domain, found in report["composed"].items()
        },
        "misplaced": {
            domain: {name: found[name]["value"] for name in ("after_six", "after_three")}
            for domain, found in report.get("misplaced", {}).items()
        },
        "degraded": {
            domain: {
                f"{row['changed']} v {row['control']}, from {row['onset']}, {row['share']}": [
                    round(row["end"]["value"], 3),
                    round(row["soon"]["value"], 3),
                ]
                for row in rows
            }
            for domain, rows in report["degraded"].items()
        },
        "alerts": report["alerts"],
        "annomi_quality": report["annomi_quality"]["mean_of_repeats"],
        "surveys": {name: found["spearman"]["value"] for name, found in report["surveys"].items()},
        "confounds": {
            domain: {
                name: values["given_the_index"]["value"]
                for name, values in found.items()
                if isinstance(values, dict)
            }
            for domain, found in report["confounds"].items()
        },
    }


def _without_nan(content: Any) -> Any:
    """Replace undefined values (NaN, such as a correlation with a constant) by null."""
    if isinstance(content, Mapping):
        return {str(key): _without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and math.isnan(content) else content


if __name__ == "__main__":
    app()
