"""Figures of the benchmark, from the service's output on its sessions."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from models.construct.benchmark import EXCHANGES, GROUPS, LENGTHS, Kind
from models.construct.traces import SessionTrace
from models.evaluate.resampling import auroc, interval, spearman

Floats = NDArray[np.float64]
LOW_SHARE = 0.25
"""Composed sessions in the lowest quarter by labelled mean count as low."""
SOON = 3
"""Counsellor turns after the onset."""
FOR_TURNS = 2
"""As in the shipped rule `low-empathy` (`stream_app/rules.yaml`)."""
FALSE_ALARMS = 0.05
EXIT_RATIO = 0.8
UNKNOWN = 0.5
"""Used where no risk exists yet."""
PAIRS: tuple[tuple[Kind, Kind], ...] = (
    ("none", "strong"),
    ("task", "strong"),
    ("advice", "strong"),
    ("none", "untouched"),
    ("task", "untouched"),
    ("advice", "untouched"),
)


Measure = Callable[[SessionTrace, int | None], float]
"""A measure of low empathy after that many counsellor turns; None: at the session's end."""


def by_risk(w: SessionTrace, turns: int | None) -> float:
    """The service's risk."""
    known = w.end.low_empathy_risk if turns is None else w.risk_after(turns)
    return UNKNOWN if known is None else known


def by_plain_mean(span: str) -> Measure:
    """The negated plain mean of expected levels (`models.construct.plain`)."""

    def measure(w: SessionTrace, turns: int | None) -> float:
        return -w.plain[-1 if turns is None else turns - 1][span]

    return measure


def composed(
    found: Sequence[SessionTrace], domain: str, measure: Measure = by_risk
) -> dict[str, Any]:
    """Rank correlation with the labelled mean, and AUROC of the low sessions."""
    own = [w for w in found if w.known.kind == "composed" and w.known.domain == domain]
    truth = np.array([float(np.mean(w.known.totals)) for w in own])
    low = truth <= np.quantile(truth, LOW_SHARE)
    end = np.array([measure(w, EXCHANGES) for w in own])
    half = np.array([measure(w, EXCHANGES // 2) for w in own])
    groups = np.arange(len(own))
    return {
        "sessions": len(own),
        "low": int(low.sum()),
        "spearman": interval(groups, lambda rows: spearman(-end[rows], truth[rows])),
        "auroc_after_six": interval(groups, lambda rows: auroc(low[rows], end[rows])),
        "auroc_after_three": interval(groups, lambda rows: auroc(low[rows], half[rows])),
    }


def lengths(
    found: Sequence[SessionTrace], domain: str, measure: Measure = by_risk
) -> dict[str, Any]:
    """The measure at the end of sessions of known empathy, by group of answers and length.

    More exchanges are more evidence: they should raise the risk of sessions without any mechanism
    and lower that of strongly empathic ones. `spearman` is that with the number of exchanges.
    """
    rows: dict[str, Any] = {}
    for group in GROUPS:
        own = [w for w in found if (w.known.kind, w.known.origin) == ("lengths", group)]
        own = [w for w in own if w.known.domain == domain]
        count = np.array([float(len(w.known.totals)) for w in own])
        value = np.array([measure(w, None) for w in own])
        if not own:
            continue
        rows[group] = {
            "sessions": len(own),
            "mean": {str(n): float(value[count == n].mean()) for n in LENGTHS if n in count},
            "spearman": interval(np.arange(len(own)), _rank_correlation(value, count)),
        }
    return rows


def _rank_correlation(x: Floats, y: Floats) -> Callable[[NDArray[np.int64]], float]:
    return lambda rows: spearman(x[rows], y[rows])


def misplaced(
    found: Sequence[SessionTrace], domain: str, measure: Measure = by_risk
) -> dict[str, Any]:
    """AUROC of sessions with each other's empathic answers against sessions with their own.

    Sessions that swapped their answers are resampled together.
    """
    own = [
        w
        for w in found
        if w.known.kind in ("misplaced", "fitting") and w.known.domain == domain
    ]  # fmt: skip
    changed = np.array([w.known.kind == "misplaced" for w in own], bool)
    groups = np.unique([w.known.origin for w in own], return_inverse=True)[1]

    def distinguished(turns: int) -> dict[str, Any]:
        low = np.array([measure(w, turns) for w in own])
        return interval(groups, lambda rows: auroc(changed[rows], low[rows]))

    return {
        "sessions": int(changed.sum()),
        "after_six": distinguished(EXCHANGES),
        "after_three": distinguished(EXCHANGES // 2),
    }


def degraded(
    found: Sequence[SessionTrace], domain: str, measure: Measure = by_risk
) -> list[dict[str, Any]]:
    """Per kind of change and its control: AUROC at the end and three turns after the onset."""
    by_variant = _by_variant(found, domain)
    rows = []
    for variant, sessions in by_variant.items():
        for changed, control in PAIRS:
            both = [(s[changed], s[control]) for s in sessions if changed in s and control in s]
            if both:
                rows.append(
                    {
                        "onset": variant[0],
                        "share": variant[1],
                        "changed": changed,
                        "control": control,
                        "sessions": len(both),
                        "end": _auroc_of_changed(both, None, measure),
                        "soon": _auroc_of_changed(both, SOON, measure),
                    }
                )
    return rows


Variant = tuple[str, str]


def _by_variant(
    found: Sequence[SessionTrace], domain: str
) -> dict[Variant, list[dict[str, SessionTrace]]]:
    """By onset and share: for every real session, its changed versions and the unchanged one."""
    untouched = {
        w.known.origin: w for w in found if w.known.kind == "untouched" and w.known.domain == domain
    }
    variants: dict[Variant, dict[str, dict[str, SessionTrace]]] = defaultdict(dict)
    for w in found:
        if w.known.onset is None or w.known.domain != domain:
            continue
        onset = "turn 3" if w.known.onset == 2 else "half"
        session = variants[onset, w.known.share].setdefault(
            w.known.origin, {"untouched": untouched[w.known.origin]}
        )
        session[w.known.kind] = w
    return {
        variant: list(sessions.values())
        for variant, sessions in sorted(variants.items(), reverse=False)
    }


def _auroc_of_changed(
    both: Sequence[tuple[SessionTrace, SessionTrace]], turns: int | None, measure: Measure
) -> dict[str, Any]:
    """AUROC of the changed sessions `turns` after the onset, resampling pairs."""
    low = []
    for pair in both:
        after = None if turns is None else (pair[0].known.onset or 0) + turns
        low += [measure(w, after) for w in pair]
    value = np.array(low)
    is_changed = np.tile([True, False], len(both))
    groups = np.repeat(np.arange(len(both)), 2)
    return interval(groups, lambda rows: auroc(is_changed[rows], value[rows]))


def fired_at(risks: Sequence[float], enter: float) -> int | None:
    """Index of the risk at which the shipped rule fires, or None."""
    for place in range(FOR_TURNS - 1, len(risks)):
        if min(risks[place - FOR_TURNS + 1 : place + 1]) >= enter:
            return place
    return None


def risks_from_onset(w: SessionTrace) -> tuple[list[int], list[float]]:
    """Counsellor turns from the onset onwards, and their risks."""
    onset = w.known.onset or 0
    kept = [(p, r) for p, r in zip(w.places, w.risks, strict=True) if p >= onset]
    return [p for p, _ in kept], [r for _, r in kept]


def threshold(controls: Sequence[SessionTrace]) -> float:
    """Lowest threshold at which at most one in twenty of the controls fires."""
    levels = sorted(
        (
            max((min(pair) for pair in itertools.pairwise(r)), default=0.0)
            for r in (risks_from_onset(w)[1] for w in controls)
        ),
        reverse=True,
    )
    allowed = int(np.floor(FALSE_ALARMS * len(levels)))
    return float(np.nextafter(levels[min(allowed, len(levels) - 1)], 1.0))


def is_control(w: SessionTrace) -> bool:
    """Whether the session's second half was replaced by strongly empathic answers."""
    return w.known.kind == "strong" and w.known.share == "every" and (w.known.onset or 0) != 2


def alerts(
    found: Sequence[SessionTrace], enter: Mapping[int, float], domain: str
) -> dict[str, Any]:
    """Alerts of the shipped rule in chats whose second half is degraded; `enter` by fold."""
    rows: dict[str, Any] = {"enter_by_fold": dict(enter)}
    for kind in ("none", "task", "advice", "strong", "untouched"):
        delays = []
        for sessions in _by_variant(found, domain).get(("half", "every"), []):
            w, onset = sessions[kind], sessions["none"].known.onset or 0
            kept = [(p, r) for p, r in zip(w.places, w.risks, strict=True) if p >= onset]
            at = fired_at([r for _, r in kept], enter[w.known.fold])
            delays.append(None if at is None else kept[at][0] - onset + 1)
        hit = [delay for delay in delays if delay is not None]
        rows[kind] = {
            "sessions": len(delays),
            "fired_per_100": 100 * len(hit) / max(1, len(delays)),
            "median_delay": float(np.median(hit)) if hit else None,
        }
    return rows


def quality(watched: Sequence[SessionTrace], low: Mapping[str, bool]) -> dict[str, Any]:
    """AUROC of AnnoMI's low-quality sessions, using the risk at the end."""
    own = [w for w in watched if w.known.origin in low]
    truth = np.array([low[w.known.origin] for w in own])
    risk = np.array([by_risk(w, None) for w in own])
    return {
        "sessions": len(own),
        "low_quality": int(truth.sum()),
        **interval(np.arange(len(own)), lambda rows: auroc(truth[rows], risk[rows])),
    }


def survey(
    watched: Sequence[SessionTrace], rating: Mapping[str, int], source: str
) -> dict[str, Any]:
    """Spearman of the index with the seeker's rating in one file, plain and given length."""
    own = [
        w
        for w in watched
        if w.known.kind == "real" and w.source == source and w.known.origin in rating
        and w.end.empathy_index is not None
    ]  # fmt: skip
    index = np.array([w.end.empathy_index for w in own], float)
    given = np.array([rating[w.known.origin] for w in own], float)
    turns = np.array([w.end.turns for w in own], float)
    groups = np.arange(len(own))
    return {
        "sessions": len(own),
        "spearman": interval(groups, lambda rows: spearman(index[rows], given[rows])),
        "at_equal_turns": interval(groups, lambda r: partial(index[r], given[r], [turns[r]])),
    }


def partial(x: Floats, y: Floats, given: Sequence[Floats]) -> float:
    """Partial Spearman correlation of x and y given the ranks of others."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    base = np.column_stack([np.ones(len(x)), *(rankdata(other) for other in given)])

    def rest(values: Floats) -> Floats:
        ranks = rankdata(values)
        return np.asarray(ranks - base @ np.linalg.lstsq(base, ranks, rcond=None)[0])

    return float(np.corrcoef(rest(x), rest(y))[0, 1])


def confounds(
    watched: Sequence[SessionTrace], domain: str, measure: Measure = by_risk
) -> dict[str, Any]:
    """Correlation of the risk with lengths, alone and with the index held constant."""
    own = [
        w
        for w in watched
        if w.known.kind == "real" and w.known.domain == domain
        and w.end.low_empathy_risk is not None
    ]  # fmt: skip
    risk = np.array([measure(w, None) for w in own], float)
    index = np.array([w.end.empathy_index for w in own], float)
    measures: dict[str, Callable[[SessionTrace], float]] = {
        "turns": lambda w: float(w.end.turns),
        "words": lambda w: float(w.words),
        "words a turn": lambda w: w.words / max(1, w.end.turns),
    }
    found: dict[str, Any] = {"sessions": len(own)}
    groups = np.arange(len(own))
    for name, length in measures.items():
        values = np.array([length(w) for w in own])
        found[name] = {
            "alone": spearman(risk, values),
            "given_the_index": interval(groups, _given(risk, values, index)),
        }
    return found


def _given(x: Floats, y: Floats, held: Floats) -> Callable[[NDArray[np.int64]], float]:
    return lambda rows: partial(x[rows], y[rows], [held[rows]])
