"""Evaluation of the session risk: honest nesting, early detection, calibration and alerts.

Fold k is scored by a risk that knows nothing of fold k: the encoder and all heads are fold k's
model, and the risk is fitted on the other folds' sessions with the outputs of outcome heads that
did not learn from them (`models.perceived`, `Outcomes.unseen`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from models.additive import Additive, AdditiveRecipe, Floats, fit_additive, platt
from models.data.listeners import HeardSession
from models.data.split import fold_of
from models.labels import OUTCOME_HEADS
from models.ratings import Fold
from models.replay import Trajectory, trajectories
from models.resampling import auroc, interval, spread
from stream_app.inference.bundle import HeadSpec

EARLY = (6, 10)
MOMENTS: dict[str, int | None] = {"end": None, "after_10": 10, "after_6": 6}
"""Counsellor turns after which the risk is asked for; None: when the session has ended."""
CLOSING = AdditiveRecipe(strength=0.03)
"""One point a session, instead of one a turn, wants a stronger penalty."""
BY_TURN = tuple(range(1, 21))
FALSE_ALARMS = (0.05, 0.10)
EXIT_RATIO = 0.8
CALIBRATION_FOLDS = 4
BINS = 10
FOR_TURNS = 2
"""As in the rule `low-empathy-risk` that ships (`stream_app/rules.yaml`)."""

LENGTHS = ("log_words", "mean_log_words", "short_share", "log_longest", "log_recent_words")
SPEECH = (*LENGTHS, "repeat_share", "log_turns")
ABLATIONS: dict[str, Callable[[str], bool]] = {
    "all": lambda _: True,
    "without the outcome heads": lambda name: not name.startswith(OUTCOME_HEADS),
    "without who speaks how long": lambda name: not _is_speech(name),
    "outcome heads alone": lambda name: name.startswith(OUTCOME_HEADS) or name == TURNS,
    "who speaks how long alone": lambda name: _is_speech(name) or name == TURNS,
}
TURNS = "log_counsellor_turns"


def _is_speech(name: str) -> bool:
    return name.endswith(SPEECH) or name in ("talk_share", "log_words_per_turn")


@dataclass
class Series:
    """The risk of one session after each of its counsellor turns, and when it has ended."""

    session: int
    fold: int
    low: bool
    risk: Floats
    closing: float


@dataclass
class Points:
    """Points of many sessions stacked: features [points, names]; each session weighs 1."""

    x: Floats
    y: Floats
    weight: Floats
    session: NDArray[np.int64]

    @classmethod
    def of(cls, found: Sequence[Trajectory], low: Mapping[int, bool]) -> Points:
        """Stack trajectories."""
        return cls(
            np.concatenate([item.points for item in found]),
            np.concatenate([np.full(len(item.points), float(low[item.session])) for item in found]),
            np.concatenate([np.full(len(item.points), 1 / len(item.points)) for item in found]),
            np.concatenate([np.full(len(item.points), item.session) for item in found]),
        )

    @classmethod
    def of_ends(cls, found: Sequence[Trajectory], low: Mapping[int, bool]) -> Points:
        """One point a session: what is known when it has ended."""
        return cls(
            np.stack([item.closing for item in found]),
            np.array([float(low[item.session]) for item in found]),
            np.ones(len(found)),
            np.array([item.session for item in found]),
        )

    def where(self, chosen: NDArray[np.bool_]) -> Points:
        """Some of the points."""
        return Points(self.x[chosen], self.y[chosen], self.weight[chosen], self.session[chosen])


@dataclass(frozen=True)
class RiskRecipe:
    """What the risk is fitted with; `keep` says which features it may use."""

    additive: AdditiveRecipe = field(default_factory=AdditiveRecipe)
    closing: AdditiveRecipe = CLOSING
    keep: Callable[[str], bool] = ABLATIONS["all"]
    seed: int = 17


def fit_both(
    members: Sequence[Trajectory], found: Collected, recipe: RiskRecipe
) -> tuple[Additive, Additive]:
    """The risk of running sessions, and that of sessions that have ended."""
    running = Points.of(members, found.low)
    ended = Points.of_ends(members, found.low)
    return (
        fit_calibrated(running, found.names, recipe, found.keys),
        fit_calibrated(ended, found.names, replace(recipe, additive=recipe.closing), found.keys),
    )


def fit_calibrated(
    points: Points, names: list[str], recipe: RiskRecipe, keys: list[str]
) -> Additive:
    """The additive model, its log-odds scaled by what inner folds of its own sessions show."""
    columns = [i for i, name in enumerate(names) if recipe.keep(name) or name == TURNS]
    x, kept = points.x[:, columns], [names[i] for i in columns]
    inner = np.array(
        [
            fold_of(f"platt:{keys[number]}", recipe.seed, CALIBRATION_FOLDS)
            for number in points.session
        ]
    )
    log_odds = np.zeros(len(x))
    for fold in range(CALIBRATION_FOLDS):
        out = inner == fold
        part = points.where(~out)
        fitted = fit_additive(x[~out], part.y, part.weight, kept, recipe.additive)
        log_odds[out] = fitted.log_odds(x[out])
    slope, offset = platt(log_odds, points.y, points.weight)
    return fit_additive(x, points.y, points.weight, kept, recipe.additive).scaled(slope, offset)


@dataclass
class Collected:
    """All rated sessions under each fold's model: feature names and trajectories by fold."""

    names: list[str]
    low: dict[int, bool]
    keys: list[str]
    by_fold: dict[int, list[Trajectory]]
    own: dict[int, int]
    """Session -> the fold that leaves it out."""


def collect(
    sessions: list[HeardSession], folds: list[Fold], manifest: Mapping[str, HeadSpec]
) -> Collected:
    """Run the rated sessions through the pipeline once for each fold's model."""
    low = {i: bool(s.low) for i, s in enumerate(sessions) if s.low is not None}
    by_fold, names, own = {}, [], {}
    for fold in folds:
        logits = {
            view: {**tables, **fold.outcomes.unseen[view]}
            for view, tables in fold.outcomes.logits.items()
        }
        names, by_fold[fold.number] = trajectories(
            sessions, fold.outcomes.starts, sorted(low), logits, manifest
        )
        own |= {i: fold.number for i in low if not fold.share.trains(sessions[i].key)}
    return Collected(names, low, [session.key for session in sessions], by_fold, own)


def out_of_fold(found: Collected, recipe: RiskRecipe) -> list[Series]:
    """Every session's risk from the fold that left it out, all stages."""
    series = []
    for fold, members in found.by_fold.items():
        test = [item for item in members if found.own.get(item.session) == fold]
        train = [item for item in members if found.own.get(item.session, -1) != fold]
        running, ended = fit_both(train, found, recipe)
        columns = [found.names.index(name) for name in running.names]
        for item in test:
            risk = expit(running.log_odds(item.points[:, columns]))
            [closing] = expit(ended.log_odds(item.closing[None, columns]))
            series.append(Series(item.session, fold, found.low[item.session], risk, float(closing)))
    return series


def shipped(found: Collected, recipe: RiskRecipe) -> tuple[Additive, Additive]:
    """The risk that ships: on all sessions, each with the outputs of the fold that left it out."""
    members = [
        item
        for fold, items in found.by_fold.items()
        for item in items
        if found.own.get(item.session) == fold
    ]
    return fit_both(members, found, recipe)


def at_turn(series: Series, turns: int | None) -> float:
    """The risk known after so many counsellor turns (None: when the session has ended)."""
    if turns is None or turns > len(series.risk):
        return series.closing
    return float(series.risk[turns - 1])


def auroc_at(series: list[Series], turns: int | None, *, running: bool = False) -> dict[str, Any]:
    """AUROC pooled with its interval, and over the folds.

    `running` leaves out the sessions that have ended before so many counsellor turns.
    """
    kept = [s for s in series if not running or turns is None or len(s.risk) >= turns]
    low = np.array([s.low for s in kept])
    risk = np.array([at_turn(s, turns) for s in kept])
    fold = np.array([s.fold for s in kept])
    found = interval(np.arange(len(kept)), lambda rows: auroc(low[rows], risk[rows]))
    by_fold = [auroc(low[fold == k], risk[fold == k]) for k in sorted(set(fold.tolist()))]
    return {"n": len(kept), "low": int(low.sum()), "pooled": found, **spread(by_fold)}


def calibration_at(series: list[Series], turns: int | None) -> dict[str, Any]:
    """Brier score, expected calibration error and bins of equal size, of running sessions."""
    kept = [s for s in series if turns is None or len(s.risk) >= turns]
    risk = np.array([at_turn(s, turns) for s in kept])
    low = np.array([s.low for s in kept], dtype=float)
    parts = np.array_split(np.argsort(risk, kind="stable"), BINS)
    bins = [
        {"n": len(p), "risk": float(risk[p].mean()), "low": float(low[p].mean())} for p in parts
    ]
    error = sum(b["n"] * abs(b["risk"] - b["low"]) for b in bins) / len(kept)
    return {
        "n": len(kept),
        "brier": float(((risk - low) ** 2).mean()),
        "brier_of_the_base_rate": float(low.mean() * (1 - low.mean())),
        "mean_risk": float(risk.mean()),
        "share_low": float(low.mean()),
        "expected_calibration_error": error,
        "bins": bins,
    }


def alarm_level(risk: Floats, for_turns: int = FOR_TURNS) -> float:
    """The highest threshold at which this session would have fired."""
    windows = [risk[i : i + for_turns].min() for i in range(len(risk) - for_turns + 1)]
    return float(max(windows, default=0.0))


def fired_at(risk: Floats, enter: float, for_turns: int = FOR_TURNS) -> int | None:
    """The counsellor turn (from 1) at which the alert fires, or None."""
    for i in range(len(risk) - for_turns + 1):
        if risk[i : i + for_turns].min() >= enter:
            return i + for_turns
    return None


def threshold(series: Sequence[Series], false_alarms: float) -> float:
    """The lowest threshold at which at most this share of the good sessions fires."""
    levels = np.sort([alarm_level(s.risk) for s in series if not s.low])[::-1]
    allowed = int(np.floor(false_alarms * len(levels)))
    return float(np.nextafter(levels[min(allowed, len(levels) - 1)], 1.0))


def operating_point(series: list[Series], false_alarms: float) -> dict[str, Any]:
    """Thresholds chosen on the other folds, and what they do on each fold's own sessions."""
    folds = sorted({s.fold for s in series})
    chosen = {
        k: threshold([s for s in series if s.fold != k or len(folds) == 1], false_alarms)
        for k in folds
    }
    fired = [(s, fired_at(s.risk, chosen[s.fold])) for s in series]
    low = [(s, turn) for s, turn in fired if s.low]
    good = [(s, turn) for s, turn in fired if not s.low]
    turns = [turn for _, turn in low if turn is not None]
    rests = [1 - turn / len(s.risk) for s, turn in low if turn is not None]
    return {
        "wanted_false_alarms_per_100_good": 100 * false_alarms,
        "for_turns": FOR_TURNS,
        "enter": threshold(series, false_alarms),
        "enter_by_fold": list(chosen.values()),
        "good_sessions": len(good),
        "low_sessions": len(low),
        "false_alarms_per_100_good": 100 * float(np.mean([t is not None for _, t in good])),
        "detected_per_100_low": 100 * float(np.mean([t is not None for _, t in low])),
        "median_counsellor_turn_of_detection": float(np.median(turns)) if turns else None,
        "median_share_of_session_left": float(np.median(rests)) if rests else None,
    }


def risk_report(series: list[Series]) -> dict[str, Any]:
    """All figures of one risk."""
    return {
        "auroc": {
            "end": auroc_at(series, None),
            **{f"after_{k}": auroc_at(series, k) for k in reversed(EARLY)},
            **{f"after_{k}_running": auroc_at(series, k, running=True) for k in reversed(EARLY)},
        },
        "calibration": {
            "end": calibration_at(series, None),
            **{f"after_{k}": calibration_at(series, k) for k in reversed(EARLY)},
        },
        "alerts": [operating_point(series, share) for share in FALSE_ALARMS],
        "by_turn": [
            {
                "counsellor_turns": k,
                "known_by_then": auroc_at(series, k)["pooled"],
                "running": auroc_at(series, k, running=True)["pooled"],
                "running_sessions": sum(len(s.risk) >= k for s in series),
                "expected_calibration_error": calibration_at(series, k)[
                    "expected_calibration_error"
                ],
            }
            for k in BY_TURN
        ],
    }
