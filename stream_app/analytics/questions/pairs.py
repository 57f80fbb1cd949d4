"""Question 3: does expressed empathy depend on who meets whom?

After Sharma et al. (2020), section 7 (4), who compared pairs by self-reported gender. Off by
default: it needs a file of self-declared attributes, which is read for the analysis and not
stored.
The interaction is tested with errors clustered by counsellor and by client (Cameron, Gelbach &
Miller 2011), because both appear in several sessions.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np
import pandas as pd
from statsmodels.regression.linear_model import OLS
from statsmodels.tools import add_constant

from stream_app.analytics.questions import progress
from stream_app.analytics.questions.clustered import Fit, NotEstimable, dummies, gee, terms
from stream_app.analytics.questions.expressed_perceived import corrected
from stream_app.analytics.questions.frames import Frames
from stream_app.analytics.questions.groups import begin, blank, estimated, size_of
from stream_app.analytics.questions.result import Analysis, Context, Estimate, Texts
from stream_app.core.measures.catalogue import Use, units

QUESTION: Final = "pairs"
MEASURES: Final = units(Use.PAIRS)
INTERACTION: Final = "more in pairs with the same attribute than both attributes explain"
MEAN: Final = "mean"
TEXTS: Final = Texts(
    title="Pairs of counsellor and client",
    about=(
        "Whether sessions of a counsellor and a client with the same self-declared attribute "
        "differ beyond what either attribute goes with. Attributes are self-declared and "
        "incomplete; who meets whom is not random. Associations, not effects."
    ),
    method=(
        "Unit: session. Least squares with both attributes, their interaction and the model; "
        "covariance clustered two ways, by counsellor and by client, Student's t; Holm's "
        "correction over all comparisons."
    ),
    source="Sharma et al. 2020, section 7 (4)",
)


def analyse(
    frames: Frames,
    context: Context,
    attributes: Mapping[str, str],
    *,
    measures: tuple[str, ...] = tuple(MEASURES),
) -> Analysis:
    """Mean levels by pair, and the interaction; ``attributes``: by pseudonym, self-declared."""
    found = begin(frames, context, QUESTION, TEXTS)
    table = declared(frames.sessions, attributes)
    notes = [f"Both declared an attribute in {len(table)} of {len(frames.sessions)} sessions."]
    estimates = [each for name in progress.each("measures", measures) for each in _of(table, name)]
    if not estimates:
        notes = ["Not enough data: too few sessions in which both declared an attribute."]
    return replace(found, estimates=corrected(estimates), notes=notes)


def declared(sessions: pd.DataFrame, attributes: Mapping[str, str]) -> pd.DataFrame:
    """Sessions in which both have declared one, with ``own`` and ``other``."""
    known = sessions.assign(
        own=sessions["counsellor"].map(dict(attributes)),
        other=sessions["client"].map(dict(attributes)),
    )
    return known.dropna(subset=["own", "other"]).reset_index(drop=True)


def _of(table: pd.DataFrame, name: str) -> Iterator[Estimate]:
    known = table.dropna(subset=[name])
    values = sorted(set(known["own"]) & set(known["other"]))
    for one, other in combinations(values, 2):
        some = known[known["own"].isin([one, other]) & known["other"].isin([one, other])]
        group = f"{one} and {other}"
        cells = some.groupby(["own", "other"])
        if len(cells) < 4 or any(size_of(part).too_small for _, part in cells):
            base = blank(some, name, group, MEASURES[name])
            problem = "not enough data: a pair has fewer than 11 clients or 5 counsellors"
            yield replace(base, name=INTERACTION, problem=problem, n=None, counsellors=None)
            continue
        for (own, client), part in cells:
            base = blank(part, name, f"counsellor {own}, client {client}", MEASURES[name])
            mean = partial(gee, part[name], pd.DataFrame(index=part.index), part["counsellor"])
            for each in estimated(mean, {"intercept": MEAN}, base):
                yield replace(each, p=None)
        base = blank(some, name, group, MEASURES[name])
        yield from estimated(partial(interaction, some, name, one), {"both": INTERACTION}, base)


def interaction(some: pd.DataFrame, name: str, one: str) -> Fit:
    """Terms ``own``, ``other`` (attribute ``one``) and ``both``, the interaction.

    Raises:
        NotEstimable: too few counsellors or clients.
    """
    own = (some["own"] == one).astype(float)
    other = (some["other"] == one).astype(float)
    columns = pd.DataFrame({"own": own, "other": other, "both": own * other})
    columns = columns.join(dummies(some["bundle"], "bundle"))
    design = add_constant(columns)
    groups = np.column_stack([pd.factorize(some["counsellor"])[0], pd.factorize(some["client"])[0]])
    fewest = int(min(groups.max(axis=0))) + 1
    if fewest < 10:
        raise NotEstimable(f"not enough data: {fewest} counsellors or clients")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = OLS(some[name].to_numpy(), design.to_numpy()).fit(
            cov_type="cluster", cov_kwds={"groups": groups, "use_correction": True}
        )
    errors = np.asarray(fit.bse)
    if not np.all(np.isfinite(errors)):
        raise NotEstimable("not enough data: the two-way covariance is not positive")
    found = terms(list(design.columns), np.asarray(fit.params), errors, fewest - 1)
    return Fit(found, len(some), some["counsellor"].nunique())
