"""Compares longer and shorter memories of the risk: what each gains and loses.

The risk weighs exchanges by the probability that the session's level has not changed since. With a
higher prior probability of a change it forgets sooner: it notices a drop earlier, and takes more
chance variation for a drop. Every row is the same bundle on the same sessions, with another prior,
or a plain mean of expected EPITOME totals (`models.construct.plain`) in place of the risk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from models.construct import figures
from models.construct.benchmark import BenchmarkSessions
from models.construct.plain import SPANS
from models.construct.scoring import Scored
from models.construct.traces import SessionTrace, trace_sessions
from stream_app.core.measures.empathy import EmpathyModel
from stream_app.inference.bundles.bundle import HeadSpec

PRIORS = (0.01, 0.03, 0.1, 0.3)
"""Prior probabilities that the level changes between two exchanges."""
DOMAIN = "peer-support"
"""The domain with enough chats for the comparison."""
LARGEST_TOTAL = 6.0
CHANGED = ("none", "strong", "untouched")


def memory_rows(
    benchmark: BenchmarkSessions,
    scored: Scored,
    manifest: Mapping[str, HeadSpec],
    model: EmpathyModel,
) -> list[dict[str, Any]]:
    """A row of figures for each prior and each plain mean."""
    chosen = [i for i, known in enumerate(benchmark.known) if known.domain == DOMAIN]
    rows, watched = [], []
    for prior in PRIORS:
        own = msgspec.structs.replace(model, change=prior)
        watched = trace_sessions(benchmark, scored, manifest, own, chosen)
        rows.append({"memory": "risk", "prior": prior, "shipped": prior == model.change,
                     **_figures(watched)})  # fmt: skip
    for span in SPANS:
        means = [_with_plain_mean(trace, span) for trace in watched]
        rows.append({"memory": span, "prior": None, "shipped": False, **_figures(means)})
    return rows


def _with_plain_mean(trace: SessionTrace, span: str) -> SessionTrace:
    """The trace with a low plain mean as its risk, in [0, 1]."""
    risks = [1.0 - means[span] / LARGEST_TOTAL for means in trace.plain]
    if not risks:
        return trace
    end = msgspec.structs.replace(trace.end, low_empathy_risk=risks[-1])
    return replace(trace, risks=tuple(risks[place] for place in trace.places), end=end)


def _figures(watched: Sequence[SessionTrace]) -> dict[str, Any]:
    composed = figures.composed(watched, DOMAIN)
    ways = {
        (way["changed"], way["control"]): way
        for way in figures.degraded(watched, DOMAIN)
        if (way["onset"], way["share"]) == ("half", "every")
    }
    controls = [trace for trace in watched if figures.is_control(trace)]
    raised = figures.alerts(watched, {0: figures.threshold(controls)}, DOMAIN)
    return {
        "composed": composed["spearman"],
        "none_v_strong_soon": ways["none", "strong"]["soon"],
        "task_v_strong_soon": ways["task", "strong"]["soon"],
        "none_v_untouched_end": ways["none", "untouched"]["end"],
        "alerts": {kind: raised[kind]["fired_per_100"] for kind in CHANGED},
        "median_delay": raised["none"]["median_delay"],
    }
