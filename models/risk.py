"""`python -m models.risk --bundle FOLDER`: fit the session risk that a bundle ships.

The risk is the probability that the person who was listened to will rate the session low, from
the aggregates after each counsellor turn (`stream_app.core.risk`). Learned from ESConv: chats that
failed, or whose seeker rated the supporter's empathy 1 or 2, against chats rated 4 or 5. Scores
come from the bundle itself, through the service's own pipeline: training and service see the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from export.bundle import CARD, MANIFEST, write_manifest
from export.card import model_card
from models.data.corpora import CORPORA, read_rows, resolve_data_dir
from models.data.split import part_of
from stream_app.contracts.events import Turn, WireRole
from stream_app.core.alerts import AlertRule
from stream_app.core.pipeline import Pipeline, Policy, Received, Source
from stream_app.core.risk import features
from stream_app.core.session import Versioned
from stream_app.core.window import WindowPolicy
from stream_app.inference import bundle as bundles
from stream_app.inference.scorer import OnnxScorer

LOW, GOOD = (1, 2), (4, 5)
MIN_COUNSELLOR_TURNS = 3
FALSE_ALARMS = 0.10
"""Share of good sessions that may raise an alarm at the default threshold."""
EXIT_RATIO = 0.8
REGULARISATION = 0.3
EARLY = (6, 10)


@dataclass
class RatedSession:
    """A chat with its seeker's verdict; `points`: features after each counsellor turn, by turn."""

    key: str
    low: bool
    turns: list[tuple[str, str]]
    points: list[tuple[int, list[float]]]


def rated_sessions(data_dir: Path) -> list[RatedSession]:
    """ESConv chats with a clear verdict; a rating of 3 is neither."""
    corpus = CORPORA["esconv"]
    sessions = []
    for file in corpus.files:
        for row in read_rows(corpus, file, data_dir):
            rating = row["survey_score"].get("seeker", {}).get("empathy")
            failed = "failed" in file
            if not failed and (rating is None or int(rating) not in LOW + GOOD):
                continue
            turns = [(t["speaker"], t["text"]) for t in row["dialog"] if t["text"].strip()]
            low = failed or int(rating) in LOW
            sessions.append(RatedSession(str(row["conversation_id"]), low, turns, []))
    return sessions


def collect(sessions: list[RatedSession], scorer: OnnxScorer) -> list[str]:
    """Run all sessions side by side, a turn at a time, and note their features."""
    before, after = scorer.window
    policy = Policy(WindowPolicy(before, after), AlertRule(), require_consent=False)
    pipeline = Pipeline(scorer, policy)
    states: dict[str, Versioned] = {}
    start = datetime(2024, 1, 1, tzinfo=UTC)
    names: list[str] = []
    for seq in range(max(len(session.turns) for session in sessions)):
        live = [session for session in sessions if seq < len(session.turns)]
        batch = [
            Received(Source("esconv", 0, seq), b"", _turn(session, seq, start)) for session in live
        ]
        pipeline.process(batch, states)
        for session in live:
            summary = states[session.key].state.aggregates.summary()
            counsellor = session.turns[seq][0] == "supporter"
            if counsellor and summary.counsellor_turns >= MIN_COUNSELLOR_TURNS:
                values = features(summary)
                names = list(values)
                session.points.append((seq, list(values.values())))
    return names


def _turn(session: RatedSession, seq: int, start: datetime) -> Turn:
    speaker, text = session.turns[seq]
    return Turn(
        session_id=session.key,
        seq=seq,
        speaker_id=speaker,
        role=WireRole.CLIENT if speaker == "seeker" else WireRole.COUNSELLOR,
        text=text,
        occurred_at=start + timedelta(seconds=20 * seq),
    )


def fit(sessions: list[RatedSession]) -> tuple[float, list[float]]:
    """Intercept and weights on the raw features; every session counts the same."""
    x = np.array([values for session in sessions for _, values in session.points])
    y = np.array([session.low for session in sessions for _ in session.points])
    weight = np.concatenate([np.full(len(s.points), 1 / len(s.points)) for s in sessions])
    model = make_pipeline(StandardScaler(), LogisticRegression(C=REGULARISATION, max_iter=2000))
    model.fit(x, y, logisticregression__sample_weight=weight)
    scaler, regression = model.steps[0][1], model.steps[1][1]
    weights = regression.coef_[0] / scaler.scale_
    return float(regression.intercept_[0] - weights @ scaler.mean_), weights.tolist()


def risks(session: RatedSession, intercept: float, weights: list[float]) -> list[tuple[int, float]]:
    """Risk after each counsellor turn."""
    logits = [(seq, intercept + float(np.dot(weights, values))) for seq, values in session.points]
    return [(seq, 1 / (1 + float(np.exp(-logit)))) for seq, logit in logits]


def alarm_level(points: list[tuple[int, float]], for_turns: int) -> float:
    """The highest threshold at which this session would have fired."""
    values = [risk for _, risk in points]
    windows = [values[i : i + for_turns] for i in range(len(values) - for_turns + 1)]
    return max((min(window) for window in windows), default=0.0)


def measure(
    sessions: list[RatedSession], intercept: float, weights: list[float], enter: float
) -> dict[str, Any]:
    """AUROC at the end and early on, Brier score, and what the default threshold does."""
    series = [risks(session, intercept, weights) for session in sessions]
    low = np.array([session.low for session in sessions])
    final = np.array([points[-1][1] for points in series])
    rule = AlertRule()
    fired = np.array([alarm_level(points, rule.for_turns) >= enter for points in series])
    result: dict[str, Any] = {
        "sessions": len(sessions),
        "low": int(low.sum()),
        "auroc_end": float(roc_auc_score(low, final)),
        "brier_end": float(brier_score_loss(low, final)),
        "false_alarms_per_100_good": float(100 * fired[~low].mean()),
        "detected_per_100_low": float(100 * fired[low].mean()),
    }
    for turns in EARLY:
        early = [(s, [r for seq, r in p if seq < turns]) for s, p in zip(low, series, strict=True)]
        known = [(label, values[-1]) for label, values in early if values]
        labels = [label for label, _ in known]
        if len(set(labels)) == 2:
            result[f"auroc_after_{turns}"] = float(roc_auc_score(labels, [r for _, r in known]))
            result[f"sessions_after_{turns}"] = len(known)
    return result


def main(
    bundle: Annotated[Path, typer.Option(help="Folder of the bundle.")] = bundles.DEFAULT_BUNDLE,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    threads: int = 2,
) -> None:
    """Fit on the training part, choose the threshold on validation, measure on test; write."""
    loaded = bundles.load(bundle)
    seed = loaded.manifest.training["seed"]
    sessions = rated_sessions(resolve_data_dir(data_dir))
    names = collect(sessions, OnnxScorer(loaded, threads=threads))
    sessions = [session for session in sessions if session.points]
    parts = {session.key: part_of(f"esconv:{session.key}", seed) for session in sessions}
    by_part = {
        part: [session for session in sessions if parts[session.key] == part]
        for part in ("train", "validation", "test")
    }
    intercept, weights = fit(by_part["train"])
    good = [s for part in ("train", "validation") for s in by_part[part] if not s.low]
    levels = [alarm_level(risks(s, intercept, weights), AlertRule().for_turns) for s in good]
    enter = float(np.quantile(levels, 1 - FALSE_ALARMS))
    metrics = {
        part: measure(members, intercept, weights, enter) for part, members in by_part.items()
    }
    content = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
    content["risk"] = {
        "intercept": intercept,
        "weights": dict(zip(names, weights, strict=True)),
        "min_counsellor_turns": MIN_COUNSELLOR_TURNS,
        "enter": enter,
        "exit": enter * EXIT_RATIO,
    }
    content["metrics"]["risk"] = metrics
    write_manifest(bundle, content)
    (bundle / CARD).write_text(model_card(content), encoding="utf-8")
    print(json.dumps({"enter": enter, **metrics}, indent=1))


if __name__ == "__main__":
    typer.run(main)
