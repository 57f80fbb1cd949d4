"""Compare a distilled bundle with its teacher on turns that neither was trained on.

Both bundles are used as shipped: the same held-out part and windows, each with its own calibration.
Cost is CPU time of one thread, measured in alternating rounds of one run.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.data.corpora import Conversation
from models.data.rated_sessions import RatedSession
from models.evaluate.exported import Measured, measured
from models.evaluate.replay import START
from models.evaluate.resampling import auroc, interval
from models.labels import CLIENT, ROLE_NAMES
from models.outcomes.labels import CHAT_FAILED, SPECS
from models.pages.report import rounded
from stream_app.contracts.events import Domain, Role, Turn, WireRole
from stream_app.core.measures.outcomes import outcome_risks
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline, Received, Source
from stream_app.core.session.environment import Policy
from stream_app.core.session.session_state import Versioned
from stream_app.inference.bundles.bundle import Bundle
from stream_app.inference.scorer import OnnxScorer

BATCH = 256
"""Turns per call, as in a worker."""
TIMED_TURNS = 1024
FIGURES = ("accuracy", "macro_f1")
SPANS = ("token_f1_gold", "iou_f1_gold", "token_f1", "iou_f1")


def heads(large: Measured, small: Measured) -> dict[str, Any]:
    """By head: both bundles' metrics on labelled turns, and their agreement on all turns.

    `equal_labels` and `distance` (mean total variation of the calibrated probabilities, 0-1) are
    over all turns of the head's role, labelled or not.
    """
    rows: dict[str, Any] = {}
    for name, reference in large.predictions.everywhere.items():
        p = large.calibration.probabilities(name, reference)
        q = small.calibration.probabilities(name, small.predictions.everywhere[name])
        labels = [m.calibration.labels(name, v) for m, v in ((large, p), (small, q))]
        rows[name] = {
            "turns": len(p),
            "equal_labels": float(np.mean(labels[0] == labels[1])),
            "distance": float(np.abs(p - q).sum(-1).mean() / 2),
        }
        if name in large.metrics:
            both = large.metrics[name], small.metrics[name]
            rows[name] |= {"n": both[0]["n"], "majority": both[0]["majority"]}
            rows[name] |= {key: [figures[key] for figures in both] for key in FIGURES}
            if "rationale" in both[0]:
                spans = [figures["rationale"] for figures in both]
                rows[name] |= {key: [figures[key] for figures in spans] for key in SPANS}
    return rows


def risk(scorers: list[OnnxScorer], sessions: list[RatedSession]) -> dict[str, Any]:
    """AUROC of `chat_failed` after the last turn, and the scorers' agreement on it."""
    [spec] = [spec for spec in SPECS if spec.name == CHAT_FAILED]
    rated = [session for session in sessions if spec.truth(session) is not None]
    low = np.array([bool(spec.truth(session)) for session in rated])
    given = np.array([[_risk_of(scorer, session) for session in rated] for scorer in scorers])
    known = ~np.isnan(given).any(0)
    low, given = low[known], given[:, known]
    places = np.arange(len(low))
    return {
        "sessions": len(low),
        "low": int(low.sum()),
        "auroc": [interval(places, _auroc_of(low, risks)) for risks in given],
        "difference": interval(
            places,
            lambda rows: auroc(low[rows], given[1][rows]) - auroc(low[rows], given[0][rows]),
        ),
        "mean_distance": float(np.abs(given[1] - given[0]).mean()),
        "pearson": float(np.corrcoef(given)[0, 1]),
    }


def _risk_of(scorer: OnnxScorer, session: RatedSession) -> float:
    """The risk after the last turn; NaN below the minimum number of counsellor turns."""
    states: dict[str, Versioned] = {}
    pipeline = Pipeline(scorer, Policy(WindowPolicy(*scorer.window), require_consent=False))
    batch = [
        Received(
            Source("compare", 0, seq),
            b"",
            Turn(
                session_id=session.key,
                seq=seq,
                speaker_id=ROLE_NAMES[turn.role],
                role=WireRole.CLIENT if turn.role == CLIENT else WireRole.COUNSELLOR,
                text=turn.text,
                occurred_at=START,
            ),
        )
        for seq, turn in enumerate(session.turns)
    ]
    pipeline.process(batch, states)
    summary = states[session.key].state.aggregates.summary()
    found = outcome_risks(scorer.outcomes, summary, Domain.PEER_SUPPORT.value, None)
    return found.get(CHAT_FAILED, float("nan"))


def cost(scorers: list[OnnxScorer], test: list[Conversation], rounds: int) -> dict[str, Any]:
    """CPU microseconds per turn for encoding (tokeniser, encoder, rationales)."""
    turns = [turn for item in test for turn in item.turns]
    turns = turns[:: max(1, len(turns) // TIMED_TURNS)][:TIMED_TURNS]
    texts = [turn.text for turn in turns]
    roles = [Role(ROLE_NAMES[turn.role]) for turn in turns]
    tokens = sum(len(item.ids) for item in scorers[0].tokenizer.tokenize(texts))
    for scorer in scorers:
        scorer.encode(texts[:BATCH], roles[:BATCH])
    times = [[_encoding(scorer, texts, roles) for scorer in scorers] for _ in range(rounds)]
    medians = [statistics.median(column) for column in zip(*times, strict=True)]
    return {
        "rounds": rounds,
        "turns": len(texts),
        "tokens_a_turn": tokens / len(texts),
        "encode_us": [1e6 * value / len(texts) for value in medians],
        "ratio": statistics.median(large / small for large, small in times),
    }


def _encoding(scorer: OnnxScorer, texts: list[str], roles: list[Role]) -> float:
    started = time.process_time()
    for first in range(0, len(texts), BATCH):
        scorer.encode(texts[first : first + BATCH], roles[first : first + BATCH])
    return time.process_time() - started


def _auroc_of(
    low: NDArray[np.bool_], risks: NDArray[np.float64]
) -> Callable[[NDArray[np.int64]], float]:
    return lambda rows: auroc(low[rows], risks[rows])


def report(
    bundles: tuple[Bundle, Bundle],
    test: list[Conversation],
    sessions: list[RatedSession],
    rounds: int,
) -> dict[str, Any]:
    """The whole comparison; in every pair the large bundle's figure comes first."""
    large, small = (measured(bundle, test) for bundle in bundles)
    scorers = [OnnxScorer(bundle) for bundle in bundles]
    about = bundles[1].manifest.training["distillation"]
    found: dict[str, Any] = rounded(
        {
            "bundles": [bundle.manifest.bundle_id for bundle in bundles],
            "split": bundles[1].manifest.training["split"],
            "heads": heads(large, small),
            "risk": risk(scorers, sessions),
            "parameters": [about["teacher_parameters"], bundles[1].manifest.training["parameters"]],
            "flops_a_token": [about["teacher_flops_a_token"], about["flops_a_token"]],
            "encoder_bytes": [
                bundle.file(bundle.manifest.encoder.file).stat().st_size for bundle in bundles
            ],
            "bundle_bytes": [
                sum(path.stat().st_size for path in bundle.path.iterdir()) for bundle in bundles
            ],
            "cost": cost(scorers, test, rounds),
        }
    )
    return found
