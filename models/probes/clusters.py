"""Cluster bootstrap of the context probe by phrase: a thousand cases repeat seven phrases.

Cases with one phrase are correlated, so an interval that assumes independence is too narrow. The
counts of each phrase are stored in probes.json, so no scorer is needed here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.labels import RATIONALE_ORDER

Figures = dict[str, Any]
Floats = NDArray[np.float64]
RESAMPLES, SEED = 2000, 17


def family_of(mechanism: str) -> str:
    """The list of a mechanism's phrases; sympathy uses those of emotional reactions."""
    return RATIONALE_ORDER[0] if mechanism == "sympathy" else mechanism


def phrase_counts(
    conditions: Mapping[str, Figures],
    names: Iterable[str],
    key: str = "by_phrase",
    keep: Callable[[str, str], bool] | None = None,
) -> dict[str, dict[str, Floats]]:
    """Counts (called, n) by family and phrase, over the named conditions.

    `keep` filters by family and phrase (None keeps all); `key` names the stored counts by phrase.
    """
    found: dict[str, dict[str, Floats]] = defaultdict(dict)
    for name in names:
        family = family_of(name.split("/")[1])
        for phrase, counts in conditions.get(name, {}).get(key, {}).items():
            if keep is None or keep(family, phrase):
                own = found[family].setdefault(phrase, np.zeros(2))
                own += (counts["called"], counts["n"])
    return dict(found)


def share(counts: Mapping[str, Mapping[str, Floats]]) -> Figures:
    """Share classified as empathic (0-1) and its interval, resampling phrases by family."""
    strata = [np.stack(list(phrases.values())) for phrases in counts.values() if phrases]
    if not strata:
        return {"called": 0, "n": 0, "phrases": 0, "share": None, "interval": None}
    called, n = np.concatenate(strata).sum(axis=0)
    return {
        "called": int(called),
        "n": int(n),
        "phrases": sum(map(len, strata)),
        "share": called / n,
        "interval": resampled(strata, lambda total: total[:, 0] / total[:, 1]),
    }


def balanced(misplaced: Mapping[str, Floats], fitting: Mapping[str, Floats]) -> Figures:
    """Mean of specificity and recall (0-1) over the phrases that have both kinds of cases."""
    both = [np.concatenate([misplaced[p], fitting[p]]) for p in misplaced if p in fitting]
    if not both:
        return {"value": None, "interval": None}
    stratum = np.stack(both)
    value = _balanced(stratum.sum(axis=0, keepdims=True))[0]
    return {"value": float(value), "interval": resampled([stratum], _balanced)}


def _balanced(total: Floats) -> Floats:
    return np.asarray((1 - total[:, 0] / total[:, 1] + total[:, 2] / total[:, 3]) / 2)


def resampled(strata: Sequence[Floats], statistic: Callable[[Floats], Floats]) -> list[float]:
    """95 % percentile interval of a statistic of column totals [resamples, columns].

    Each stratum [phrases, columns] is resampled separately, so that every family keeps its weight.
    """
    chance = np.random.default_rng(SEED)
    total = sum(
        stratum[chance.integers(len(stratum), size=(RESAMPLES, len(stratum)))].sum(axis=1)
        for stratum in strata
    )
    low, high = np.quantile(statistic(np.asarray(total)), [0.025, 0.975])
    return [float(low), float(high)]
